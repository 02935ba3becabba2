//! R6 and R8: timers, and data of another layout.

use super::*;

fn fire(s: &mut Story, key: &str) -> Result<String, String> {
    let input = Input::Timer { entity: s.id(key), name: "late".into() };
    match s.take(&input).map(|decision| decision.outcome.verdict) {
        Ok(verdict) => Ok(format!("{verdict} {}", s.shown(key))),
        Err(Undecided::Refused(reason)) => Err(reason.code),
        Err(need) => panic!("{need:?}"),
    }
}

fn started() -> Story {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start time=500 : start:late,100");
    s
}

#[test]
fn a_timer_changes_revision_not_version() {
    let mut s = started();
    assert_eq!(s.entity("o").timers.get("late"), Some(&600));
    s.now = 599;
    assert_eq!(fire(&mut s, "o"), Err("not-due".into()));
    s.now = 600;
    assert_eq!(fire(&mut s, "o"), Ok("applied v1 r2 shut".into()));
    assert_eq!(s.entity("o").entered, 600, "the due time is when it happened");
    assert_eq!(fire(&mut s, "o"), Err("no-timer".into()));
    s.commit();
    let row = &s.tables.history[1];
    assert_eq!((row.cause, row.consumed, row.time, row.timer.as_deref()), (Cause::Timer, None, 600, Some("late")));
    assert!(s.tables.timers.is_empty());
}

#[test]
fn a_timer_waits_for_events_and_dead_letters() {
    let mut s = started();
    s.deliver("o@3 work");
    assert_eq!(fire(&mut s, "o"), Err("timer-held".into()));
    let mut s = started();
    s.deliver("o@2 work : illegal");
    assert_eq!(fire(&mut s, "o"), Err("timer-held".into()));
}

#[test]
fn start_replaces_cancel_forgives_and_the_end_drops() {
    let mut s = started();
    s.deliver("o@2 work time=1000 : start:late,100 cancel:nothing");
    assert_eq!(s.entity("o").timers.get("late"), Some(&1_100));
    s.deliver("o@3 work : cancel:late start:late,18446744073709551615");
    assert_eq!(s.entity("o").timers.get("late"), Some(&i64::MAX), "never, and no overflow");
    s.deliver("o@4 stop : start:late,1");
    assert!(s.entity("o").timers.is_empty());
    let closed = s.last.writes.timers.values().next().unwrap();
    assert!(matches!(closed, TimerWrite::Close { outcome: "dropped", .. }), "{closed:?}");
}

#[test]
fn a_timer_that_the_rules_refuse_or_fault_on() {
    for (answer, expect, letters) in [
        ("illegal", "skipped v1 r1 open", 0),
        ("wait:versioned/p@1", "skipped v1 r1 open", 0),
        ("fault", "fault v1 r1 open", 1),
    ] {
        let mut s = started();
        s.activate(Toy { on_timer: answer, ..Toy::new("versioned", 1, &[]) });
        assert_eq!(fire(&mut s, "o"), Ok(expect.into()), "{answer}");
        assert_eq!((s.entity("o").timers.len(), s.entity("o").dead.len()), (0, letters));
        assert!(!s.entity("o").blocked());
        s.check("o@2 work", "applied v2 r2 busy");
    }
}

#[test]
fn a_faulty_timer_is_redriven() {
    let mut s = started();
    s.activate(Toy { on_timer: "fault:\0", ..Toy::new("versioned", 1, &[]) });
    fire(&mut s, "o").unwrap();
    let letter = s.letter("o");
    s.person(Action::Redrive(letter.clone())).unwrap();
    assert_eq!(s.entity("o").dead[0].attempts, 2);
    s.activate(Toy::new("versioned", 2, &[1]));
    s.person(Action::Redrive(letter)).unwrap();
    assert_eq!(s.shown("o"), "v1 r3 shut", "it was migrated first");
    assert!(s.entity("o").dead.is_empty());
    s.commit();
    assert_eq!(
        s.tables.history.iter().map(|row| row.cause).collect::<Vec<_>>(),
        [Cause::Event, Cause::Migration, Cause::Timer]
    );
}

#[test]
fn older_data_is_migrated_before_an_event() {
    let mut s = started();
    s.activate(Toy::new("versioned", 2, &[1]));
    s.check("o@2 work", "applied v2 r3 busy");
    assert_eq!(s.entity("o").schema, 2);
    s.commit();
    let row = &s.tables.history[1];
    assert_eq!(
        (row.cause, row.version, row.consumed, row.schema, row.rules.activation),
        (Cause::Migration, 1, None, 2, 4)
    );
}

