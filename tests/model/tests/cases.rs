//! The project's cases that are about decisions, typed by hand.
#![allow(clippy::unwrap_used)]

mod support;

use seqgate_model::{Ordering, Policy, Reason, Value, Verdict};
use support::*;

fn created(key: &str) -> Ev {
    ev("order.created", key).eur("1999")
}

fn paid(key: &str) -> Ev {
    ev("order.paid", key).eur("1999")
}

fn shipped(key: &str) -> Ev {
    ev("order.shipped", key)
}

#[test]
fn the_whole_file_again() {
    let mut c = Case::new(Ordering::Versioned);
    let file =
        [created("o1").v(1), paid("o1").v(2), created("o2").v(1), shipped("o1").v(3), ev("order.cancelled", "o2").v(2)];
    for e in &file {
        assert_eq!(c.deliver(e.clone()), APPLIED);
    }
    for e in &file {
        assert_eq!(c.deliver(e.clone()), DUPLICATE);
    }
    assert_eq!((c.order("o1"), c.order("o2")), (is("shipped", 3, 3), is("cancelled", 2, 2)));
}

#[test]
fn a_payment_waits_for_another_orders_version() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o1").v(2).needs_version("orders", "o2", 2)), deferred(Reason::Dependency));
    assert_eq!(c.deliver(created("o2").v(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(3)), deferred(Reason::Gap));
    assert_eq!(c.oracle.ready(), vec![]);
    assert_eq!(c.deliver(paid("o2").v(2)), APPLIED);
    assert_eq!(c.ready(), vec![entity("orders", "o1")]);
    assert_eq!((c.order("o1"), c.order("o2")), (is("shipped", 3, 3), is("paid", 2, 2)));
    assert_eq!(c.verdicts(), vec![(Verdict::Applied, 5)]);
}

#[test]
fn causal_shipped_waits_for_paid_by_name() {
    let mut c = Case::new(Ordering::Causal);
    assert_eq!(c.deliver(created("o1").id("1")), APPLIED);
    assert_eq!(c.deliver(shipped("o1").id("3").needs("order.paid")), deferred(Reason::Dependency));
    assert_eq!(c.deliver(paid("o1").id("2").needs("order.created")), APPLIED);
    assert_eq!(c.order("o1"), is("shipped", 3, 3));
}

#[test]
fn a_repeated_member_is_malformed_and_holds_nobody() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.malformed(None), MALFORMED);
    assert_eq!(c.malformed(None), MALFORMED);
    assert_eq!(c.deliver(paid("o1").v(2)), APPLIED);
    assert_eq!(c.order("o1"), is("paid", 2, 2));
}

#[test]
fn the_state_machine_itself_corrects_the_order() {
    let mut c = Case::with(Ordering::Causal, |m| m.on_early_wait = true);
    assert_eq!(c.deliver(created("o1").id("1")), APPLIED);
    assert_eq!(c.deliver(shipped("o1").id("3")), deferred(Reason::Early));
    assert_eq!(c.deliver(ev("order.delivered", "o1").id("4")), deferred(Reason::Early));
    assert_eq!(c.deliver(paid("o1").id("2")), APPLIED);
    assert_eq!(c.order("o1"), is("delivered", 4, 4));
    assert_eq!(c.verdicts(), vec![(Verdict::Applied, 4)]);
}

#[test]
fn amounts_beyond_two_to_the_64_stay_exact() {
    let mut c = Case::new(Ordering::Versioned);
    let eur = ("currency", Value::text("EUR"));
    let credit = |amount| ev("account.credited", "a1").data([("amount", amount), ("currency", Value::text("EUR"))]);
    assert_eq!(c.deliver(ev("account.opened", "a1").v(1).data([eur])), APPLIED);
    assert_eq!(c.deliver(credit(Value::number("9007199254740993")).v(2)), APPLIED);
    assert_eq!(c.deliver(credit(Value::text("92233720368547758070")).v(3)), APPLIED);
    let data = &c.observed().entities[&entity("accounts", "a1")].data;
    assert_eq!(data["balance"], "92242727567802499063");
}

#[test]
fn previousversion_carries_the_gate_over_filtered_versions() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o1").v(4).after(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(9).after(7)), deferred(Reason::Gap));
    assert_eq!(c.deliver(ev("order.delivered", "o1").v(12).after(9)), deferred(Reason::Gap));
    assert_eq!(c.order("o1"), is("paid", 4, 2));
    // 2 was passed over: filtered, and so stale.
    assert_eq!(c.deliver(ev("order.cancelled", "o1").v(2)), STALE);
}

#[test]
fn a_gap_stays_and_another_order_goes_on() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(3)), deferred(Reason::Gap));
    assert_eq!(c.deliver(created("o2").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o2").v(2)), APPLIED);
    assert_eq!((c.order("o1"), c.order("o2")), (is("pending", 1, 1), is("paid", 2, 2)));
}

#[test]
fn an_ignored_type_consumes_its_version() {
    let mut c = Case::with(Ordering::Versioned, |m| _ = m.ignore.insert("order.note_added".into()));
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(ev("order.note_added", "o1").v(2)), SKIPPED);
    assert_eq!(c.deliver(paid("o1").v(3)), APPLIED);
    assert_eq!(c.order("o1"), is("paid", 3, 3));
}

