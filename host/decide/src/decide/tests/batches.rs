//! A partial world, and rows of several decisions in one transaction.

use super::*;
use crate::world::{Need, World};

/// Two stories whose batches are cut differently end in the same tables.
#[track_caller]
fn check_cuts(ordering: Ordering, lines: &[&str]) {
    let run = |size: usize| {
        let mut s = Story::with(ordering, |setup| setup.policies.malformed = Policy::Skip);
        for (i, line) in lines.iter().enumerate() {
            s.deliver(line);
            if (i + 1) % size == 0 {
                s.commit();
            }
        }
        s.commit();
        s.tables
    };
    let (one_by_one, whole) = (run(1), run(lines.len()));
    assert_eq!(one_by_one, whole);
    assert_eq!(run(2), whole);
}

#[test]
fn a_batch_is_the_sum_of_its_decisions() {
    check_cuts(
        Ordering::Versioned,
        &[
            "o@1 start : send:a start:late,5",
            "o@1 start : send:a start:late,5",
            "o@3 work id=w",
            "o@3 rest id=x",
            "o@3 rest id=x",
            "o@2 work : cancel:late send:a",
            "o@4 rest : illegal",
            "o@4 rest id=again : illegal",
            "o@5 work",
            "p@1 start intent=i",
            "p@2 start id=j intent=i",
            "p@3 work : malformed",
            "p@4 work : send:a start:late",
            "q@4 work",
            "q@9<0 start",
        ],
    );
    check_cuts(
        Ordering::Snapshot,
        &[
            "o@1 start : illegal",
            "o@2 start : fault",
            "o@3 start",
            "o@9 work after=never",
            "o@9 work id=b",
            "o@12 work",
        ],
    );
    check_cuts(
        Ordering::Causal,
        &["o rest after=work", "o start", "o work", "o work", "o start id=b", "o stop : malformed", "o stop id=c"],
    );
    check_cuts(
        Ordering::Arrival,
        &["o start", "o work after=never", "o rest", "o rest", "p start : malformed", "p start id=b", "p work"],
    );
}

#[test]
fn a_partial_world_asks_and_never_guesses() {
    let mut s = Story::new(Ordering::Versioned);
    let asked = |s: &mut Story, line: &str| {
        s.commit();
        s.deliver(line);
        s.needs.clone()
    };
    let entity = |s: &Story, key: &str| Need::Entity(s.id(key));
    let inbox = |s: &Story, line: &str| Need::Inbox(s.event(line).key.clone());
    let line = "o@1 start";
    assert_eq!(asked(&mut s, line), [entity(&s, "o"), inbox(&s, line)]);
    assert_eq!(asked(&mut s, line), [entity(&s, "o"), inbox(&s, line)]);
    let line = "o@1 start id=b";
    assert_eq!(asked(&mut s, line), [entity(&s, "o"), inbox(&s, line), Need::History(s.id("o"), 1)]);
    let line = "o@2 work intent=i after=versioned/p@1,versioned/q@1 : wait:versioned/r@1";
    assert_eq!(
        asked(&mut s, line),
        [
            entity(&s, "o"),
            inbox(&s, line),
            Need::Intent("versioned".into(), "i".into()),
            entity(&s, "p"),
            entity(&s, "q")
        ],
        "what it waits for is looked at, to be told"
    );
    assert_eq!(s.last.outcome.defer, Some(DeferReason::Dependency));
    let line = "x@1 start : wait:versioned/y@1";
    assert_eq!(asked(&mut s, line), [entity(&s, "x"), inbox(&s, line), entity(&s, "y")]);
}

#[test]
fn asking_changes_nothing() {
    let mut s = Story::new(Ordering::Versioned);
    let input = Input::Event { event: s.event("o@1 start"), position: s.position(0), redelivered: false };
    let empty = World::new();
    for _ in 0..2 {
        let need = decide(&empty, &mut s.machines, &input, 1);
        assert_eq!(need, Err(Undecided::Need(Need::Entity(s.id("o")))));
    }
    let unknown = Input::Release(EntityId::new("unheard-of", *b"o"));
    assert!(matches!(decide(&empty, &mut s.machines, &unknown, 1), Err(Undecided::Refused(_))));
}

/// G8: nothing but the recorded times depends on the clock.
#[test]
fn host_time_decides_nothing() {
    let run = |now: i64| {
        let mut s = Story::new(Ordering::Versioned);
        s.now = now;
        for line in ["o@1 start : send:a start:late,5", "o@3 work", "o@2 work", "o@4 work : illegal"] {
            s.deliver(line);
        }
        s.commit();
        let rows = s.tables.history.iter();
        let rows: Vec<_> = rows.map(|r| (r.revision, r.time, r.data_digest, r.effects_digest)).collect();
        (rows, s.tables.timers.clone(), s.tables.entities.clone())
    };
    assert_eq!(run(0), run(i64::MAX));
}

#[test]
fn an_entity_that_is_loaded_late_lists_nobody_who_has_left() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@2 start after=versioned/p@1");
    s.commit();
    s.deliver("o@3<0 start");
    s.check("p@1 start", "applied v1 r1 open");
    assert!(s.last.ready.is_empty(), "{:?}", s.last.ready);
    s.commit();
}
