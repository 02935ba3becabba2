//! How much one decision releases, and how the rest goes on (R3).

use super::*;
use crate::machine::ReleaseLimits;

fn limited(ordering: Ordering, limits: ReleaseLimits) -> Story {
    let mut s = Story::with(ordering, |setup| setup.early_after = Some(100));
    s.machine().release = limits;
    s
}

#[test]
fn a_release_goes_on_in_further_transactions() {
    let mut s = limited(Ordering::Versioned, ReleaseLimits { events: 3, bytes: usize::MAX });
    s.deliver("o@1 start");
    s.deliver_all((3..=10).map(|v| format!("o@{v} work")));
    s.check("o@2 work", "applied v5 r5 busy");
    assert_eq!(s.decided().len(), 4);
    assert_eq!(s.last.ready, [s.id("o")]);
    assert!(s.entity("o").has_ready());
    s.commit();
    let mut transactions = 0;
    while let Some(entity) = s.ready.pop_first() {
        s.take(&Input::Release(entity)).unwrap();
        assert!(s.decided().len() <= 3);
        s.commit();
        transactions += 1;
    }
    s.check("o@2 work", "duplicate v10 r10 busy");
    assert_eq!(transactions, 2);
    assert!(s.tables.waiting.is_empty());
}

#[test]
fn bytes_are_limited_too() {
    let mut s = limited(Ordering::Versioned, ReleaseLimits { events: 100, bytes: 10 });
    s.deliver("o@1 start");
    s.deliver_all((3..=6).map(|v| format!("o@{v} work : 678901")));
    s.check("o@2 work", "applied v4 r4 busy");
    s.release();
    s.check("o@2 work", "duplicate v6 r6 busy");
}

/// Early events are asked after every change, and are no progress: they must not use up what a release may let go.
#[test]
fn a_release_ends_however_many_go_on_waiting() {
    for ordering in [Ordering::Causal, Ordering::Arrival] {
        let mut s = limited(ordering, ReleaseLimits { events: 2, bytes: usize::MAX });
        s.deliver_all((0..5).map(|i| format!("o special id=early{i}")));
        s.deliver_all((0..5).map(|i| format!("o work id=w{i} after={ordering}/p@1")));
        s.check("o start after=start", "deferred dependency v0 r0 -");
        s.check("p start", "applied v1 r1 open");
        s.commit();
        for rounds in 0.. {
            assert!(rounds < 10, "{ordering}: it goes on for ever");
            let Some(entity) = s.ready.pop_first() else { break };
            s.take(&Input::Release(entity)).unwrap();
            s.commit();
        }
    }
}

#[test]
fn causal_and_snapshot_releases_are_limited() {
    let mut s = limited(Ordering::Causal, ReleaseLimits { events: 2, bytes: usize::MAX });
    s.deliver("o start");
    s.deliver_all((0..5).map(|i| format!("o work id={i} after=work")));
    s.check("o work", "applied v4 r4 busy");
    s.release();
    s.check("o work", "duplicate v7 r7 busy");
    let mut s = limited(Ordering::Snapshot, ReleaseLimits { events: 2, bytes: usize::MAX });
    s.deliver_all((1..=5).map(|v| format!("o@{v} start after=never")));
    s.check("o@9 start", "applied v9 r1 open");
    assert_eq!(s.decided(), ["o@9 start: applied", "o@1 start: stale", "o@2 start: stale"]);
    s.release();
    assert!(s.tables.waiting.is_empty());
}

#[test]
fn who_is_marked_ready_is_written() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start after=versioned/q@1");
    s.deliver("p@1 start after=versioned/q@1");
    s.deliver("q@1 start");
    let ready = |w: &WaitingWrite| matches!(w, WaitingWrite::Ready);
    assert_eq!(s.last.writes.waiting.values().filter(|w| ready(w)).count(), 2);
    assert_eq!(s.last.writes.touched.len(), 2, "their guards rise: no wake-up is lost");
    assert!(s.entity("o").has_ready() && s.entity("p").has_ready());
    assert!(s.entity("q").waiters.is_empty());
}