#[test]
fn an_illegal_event_parks_its_entity_only() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(2)), ILLEGAL);
    assert_eq!(c.deliver(ev("order.delivered", "o1").v(3)), deferred(Reason::Blocked));
    assert_eq!(c.deliver(created("o2").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o2").v(2)), APPLIED);
    assert_eq!((c.order("o1"), c.order("o2")), (is("pending", 1, 1), is("paid", 2, 2)));
}

#[test]
fn declared_as_skip_it_consumes_its_version() {
    let mut c = Case::with(Ordering::Versioned, |m| m.on_illegal = Policy::Skip);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(2)), ILLEGAL);
    assert_eq!(c.deliver(paid("o1").v(3)), APPLIED);
    assert_eq!(c.order("o1"), is("paid", 3, 3));
}

#[test]
fn the_update_overtakes_the_creation() {
    let mut c = Case::new(Ordering::Versioned);
    let trial = [("plan", Value::text("A")), ("trial_end", Value::text("2026-12-30T00:00:00Z"))];
    assert_eq!(c.deliver(ev("subscription.activated", "s1").v(2)), deferred(Reason::Gap));
    assert_eq!(c.deliver(ev("subscription.created", "s1").v(1).data(trial)), APPLIED);
    assert_eq!(c.entity("subscriptions", "s1"), is("active", 2, 2));
}

#[test]
fn an_old_version_under_an_unfamiliar_id() {
    let mut c = Case::new(Ordering::Versioned);
    for e in [created("o1").v(1), paid("o1").v(2), shipped("o1").v(3)] {
        assert_eq!(c.deliver(e), APPLIED);
    }
    assert_eq!(c.deliver(paid("o1").v(2).id("copy")), DUPLICATE);
    assert_eq!(c.deliver(ev("order.cancelled", "o1").v(2).id("ghost")), CONFLICT);
    assert_eq!(c.order("o1"), is("shipped", 3, 3));
}

#[test]
fn an_id_comes_back_with_other_content() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o1").v(2).id("pay-1")), APPLIED);
    assert_eq!(c.deliver(ev("order.paid", "o1").eur("1").v(2).id("pay-1")), CONFLICT);
    assert_eq!(c.deliver(shipped("o1").v(3)), APPLIED);
    assert_eq!((c.order("o1"), c.verdict("pay-1")), (is("shipped", 3, 3), Verdict::Applied));
}

#[test]
fn one_renewal_under_two_ids_charges_once() {
    let mut c = Case::new(Ordering::Versioned);
    let renewed = || ev("subscription.renewed", "s1").data([("period", Value::text("2026-12"))]).intent("renew");
    assert_eq!(c.deliver(ev("subscription.created", "s1").v(1)), APPLIED);
    assert_eq!(c.deliver(renewed().v(2)), APPLIED);
    assert_eq!(c.deliver(renewed().v(3)), DUPLICATE);
    assert_eq!(c.deliver(ev("subscription.paused", "s1").v(4)), APPLIED);
    assert_eq!(c.entity("subscriptions", "s1"), is("paused", 4, 4));
    let sent = &c.observed().outbox[&entity("subscriptions", "s1")];
    assert_eq!(sent.iter().map(|m| (m.revision, m.kind.as_str())).collect::<Vec<_>>(), vec![(2, "invoice.paid")]);
}

#[test]
fn snapshots_higher_overwrites_lower_is_stale() {
    let mut c = Case::new(Ordering::Snapshot);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o1").v(5)), APPLIED);
    assert_eq!(c.deliver(paid("o1").v(3).id("low")), STALE);
    assert_eq!(c.deliver(shipped("o1").v(9)), APPLIED);
    assert_eq!(c.order("o1"), is("shipped", 9, 3));
}

#[test]
fn one_three_two() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(3)), deferred(Reason::Gap));
    assert_eq!(c.deliver(paid("o1").v(2)), APPLIED);
    assert_eq!((c.order("o1"), c.verdicts()), (is("shipped", 3, 3), vec![(Verdict::Applied, 3)]));
}

#[test]
fn two_normal_forms_are_two_entities() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("caf\u{e9}-1").v(1)), APPLIED);
    assert_eq!(c.deliver(created("cafe\u{301}-1").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("caf\u{e9}-1").v(2)), APPLIED);
    assert_eq!((c.order("caf\u{e9}-1"), c.order("cafe\u{301}-1")), (is("paid", 2, 2), is("pending", 1, 1)));
}

#[test]
fn an_unknown_type_parks_by_default() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(ev("order.exploded", "o1").v(2)), ILLEGAL);
    assert_eq!(c.deliver(paid("o1").v(3)), deferred(Reason::Blocked));
    assert!(c.observed().letters[&letter("o1-2")].unknown_type);
}

#[test]
fn the_highest_version_waits_without_harm() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(shipped("o1").v(u64::MAX)), deferred(Reason::Gap));
    assert_eq!(c.deliver(paid("o1").v(2)), APPLIED);
    assert_eq!(c.order("o1"), is("paid", 2, 2));
}

#[test]
fn waiting_events_are_checked_like_applied_ones() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(shipped("o1").v(3).id("x")), deferred(Reason::Gap));
    assert_eq!(c.deliver(shipped("o1").v(3).id("x")), DUPLICATE);
    assert_eq!(c.deliver(shipped("o1").v(3).id("y")), DUPLICATE);
    assert_eq!(c.deliver(ev("order.cancelled", "o1").v(3).id("z")), CONFLICT);
    assert_eq!(c.deliver(created("o1").v(1)), APPLIED);
    assert_eq!(c.deliver(paid("o1").v(2)), APPLIED);
    assert_eq!(c.order("o1"), is("shipped", 3, 3));
    let want = vec![(Verdict::Applied, 3), (Verdict::Duplicate, 2), (Verdict::Conflict, 1)];
    assert_eq!(c.verdicts(), want);
}
