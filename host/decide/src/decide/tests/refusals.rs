//! R5: what becomes of refusals and of malformed envelopes.

use super::*;
use crate::rules::Reason;
use crate::setup::Policies;

fn with(policy: Policy) -> Story {
    policies(Ordering::Versioned, Policies { illegal: policy, malformed: policy, fault: policy, unknown: None })
}

fn policies(ordering: Ordering, policies: Policies) -> Story {
    Story::with(ordering, |setup| setup.policies = policies)
}

#[test]
fn park_blocks_and_consumes_nothing() {
    let mut s = with(Policy::Park);
    s.check("o@1 start : illegal:because", "illegal no v0 r0 -");
    let entry = &s.entity("o").dead[0];
    assert!(entry.blocks && entry.kind == DeadKind::Event && entry.attempts == 1);
    assert_eq!(entry.reason, Reason::new("no", "because"));
    s.commit();
    assert!(s.tables.history.is_empty());
    assert!(s.tables.alarms.contains(&(AlarmKind::Parked, "versioned/o".into())));
}

#[test]
fn skip_consumes_the_version() {
    let mut s = with(Policy::Skip);
    s.check("o@1 start : illegal", "illegal no v1 r1 -");
    s.check("o@2 start", "applied v2 r2 open");
    s.check("o@3 work : malformed", "malformed what v3 r3 open");
    s.check("o@4 work : fault", "fault trap v4 r4 open");
    s.check("o@5 unheard-of", "illegal unknown-type v5 r5 open");
    s.commit();
    assert!(s.tables.dead.values().all(|row| row.status == DeadStatus::Skipped && row.event.is_some()));
    assert!(s.tables.alarms.is_empty());
    let rows: Vec<_> = s.tables.history.iter().map(|row| (row.cause, row.code.as_deref(), row.consumed)).collect();
    assert_eq!(rows[0], (Cause::Skip, Some("no"), Some(1)));
    assert_eq!(rows[3], (Cause::Skip, Some("trap"), Some(4)));
}

#[test]
fn an_unknown_type_has_a_policy_of_its_own() {
    let mut s = policies(Ordering::Versioned, Policies { unknown: Some(Policy::Skip), ..Policies::default() });
    s.check("o@1 unheard-of", "illegal unknown-type v1 r1 -");
    s.check("o@2 start : illegal", "illegal no v1 r1 -");
    assert!(s.entity("o").blocked());
}

#[test]
fn compensate_or_park() {
    let mut s = with(Policy::Compensate);
    s.deliver("o@1 start : data:1");
    s.check("o@2 work : illegal compensate send:refund data:2", "illegal no v2 r2 open");
    s.check("o@3 work", "applied v3 r3 busy");
    s.check("o@4 work : illegal compensate goto:open", "illegal no v4 r4 open");
    s.check("o@5 work : fault compensate goto:busy", "fault trap v4 r4 open");
    let why = &s.entity("o").dead[0].reason.message;
    assert!(why.contains("no edge leads from `open` to `busy` by compensation"), "{why}");
    s.commit();
    let row = &s.tables.history[1];
    assert_eq!((row.cause, row.code.as_deref()), (Cause::Compensation, Some("no")));
    assert_eq!((&s.tables.outbox[0].topic[..], s.tables.outbox[0].revision), ("refund", 2));
    assert!(!s.tables.entities[&s.id("o")].seen.contains("special"));
}

#[test]
fn what_is_refused_takes_no_intent_and_is_not_seen() {
    let mut s = with(Policy::Compensate);
    s.deliver("o@1 start");
    s.check("o@2 work intent=i : illegal compensate", "illegal no v2 r2 open");
    assert!(!s.entity("o").seen.contains("work"));
    s.check("o@3 work intent=i", "applied v3 r3 busy");
}

fn malformed(s: &mut Story, entity: Option<&str>, offset: u64) -> Outcome {
    let malformed = Malformed { reason: Reason::new("id", "`id` is missing"), entity: entity.map(|key| s.id(key)) };
    let (raw, position) = (Arc::from(*b"{}"), s.position(offset));
    s.take(&Input::Malformed { malformed, raw, position, redelivered: false }).unwrap().outcome.clone()
}

#[test]
fn a_malformed_envelope_blocks_nobody() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    assert_eq!(malformed(&mut s, Some("o"), 50).verdict, Verdict::Malformed);
    malformed(&mut s, None, 51);
    s.check("o@2 work", "applied v2 r2 busy");
    s.commit();
    assert_eq!(s.tables.dead.len(), 2);
    assert!(s.tables.dead.values().all(|row| !row.blocks && row.raw.is_some() && row.status == DeadStatus::Open));
}

#[test]
fn except_where_events_carry_no_versions() {
    let mut s = Story::new(Ordering::Causal);
    s.deliver("o start");
    malformed(&mut s, Some("o"), 50);
    s.check("o work", "deferred blocked v1 r1 open");
    malformed(&mut s, Some("o"), 51);
    assert_eq!(s.entity("o").dead.len(), 2);
    for (ordering, expect) in [(Ordering::Causal, "v0 r1 -"), (Ordering::Arrival, "v1 r1 -")] {
        let mut s = policies(ordering, Policies { malformed: Policy::Skip, ..Policies::default() });
        malformed(&mut s, Some("o"), 50);
        // The entity was not there before; its row came with the decision.
        assert_eq!(s.shown("o"), expect);
        s.commit();
        assert_eq!(s.tables.dead.values().map(|row| row.status).collect::<Vec<_>>(), [DeadStatus::Skipped]);
    }
}

#[test]
fn texts_of_guests_are_bounded() {
    let mut s = with(Policy::Park);
    let long = "é".repeat(4_000);
    s.deliver(&format!("o@1 start : illegal:\0{long}"));
    let message = &s.entity("o").dead[0].reason.message;
    assert!(message.len() <= 4_096 && message.ends_with('…') && message.starts_with('\u{fffd}'), "{}", message.len());
    let mut s = with(Policy::Park);
    let notes = "note:n ".repeat(70);
    s.deliver(&format!("o@1 start : {notes}"));
    s.commit();
    assert_eq!(s.tables.history[0].notes.len(), 65);
    assert_eq!(s.tables.history[0].notes[64], "6 more notes were dropped");
}
