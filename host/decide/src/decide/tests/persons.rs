//! A person's decisions (R5).

use super::*;

fn blocked() -> Story {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.deliver("o@2 work : illegal");
    s.deliver("o@3 work");
    s
}

fn refused(result: Result<&Decision, Undecided>) -> String {
    match result {
        Err(Undecided::Refused(reason)) => reason.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn redrive_under_the_rules_in_force() {
    let mut s = blocked();
    s.person(Action::Redrive(s.letter("o"))).unwrap();
    assert_eq!(s.shown("o"), "v1 r1 open");
    assert_eq!(s.entity("o").dead[0].attempts, 2);
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.deliver("o@2 work after=start intent=i : fault");
    s.deliver("o@3 work");
    s.deliver("p@1 start intent=i");
    s.person(Action::Redrive(s.letter("o"))).unwrap();
    assert_eq!(s.decided(), ["o@2 work: conflict"], "its intent was taken meanwhile");
    assert!(!s.entity("o").blocked());
}

#[test]
fn skip_releases_what_waited_and_signs_only_its_own() {
    let mut s = blocked();
    s.person(Action::Skip(s.letter("o"))).unwrap();
    assert_eq!(s.shown("o"), "v3 r3 busy");
    assert_eq!(s.decided(), ["o@2 work: skipped", "o@3 work: applied"]);
    s.commit();
    let signed: Vec<_> = s.tables.history.iter().map(|row| (row.cause, row.by.is_some())).collect();
    assert_eq!(signed, [(Cause::Event, false), (Cause::Skip, true), (Cause::Event, false)]);
    assert_eq!(s.tables.counts[&(0, Verdict::Skipped)], 1);
    assert!(!s.tables.counts.contains_key(&(0, Verdict::Illegal)));
    assert!(s.tables.alarms.is_empty(), "unblocking clears the alarm");
    let [audit] = &s.tables.audit[..] else { panic!("{:?}", s.tables.audit) };
    assert_eq!(
        (&audit.action[..], &audit.outcome[..], audit.by.name.as_str()),
        ("dead-letter skip", "skipped (by-hand)", "ada")
    );
    assert!(audit.subject.ends_with(" of versioned/o"), "{}", audit.subject);
    s.check("o@2 work id=again : illegal", "duplicate v3 r3 busy");
}

#[test]
fn what_is_closed_cannot_be_redriven() {
    let mut s = blocked();
    let letter = s.letter("o");
    s.person(Action::Skip(letter.clone())).unwrap();
    for action in [Action::Redrive(letter.clone()), Action::Skip(letter.clone()), Action::Compensate(letter)] {
        assert_eq!(refused(s.person(action)), "not-open");
    }
    s.commit();
    assert_eq!(s.tables.audit.len(), 1, "what fails is not on record");
}

#[test]
fn compensate_by_hand() {
    let mut s = blocked();
    assert_eq!(refused(s.person(Action::Compensate(s.letter("o")))), "not-compensated");
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.deliver("o@2 work : illegal compensate send:refund");
    s.person(Action::Compensate(s.letter("o"))).unwrap();
    assert_eq!(s.shown("o"), "v2 r2 open");
    s.commit();
    assert_eq!(
        s.tables.dead.values().map(|row| (row.status, row.by.is_some())).collect::<Vec<_>>(),
        [(DeadStatus::Compensated, true)]
    );
    assert_eq!(s.tables.counts[&(0, Verdict::Illegal)], 1, "the verdict stays");
}

#[test]
fn replace_decides_a_corrected_event() {
    let mut s = blocked();
    let letter = s.letter("o");
    s.deliver("q@1 start id=taken");
    for (line, expect) in [
        ("o@3 work id=fix", "other-place"),
        ("p@2 work id=fix", "other-place"),
        ("o@2 work id=taken", "known-id"),
        ("o@2 rest id=fix", "not-accepted"),
    ] {
        let event = s.event(line);
        assert_eq!(refused(s.person(Action::Replace(letter.clone(), event))), expect, "{line}");
    }
    let event = s.event("o@2 work id=fix : data:9");
    s.person(Action::Replace(letter, event)).unwrap();
    assert_eq!(s.shown("o"), "v3 r3 busy");
    s.commit();
    let row = s.tables.dead.values().next().unwrap();
    assert_eq!((row.status, row.replaced_by.as_ref().map(|key| &*key.id)), (DeadStatus::Replaced, Some("fix")));
    let fix = &s.tables.inbox[&s.event("o@2 work id=fix").key];
    assert_eq!((fix.verdict, fix.first.as_ref(), fix.deliveries), (Verdict::Applied, None, 0));
    assert_eq!(s.tables.inbox[&s.event("o@2 work").key].verdict, Verdict::Skipped);
}

#[test]
fn dismiss_a_waiting_event() {
    let mut s = Story::new(Ordering::Arrival);
    s.deliver("o start");
    s.deliver("o work id=bogus after=never");
    s.deliver("o work");
    let id = s.entity("o").waiting[0].id();
    s.person(Action::DismissWaiting(s.id("o"), id)).unwrap();
    assert_eq!(
        (s.decided(), s.shown("o").as_str()),
        (vec!["bogus: skipped".into(), "o work: applied".into()], "v2 r2 busy")
    );
    assert_eq!(refused(s.person(Action::DismissWaiting(s.id("o"), id))), "not-waiting");
    s.commit();
    assert_eq!(s.tables.counts[&(0, Verdict::Skipped)], 1);
    assert!(s.tables.history[1].by.is_none(), "nobody asked for what was released");
}

#[test]
fn dismiss_a_conflict_once() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start intent=i");
    s.check("o@2 work id=c intent=i", "conflict intent v1 r1 open");
    s.deliver("o@3 work");
    let (id, event, position) = (
        Ref::of_conflict(&s.event("o@2 work id=c intent=i").key, &s.event("o@2 work").digest),
        s.event("o@2 work id=c intent=i"),
        Some(s.position(1)),
    );
    let action = Action::DismissConflict(OpenConflict { id, event, position });
    s.person(action.clone()).unwrap();
    assert_eq!(s.decided(), ["c: skipped", "o@3 work: applied"]);
    assert_eq!(s.shown("o"), "v3 r3 busy");
    assert_eq!(refused(s.person(action.clone())), "not-open", "in the same batch");
    s.commit();
    assert_eq!(refused(s.person(action)), "not-open", "and later");
    assert_eq!(s.tables.counts[&(0, Verdict::Skipped)], 1);
    assert!(s.tables.alarms.is_empty(), "{:?}", s.tables.alarms);
    assert_eq!(s.tables.history[1].cause, Cause::Dismiss);
}

#[test]
fn dismissing_a_conflict_guards_its_entity() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.deliver("o@1 start id=c : data:2");
    let event = s.event("o@1 start id=c : data:2");
    let id = Ref::of_conflict(&event.key, &event.digest);
    let decision = s.person(Action::DismissConflict(OpenConflict { id, event, position: None })).unwrap();
    assert!(decision.entity.is_none());
    assert!(decision.writes.touched.iter().any(|e| *e.key == *b"o"), "two persons at once are told apart by its guard");
}

#[test]
fn dismissing_a_fork_passes_nobody_over() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.check("o@2 work after=never", "deferred dependency v1 r1 open");
    s.check("o@3<1 work", "conflict fork v1 r1 open");
    let event = s.event("o@3<1 work");
    let id = Ref::of_conflict(&event.key, &event.digest);
    s.person(Action::DismissConflict(OpenConflict { id, event, position: None })).unwrap();
    assert_eq!((s.shown("o").as_str(), s.entity("o").waiting.len()), ("v1 r1 open", 1));
}
