//! The trickier readings, one test each.
#![allow(clippy::unwrap_used)]

mod support;

use seqgate_model::*;
use support::*;

fn created(key: &str) -> Ev {
    ev("order.created", key).eur("1999")
}

fn paid(key: &str) -> Ev {
    ev("order.paid", key).eur("1999")
}

fn conflict(id: &str) -> ConflictId {
    ConflictId { event: event_id(id), nth: 0 }
}

/// R2: numbers as exact decimals make a copy, and a copy may be one that the rules could not read.
#[test]
fn a_respelled_copy_is_a_duplicate() {
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1));
    assert_eq!(c.deliver(ev("order.created", "o1").eur("1.999e3").v(1)), DUPLICATE);
    assert_eq!(c.deliver(ev("order.paid", "o1").eur("1999.0").v(2)), MALFORMED);
    assert_eq!(c.deliver(paid("o1").v(2).id("other")), DUPLICATE);
}

/// R2: a position below the stored offset is a duplicate whatever it says.
#[test]
fn a_position_below_the_offset_is_a_duplicate() {
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1));
    let Step::Deliver(mut again) = c.history.steps[0].clone() else { panic!() };
    again.meaning = Meaning::Malformed { entity: None, why: "by hand" };
    assert_eq!(c.step(Step::Deliver(again)), DUPLICATE);
    assert_eq!(c.observed().letters.len(), 0);
}

/// R3 step 6: a second event that follows the same version, and one that follows a passed one.
#[test]
fn forks() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(paid("o1").v(3)), deferred(Reason::Gap));
    assert_eq!(c.deliver(paid("o1").v(4).after(2)), CONFLICT);
    c.deliver(created("o1").v(1));
    assert_eq!(c.deliver(paid("o1").v(9).after(0)), CONFLICT);
    let reasons: Vec<_> = c.observed().conflicts.into_values().map(|c| c.reason).collect();
    assert_eq!(reasons, vec![ConflictReason::Fork; 2]);
}

/// R3: a jump passes over what waits: stale, or a fork where only the predecessor was passed.
#[test]
fn a_jump_passes_over_waiting_events() {
    let mut c = Case::new(Ordering::Versioned);
    assert_eq!(c.deliver(paid("o1").v(3)), deferred(Reason::Gap));
    assert_eq!(c.deliver(paid("o1").v(8).after(4)), deferred(Reason::Gap));
    assert_eq!(c.deliver(created("o1").v(5).after(0)), APPLIED);
    assert_eq!((c.verdict("o1-3"), c.verdict("o1-8")), (Verdict::Stale, Verdict::Conflict));
    assert_eq!(c.observed().waiting.len(), 0);
}

/// R2: what was refused holds no idempotency key; another entity's is a conflict.
#[test]
fn only_applied_events_hold_their_intent() {
    let mut c = Case::with(Ordering::Versioned, |m| m.on_illegal = Policy::Skip);
    assert_eq!(c.deliver(paid("o1").v(1).intent("i")), ILLEGAL);
    assert_eq!(c.deliver(created("o1").v(2).intent("i")), APPLIED);
    assert_eq!(c.deliver(created("o2").v(1).intent("i")), CONFLICT);
    assert_eq!(c.deliver(created("o2").v(1).id("again")), APPLIED);
}

/// R3 step 8 under the other orderings.
#[test]
fn an_intent_duplicate_numbers_as_its_ordering_does() {
    let twice = |ordering| {
        let mut c = Case::new(ordering);
        c.deliver(created("o1").v(1).intent("i"));
        assert_eq!(c.deliver(created("o1").v(5).after(1).intent("i")), DUPLICATE);
        c.order("o1")
    };
    assert_eq!(twice(Ordering::Versioned), is("pending", 5, 2));
    assert_eq!(twice(Ordering::Snapshot), is("pending", 5, 2));
    assert_eq!(twice(Ordering::Causal), is("pending", 1, 2));
    assert_eq!(twice(Ordering::Arrival), is("pending", 1, 2));
}

/// R4: who numbers what.
#[test]
fn arrival_numbers_skips_and_causal_does_not() {
    let skip = |ordering| {
        let mut c = Case::with(ordering, |m| m.on_illegal = Policy::Skip);
        c.deliver(created("o1").id("1"));
        assert_eq!(c.deliver(ev("order.shipped", "o1").id("2")), ILLEGAL);
        c.order("o1")
    };
    assert_eq!(skip(Ordering::Arrival), is("pending", 2, 2));
    assert_eq!(skip(Ordering::Causal), is("pending", 1, 2));
}

/// R4: in arrival a deferred event holds its entity's later ones.
#[test]
fn arrival_holds_what_is_behind() {
    let mut c = Case::new(Ordering::Arrival);
    c.deliver(created("o1").id("1"));
    assert_eq!(c.deliver(paid("o1").id("2").needs_version("orders", "o2", 1)), deferred(Reason::Dependency));
    assert_eq!(c.deliver(ev("order.shipped", "o1").id("3")), deferred(Reason::Dependency));
    c.deliver(created("o2").id("4"));
    assert_eq!(c.ready(), vec![entity("orders", "o1")]);
    assert_eq!(c.order("o1"), is("shipped", 3, 3));
}