#[test]
fn data_that_cannot_be_read_waits_for_other_rules() {
    let mut s = started();
    s.deliver("p@1 start");
    s.activate(Toy::new("versioned", 2, &[]));
    s.check("o@2 work : wait:versioned/p@1", "deferred schema v1 r1 open");
    s.check("o@3 rest", "deferred gap v1 r1 open");
    s.activate(Toy::new("versioned", 1, &[]));
    s.take(&Input::Release(s.id("o"))).unwrap();
    assert_eq!(s.shown("o"), "v3 r3 open");
}

#[test]
fn what_the_rules_named_outlives_a_schema() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("p@1 start");
    s.deliver("o@1 start");
    s.check("o@2 work : wait:versioned/p@2", "deferred waiting v1 r1 open");
    s.activate(Toy::new("versioned", 2, &[]));
    s.check("p@2 unheard-of", "deferred schema v1 r1 open");
    s.activate(Toy::new("versioned", 1, &[]));
    s.person(Action::DismissWaiting(s.id("p"), s.entity("p").waiting[0].id())).unwrap();
    s.check("p@2 work id=n", "applied v2 r2 busy");
    s.activate(Toy::new("versioned", 2, &[]));
    s.release();
    s.check("o@2 work : wait:versioned/p@2", "duplicate v1 r1 open");
    let row = &s.entity("o").waiting[0];
    assert_eq!((row.reason, &row.named[..]), (DeferReason::Schema, &[toy::dependency("versioned/p@2")][..]));
}

#[test]
fn a_failed_migration_blocks_its_entity_alone() {
    let mut s = started();
    s.deliver("p@1 start");
    let long: &'static str = Box::leak("\0".repeat(5_000).into_boxed_str());
    s.activate(Toy { migrates: Err(long), ..Toy::new("versioned", 2, &[1]) });
    s.check("o@2 work", "deferred blocked v1 r1 open");
    let letter = s.letter("o");
    assert_eq!(s.entity("o").dead[0].kind, DeadKind::Migration);
    s.check("q@1 start", "applied v1 r1 open");
    s.person(Action::Redrive(letter.clone())).unwrap();
    s.commit();
    let row = &s.tables.dead[&letter.id];
    assert!(row.message.len() <= 4_096 && !row.message.contains('\0') && row.attempts == 2, "{}", row.message.len());
    let skip = s.person(Action::Skip(letter.clone()));
    assert!(matches!(skip, Err(Undecided::Refused(reason)) if reason.code == "migration"));
    // Rules that read it, or those that wrote it.
    let mut back = started();
    for (s, toy, expect) in [
        (&mut s, Toy::new("versioned", 2, &[1]), "v2 r3 busy"),
        (&mut back, Toy::new("versioned", 1, &[]), "v2 r2 busy"),
    ] {
        if s.world.get(&s.id("o")).is_some_and(|o| o.dead.is_empty()) {
            s.activate(Toy { migrates: Err("no"), ..Toy::new("versioned", 2, &[1]) });
            s.check("o@2 work", "deferred blocked v1 r1 open");
        }
        s.activate(toy);
        s.person(Action::Redrive(letter.clone())).unwrap();
        assert_eq!(s.shown("o"), expect);
        assert!(!s.entity("o").blocked() && s.entity("o").waiting.is_empty());
    }
}

#[test]
fn a_migration_to_a_terminal_state_drops_the_timers() {
    let mut s = started();
    s.activate(Toy { migrates: Ok("shut"), ..Toy::new("versioned", 2, &[1]) });
    let migrated = s.take(&Input::Migrate(s.id("o"))).unwrap();
    assert_eq!(migrated.outcome.verdict, Verdict::Applied);
    assert_eq!((s.shown("o").as_str(), s.entity("o").timers.len()), ("v1 r2 shut", 0));
    assert_eq!(s.entity("o").entered, 500, "a state that is named anew was not entered");
    assert_eq!(s.take(&Input::Migrate(s.id("o"))).unwrap().outcome.verdict, Verdict::Skipped);
    let mut s = started();
    s.activate(Toy { migrates: Ok("shut"), ..Toy::new("versioned", 2, &[1]) });
    assert_eq!(fire(&mut s, "o"), Ok("skipped v1 r2 shut".into()));
}

#[test]
fn compensation_migrates_first() {
    let mut s = started();
    s.check("o@2 work : illegal compensate send:refund", "illegal no v1 r1 open");
    let letter = s.letter("o");
    s.activate(Toy::new("versioned", 2, &[]));
    assert!(s.person(Action::Compensate(letter.clone())).is_err(), "they cannot read its data");
    s.activate(Toy::new("versioned", 2, &[1]));
    s.person(Action::Compensate(letter)).unwrap();
    assert_eq!((s.shown("o").as_str(), s.entity("o").schema), ("v2 r3 open", 2));
}
