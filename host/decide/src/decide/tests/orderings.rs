//! R4: the other orderings.

use super::*;

#[test]
fn causal_numbers_what_it_applies() {
    let mut s = Story::new(Ordering::Causal);
    s.check("o start", "applied v1 r1 open");
    s.check("o note", "skipped configured v1 r2 open");
    s.check("o work intent=i", "applied v2 r3 busy");
    s.check("o work id=b intent=i", "duplicate intent v2 r4 busy");
    s.check("o start id=b", "conflict id v2 r4 busy");
    s.check("o work intent=i", "duplicate v2 r4 busy");
}

#[test]
fn causal_holds_nobody_back() {
    let mut s = Story::new(Ordering::Causal);
    s.deliver("o start");
    s.check("o rest after=work", "deferred dependency v1 r1 open");
    s.check("o work id=2 order=2 after=work", "deferred dependency v1 r1 open");
    s.check("o work id=1 order=1 after=work", "deferred dependency v1 r1 open");
    s.check("o work", "applied v5 r5 busy");
    // By logical time, absent ones first; the one that went back to open is asked in its turn.
    assert_eq!(s.decided(), ["o work: applied", "o rest: applied", "1: applied", "2: applied"]);
    s.check("o work id=x : illegal", "illegal no v5 r5 busy");
    s.check("o work id=y", "deferred blocked v5 r5 busy");
}

#[test]
fn arrival_keeps_the_order() {
    let mut s = Story::new(Ordering::Arrival);
    s.check("o start", "applied v1 r1 open");
    s.check("o note", "skipped configured v2 r2 open");
    s.check("o work after=arrival/p@1", "deferred dependency v2 r2 open");
    s.check("o rest", "deferred dependency v2 r2 open");
    s.check("o work id=b intent=i", "deferred dependency v2 r2 open");
    s.check("p start", "applied v1 r1 open");
    assert_eq!(s.last.ready, [s.id("o")]);
    s.release();
    s.check("o start", "duplicate v5 r5 busy");
    s.check("o work id=c intent=i", "duplicate intent v5 r6 busy");
}

#[test]
fn snapshot_overwrites() {
    let mut s = Story::new(Ordering::Snapshot);
    s.check("o@5 start", "applied v5 r1 open");
    s.check("o@3 start", "stale v5 r1 open");
    s.check("o@5 start id=b", "duplicate v5 r1 open");
    s.check("o@5 start id=c : data:x", "conflict version v5 r1 open");
    s.check("o@9 work", "applied v9 r2 busy");
    s.check("o@12 note", "skipped configured v12 r3 busy");
    s.check("o@20 work after=never", "deferred dependency v12 r3 busy");
    s.check("o@20 work id=copy after=never", "duplicate v12 r3 busy");
    s.check("o@20 rest id=other", "conflict waiting v12 r3 busy");
    s.check("o@19 work", "applied v19 r4 busy");
    s.check("o@21 work", "applied v21 r5 busy");
    assert_eq!(s.decided(), ["o@21 work: applied", "o@20 work: stale"]);
}

#[test]
fn a_higher_snapshot_supersedes_a_parked_one() {
    let mut s = Story::new(Ordering::Snapshot);
    s.check("o@1 start : illegal", "illegal no v0 r0 -");
    s.check("o@2 start after=never", "deferred dependency v0 r0 -");
    assert_eq!(s.entity("o").dead.len(), 1, "a deferred one supersedes nothing");
    s.check("o@3 start : malformed", "malformed what v0 r0 -");
    let parked: Vec<_> = s.entity("o").dead.iter().map(|d| d.event.as_ref().unwrap().version).collect();
    assert_eq!(parked, [Some(3)], "a refused one does");
    s.check("o@4 start", "applied v4 r1 open");
    assert!(s.entity("o").dead.is_empty());
    s.commit();
    assert!(s.tables.dead.values().all(|row| row.status == DeadStatus::Superseded));
    assert_eq!(s.tables.counts[&(0, Verdict::Skipped)], 2);
    assert_eq!(s.tables.inbox[&s.event("o@1 start").key].reason.as_deref(), Some("superseded"));
    assert!(s.tables.alarms.is_empty(), "{:?}", s.tables.alarms);
}

fn early() -> Story {
    Story::with(Ordering::Causal, |setup| setup.early_after = Some(100))
}

#[test]
fn early_events_wait_for_their_state() {
    let mut s = early();
    s.check("o special", "deferred early v0 r0 -");
    s.check("o start", "applied v1 r1 open");
    s.check("o work", "applied v3 r3 busy");
    assert_eq!(s.decided(), ["o work: applied", "o special: applied"]);
    s.check("o rest", "applied v4 r4 open");
    s.check("o special id=b", "deferred early v4 r4 open");
    s.check("o stop", "applied v5 r5 shut");
    assert_eq!(s.decided(), ["o stop: applied", "b: illegal"], "it is reached no more");
}

#[test]
fn early_events_have_a_deadline() {
    let mut s = early();
    s.deliver("o start");
    s.check("o special", "deferred early v1 r1 open");
    s.check("o special id=b", "deferred early v1 r1 open");
    assert_eq!(s.entity("o").waiting[0].deadline, Some(1_100));
    s.now = 1_099;
    assert_eq!(s.take(&Input::Deadline(s.id("o"))).unwrap().outcome.verdict, Verdict::Skipped);
    s.now = 1_100;
    s.take(&Input::Deadline(s.id("o"))).unwrap();
    assert_eq!(s.decided(), ["o special: illegal"]);
    assert_eq!(s.last.decided[0].1.code.as_deref(), Some("early-deadline"));
    assert!(s.entity("o").blocked() && s.entity("o").waiting.len() == 1, "the other one waits behind it");
}

#[test]
fn every_overdue_event_is_refused_at_its_deadline() {
    let mut s = early();
    s.machine().setup = Arc::new(crate::setup::Setup {
        policies: crate::setup::Policies { illegal: Policy::Skip, ..Default::default() },
        ..(*s.machine().setup).clone()
    });
    s.deliver("o start");
    s.deliver("o special");
    s.deliver("o special id=b");
    s.now = 5_000;
    s.take(&Input::Deadline(s.id("o"))).unwrap();
    assert_eq!(s.decided(), ["o special: illegal", "b: illegal"]);
    assert_eq!(s.shown("o"), "v1 r3 open");
}

#[test]
fn the_deadline_counts_from_when_it_was_early() {
    let mut s = early();
    s.deliver("o start");
    s.deliver("o work id=parked : illegal");
    s.check("o special", "deferred blocked v1 r1 open");
    assert_eq!(s.entity("o").waiting[0].deadline, None);
    s.now = 1_050;
    let by = Actor { name: "ada".into(), reason: "bogus".into() };
    let action = Action::Skip(s.letter("o"));
    s.take(&Input::Person { by, action }).unwrap();
    let row = &s.entity("o").waiting[0];
    assert_eq!((row.reason, row.since, row.deadline), (DeferReason::Early, 1_000, Some(1_150)));
}