/// R4: the waiting event that holds the others is dismissed; they go on.
#[test]
fn arrival_goes_on_when_the_first_is_dismissed() {
    let mut c = Case::new(Ordering::Arrival);
    c.deliver(created("o1").id("1"));
    c.deliver(ev("order.cancelled", "o1").id("2").needs("order.never"));
    c.deliver(paid("o1").id("3"));
    assert_eq!(c.person(Decision::DismissDeferred(event_id("2"))), Outcome::Done);
    assert_eq!((c.order("o1"), c.verdict("2")), (is("paid", 2, 2), Verdict::Skipped));
}

/// R4: logical time orders what becomes free at the same time.
#[test]
fn causal_releases_by_logical_time() {
    let mut c = Case::new(Ordering::Causal);
    c.deliver(ev("order.cancelled", "o1").id("late").needs("order.created").logical(9));
    c.deliver(paid("o1").id("soon").needs("order.created").logical(3));
    assert_eq!(c.deliver(created("o1").id("1")), APPLIED);
    assert_eq!(c.order("o1"), is("cancelled", 3, 3));
}

/// R4: a higher snapshot supersedes a parked one, also when it is refused itself.
#[test]
fn a_refused_snapshot_supersedes_a_parked_one() {
    let mut c = Case::new(Ordering::Snapshot);
    c.deliver(created("o1").v(1));
    assert_eq!(c.deliver(ev("order.shipped", "o1").v(2)), ILLEGAL);
    assert_eq!(c.deliver(ev("order.shipped", "o1").v(3)), ILLEGAL);
    let letters = c.observed().letters;
    assert_eq!(letters[&letter("o1-2")].status, LetterStatus::Superseded);
    assert_eq!(letters[&letter("o1-3")].status, LetterStatus::Open);
    assert_eq!((c.verdict("o1-2"), c.order("o1")), (Verdict::Skipped, is("pending", 1, 1)));
}

/// R4: an early event becomes illegal at its deadline, and when nothing leads to its state any more.
#[test]
fn early_events_end() {
    let mut c = Case::with(Ordering::Causal, |m| m.on_early_wait = true);
    c.deliver(created("o1").id("1"));
    c.deliver(ev("order.delivered", "o1").id("2"));
    assert_eq!(c.step(Step::Deadline { now: 3_599_999 }), Outcome::Refused);
    assert_eq!(c.step(Step::Deadline { now: 3_600_000 }), Outcome::Done);
    assert_eq!(c.verdict("2"), Verdict::Illegal);
    c.deliver(created("o2").id("3"));
    c.deliver(ev("order.delivered", "o2").id("4"));
    c.deliver(ev("order.cancelled", "o2").id("5"));
    assert_eq!(c.verdict("4"), Verdict::Illegal);
}

/// R5: a malformed envelope with a usable address is a refusal of its entity under causal and arrival only.
#[test]
fn a_malformed_envelope_may_block_its_entity() {
    let next = |ordering| {
        let mut c = Case::new(ordering);
        c.deliver(created("o1").v(1));
        c.malformed(Some("o1"));
        c.deliver(paid("o1").v(2))
    };
    assert_eq!((next(Ordering::Versioned), next(Ordering::Snapshot)), (APPLIED, APPLIED));
    assert_eq!(next(Ordering::Causal), deferred(Reason::Blocked));
    assert_eq!(next(Ordering::Arrival), deferred(Reason::Blocked));
}

/// R5: a listed compensation looks only at type and state; an unlisted one parks.
#[test]
fn compensation() {
    let mut c = Case::with(Ordering::Versioned, |m| m.on_illegal = Policy::Compensate);
    c.deliver(created("o1").v(1));
    c.deliver(ev("order.cancelled", "o1").v(2));
    assert_eq!(c.deliver(paid("o1").v(3)), ILLEGAL);
    assert_eq!(c.order("o1"), is("cancelled", 3, 3));
    assert_eq!(c.observed().outbox[&entity("orders", "o1")][0].kind, "refund.requested");
    assert_eq!(c.deliver(ev("order.shipped", "o1").v(4)), ILLEGAL);
    assert_eq!(c.deliver(ev("order.shipped", "o1").v(5)), deferred(Reason::Blocked));
}

/// R5: skip, and what waited behind goes on; closed letters cannot be redriven.
#[test]
fn a_person_skips_a_dead_letter() {
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1));
    c.deliver(ev("order.shipped", "o1").v(2));
    assert_eq!(c.deliver(paid("o1").v(3)), deferred(Reason::Blocked));
    assert_eq!(c.person(Decision::Compensate(letter("o1-2"))), Outcome::Refused);
    assert_eq!(c.person(Decision::Skip(letter("o1-2"))), Outcome::Done);
    assert_eq!((c.order("o1"), c.verdict("o1-2")), (is("paid", 3, 3), Verdict::Skipped));
    assert_eq!(c.person(Decision::Redrive(letter("o1-2"))), Outcome::Refused);
}

/// R5: a corrected event takes the place, in the same entity and version only.
#[test]
fn a_person_replaces_a_dead_letter() {
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1));
    c.deliver(ev("order.paid", "o1").eur("5").v(2));
    let with = |e: Ev| Decision::Replace(letter("o1-2"), vec![], Box::new(e.0));
    assert_eq!(c.person(with(paid("o1").v(3).id("c"))), Outcome::Refused);
    assert_eq!(c.person(with(paid("o2").v(2).id("c"))), Outcome::Refused);
    assert_eq!(c.person(with(paid("o1").v(2).id("o1-1"))), Outcome::Refused);
    assert_eq!(c.person(with(paid("o1").v(2).id("c"))), Outcome::Done);
    assert_eq!(c.order("o1"), is("paid", 2, 2));
    assert_eq!((c.verdict("o1-2"), c.verdict("c")), (Verdict::Skipped, Verdict::Applied));
}

/// R5: an exact copy of a conflict is a duplicate; dismissed, it consumes its version where that is the next.
#[test]
fn a_conflict_is_quarantined_once_and_dismissed() {
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1).intent("i"));
    c.deliver(created("o2").v(1));
    assert_eq!(c.deliver(paid("o2").v(2).intent("i")), CONFLICT);
    assert_eq!(c.deliver(paid("o2").v(2).intent("i")), DUPLICATE);
    assert_eq!(c.observed().conflicts[&conflict("o2-2")].copies, 2);
    assert_eq!(c.deliver(ev("order.cancelled", "o2").v(3)), deferred(Reason::Gap));
    assert_eq!(c.person(Decision::DismissConflict(conflict("o2-2"))), Outcome::Done);
    assert_eq!((c.order("o2"), c.verdict("o2-2")), (is("cancelled", 3, 3), Verdict::Skipped));
    assert_eq!(c.person(Decision::DismissConflict(conflict("o2-2"))), Outcome::Refused);
}

/// R3 step 10 with markers: named once, met, decided; too many names, or nothing new, is a fault.
#[test]
fn rules_that_wait() {
    let mut c = Case::new(Ordering::Versioned);
    let wait = |names: &[&str]| ("__wait", Value::List(names.iter().map(|n| Value::text(*n)).collect()));
    let waits = |names: &[&str]| {
        let more = [("total", Value::number(1)), ("currency", Value::text("EUR")), wait(names)];
        ev("order.created", "o1").v(1).data(more)
    };
    assert_eq!(c.deliver(waits(&["orders/a%2Fb@1", "orders/o3@1"])), deferred(Reason::Waiting));
    c.deliver(created("a/b").v(1));
    assert_eq!(c.ready(), vec![]);
    c.deliver(created("o3").v(1));
    assert_eq!(c.ready(), vec![entity("orders", "o1")]);
    assert_eq!(c.order("o1"), is("pending", 1, 1));
    assert_eq!(c.deliver(ev("order.cancelled", "o1").v(2).data([wait(&[])])), FAULT);
    let many: Vec<String> = (1..18).map(|n| format!("orders/o3@{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(c.deliver(ev("order.cancelled", "o3").v(2).data([wait(&many)])), FAULT);
}

/// R6: a timer waits for a free entity, and leaves the version alone.
#[test]
fn timers() {
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1));
    c.deliver(ev("order.shipped", "o1").v(3));
    let fire = |now| Step::Timer { entity: entity("orders", "o1"), name: "payment-timeout".into(), now };
    assert_eq!(c.step(fire(1_799_999)), Outcome::Refused);
    assert_eq!(c.step(fire(1_800_000)), Outcome::Refused);
    c.person(Decision::DismissDeferred(event_id("o1-3")));
    assert_eq!(c.step(fire(1_800_000)), Outcome::Done);
    assert_eq!(c.order("o1"), is("cancelled", 1, 2));
    assert_eq!(c.step(fire(1_800_000)), Outcome::Refused);
}

/// R8 and readings of step 10: another layout is migrated first, or waited for, or its refusal blocks.
#[test]
fn layouts() {
    let rules = |schema, reads: &[u32], refuses| Step::Rules {
        machine: "orders".into(),
        schema,
        reads: reads.to_vec(),
        refuses,
        timers: TimerRules::Real,
    };
    let mut c = Case::new(Ordering::Versioned);
    c.deliver(created("o1").v(1));
    c.step(rules(2, &[], false));
    assert_eq!(c.deliver(paid("o1").v(2)), deferred(Reason::Schema));
    c.step(rules(2, &[1], false));
    assert_eq!(c.step(Step::Migrate { entity: entity("orders", "o1") }), Outcome::Done);
    assert_eq!(c.order("o1"), is("paid", 2, 3));
    c.step(rules(3, &[1, 2], true));
    assert_eq!(c.deliver(ev("order.shipped", "o1").v(3)), deferred(Reason::Blocked));
    c.step(rules(3, &[1, 2], false));
    let migration = LetterId { subject: LetterSubject::Migration(entity("orders", "o1")), nth: 0 };
    assert_eq!(c.person(Decision::Redrive(migration)), Outcome::Done);
    assert_eq!(c.order("o1"), is("shipped", 3, 5));
}
