//! R3, step by step, for a versioned machine.

use super::*;

fn story() -> Story {
    Story::new(Ordering::Versioned)
}

#[test]
fn the_gate() {
    let mut s = story();
    s.check("o@1 start", "applied v1 r1 open");
    s.check("o@2 work", "applied v2 r2 busy");
    s.check("o@4 rest", "deferred gap v2 r2 busy");
    s.check("o@3 work", "applied v4 r4 open");
    assert_eq!(s.decided(), ["o@3 work: applied", "o@4 rest: applied"]);
    s.check("p@2 work", "deferred gap v0 r0 -");
}

#[test]
fn step_2_a_known_id() {
    let mut s = story();
    s.check("o@1 start id=a : data:1", "applied v1 r1 open");
    s.check("o@1 start id=a : data:1", "duplicate v1 r1 open");
    s.check("o@1 start id=a : data:2", "conflict id v1 r1 open");
    s.check("o@1 start id=a : data:2", "duplicate v1 r1 open");
    s.check("o@2 work id=a : data:1", "conflict id v1 r1 open");
    s.check("p@1 start id=a : data:1", "conflict id v0 r0 -");
    s.check("o@2 work id=a source=/other", "applied v2 r2 busy");
    s.commit();
    let copies: Vec<u64> = s.tables.conflicts.values().map(|row| row.copies).collect();
    assert_eq!(copies.iter().sum::<u64>(), 4);
    assert_eq!(s.tables.inbox[&s.event("o@1 start id=a").key].deliveries, 6);
    assert_eq!(s.tables.inbox[&s.event("o@1 start id=a").key].verdict, Verdict::Applied);
}

#[test]
fn a_conflict_says_what_it_is_about() {
    let mut s = story();
    s.deliver("o@1 start id=a : data:1");
    assert!(s.deliver("p@1 start id=a").outcome.message.as_ref().unwrap().contains("for versioned/o"));
    let other = s.deliver("o@1 start id=b source=/legacy : data:2").outcome.message.clone().unwrap();
    assert!(other.ends_with("two writers number this entity: /shop and /legacy"), "{other}");
    let same = s.deliver("o@1 start id=c : data:3").outcome.message.clone().unwrap();
    assert!(!same.contains("two writers"), "{same}");
    s.deliver("o@5 work id=d");
    let waits = s.deliver("o@5 rest id=e source=/legacy").outcome.message.clone().unwrap();
    assert!(waits.contains("event `d`") && waits.contains("two writers"), "{waits}");
    let fork = s.deliver("o@9<4 rest id=f source=/legacy").outcome.message.clone().unwrap();
    assert!(fork.contains("versions 5 and 9 both follow 4") && fork.contains("two writers"), "{fork}");
}

#[test]
fn content_is_compared_by_value() {
    let mut s = story();
    s.check(r#"o@1 start id=a : {"a":1.0,"b":"x"}"#, "applied v1 r1 open");
    s.check(r#"o@1 start id=a : {"b":"\u0078","a":1}"#, "duplicate v1 r1 open");
    s.check(r#"o@1 start id=b : { "a":1, "b":"x" }"#, "duplicate v1 r1 open");
    s.check(r#"o@1 start id=c : {"a":1.5,"b":"x"}"#, "conflict version v1 r1 open");
}

#[test]
fn step_3_an_old_version() {
    let mut s = story();
    s.deliver("o@1 start");
    s.deliver("o@5<1 work");
    s.check("o@1 start id=other", "duplicate v5 r2 busy");
    s.check("o@1 start id=third : data:x", "conflict version v5 r2 busy");
    s.check("o@3 work", "stale v5 r2 busy");
    s.check("o@5<4 work id=other", "conflict id v5 r2 busy");
    s.commit();
    s.tables.entities.get_mut(&s.id("o")).unwrap().pruned_through = 2;
    s.tables.history.retain(|row| row.consumed > Some(2));
    s.check("o@2 work id=n", "duplicate beyond retention v5 r2 busy");
    s.check("o@1 start id=m : data:y", "duplicate beyond retention v5 r2 busy");
    s.check("o@4 work id=q", "stale v5 r2 busy");
    s.check("o@5 work id=r", "duplicate v5 r2 busy");
}

#[test]
fn step_4_what_stands_at_a_version() {
    let mut s = story();
    s.deliver("o@1 start");
    s.check("o@3 work id=a", "deferred gap v1 r1 open");
    s.check("o@3 work id=b", "duplicate v1 r1 open");
    s.check("o@3 rest id=c", "conflict waiting v1 r1 open");
    s.check("o@2 work id=d : illegal", "illegal no v1 r1 open");
    s.check("o@2 work id=e : illegal", "duplicate v1 r1 open");
    s.check("o@2 work id=f", "conflict waiting v1 r1 open");
}

#[test]
fn step_5_a_blocked_entity() {
    let mut s = story();
    s.check("o@1 start : illegal", "illegal no v0 r0 -");
    s.check("o@2 work", "deferred blocked v0 r0 -");
    s.check("o@9 work", "deferred blocked v0 r0 -");
    s.check("p@1 start", "applied v1 r1 open");
}

#[test]
fn step_6_forks() {
    let mut s = story();
    s.deliver("o@1 start");
    s.deliver("o@2 work");
    s.check("o@5<1 work", "conflict fork v2 r2 busy");
    s.check("o@7<5 work", "deferred gap v2 r2 busy");
    s.check("o@8<5 work", "conflict fork v2 r2 busy");
    s.check("o@6 work", "conflict fork v2 r2 busy");
    s.check("o@3<2 work after=never", "deferred dependency v2 r2 busy");
    s.check("o@4<2 work", "conflict fork v2 r2 busy");
    s.check("p@4<0 start", "applied v4 r1 open");
}

#[test]
fn a_jump_passes_over_what_waited() {
    let mut s = story();
    s.deliver("o@1 start");
    s.deliver("o@3 work");
    s.deliver("o@4 work");
    s.deliver("o@9<4 work");
    s.deliver("o@12<3 work id=forked");
    s.check("o@6<1 work", "applied v6 r2 busy");
    let expect = ["o@6<1 work: applied", "o@3 work: stale", "o@4 work: stale", "o@9<4 work: conflict"];
    assert_eq!(s.decided(), expect);
    assert!(s.entity("o").waiting.is_empty());
}

#[test]
fn step_7_ignored_types() {
    let mut s = story();
    s.check("o@1 note after=never intent=i", "skipped configured v1 r1 -");
    s.check("o@2 start intent=i", "applied v2 r2 open");
    s.check("o@1 note id=b after=never", "duplicate v2 r2 open");
    s.check("o@1 note id=c : other", "conflict version v2 r2 open");
}

#[test]
fn step_8_intents() {
    let mut s = story();
    s.check("o@1 start intent=i : data:1", "applied v1 r1 open");
    s.check("o@2 start intent=i : data:1", "duplicate intent v2 r2 open");
    s.check("o@3 start intent=i : data:2", "duplicate differs v3 r3 open");
    s.check("o@4 work intent=i", "conflict intent v3 r3 open");
    s.check("p@1 start intent=i : data:1", "conflict intent v0 r0 -");
    s.check("o@4 work id=n intent=j : illegal", "illegal no v3 r3 open");
    s.check("p@1 start id=n2 intent=j", "applied v1 r1 open");
    s.commit();
    let kinds: Vec<_> = s.tables.alarms.iter().map(|(kind, subject)| (kind.name(), subject.as_str())).collect();
    assert!(kinds.contains(&("intent differs", "versioned/o i")), "{kinds:?}");
}

#[test]
fn step_9_dependencies() {
    let mut s = story();
    s.check("o@1 start after=work", "deferred dependency v0 r0 -");
    s.check("p@1 start after=versioned/q@2", "deferred dependency v0 r0 -");
    s.check("q@1 start", "applied v1 r1 open");
    assert!(s.last.ready.is_empty());
    s.check("q@2 note", "skipped configured v2 r2 open");
    assert_eq!(s.last.ready, [s.id("p")]);
    s.release();
    s.check("p@1 start after=versioned/q@2", "duplicate v1 r1 open");
    s.check("r@1 start", "applied v1 r1 open");
    s.check("r@2 work after=start,versioned/r@1", "applied v2 r2 busy");
    s.check("r@3 work after=rest", "deferred dependency v2 r2 busy");
}

#[test]
fn step_10_the_rules() {
    let mut s = story();
    s.deliver("o@1 start");
    for (i, (script, expect)) in [
        ("illegal", "illegal no"),
        ("malformed", "malformed what"),
        ("fault", "fault trap"),
        ("goto:open", "fault undeclared-edge"),
        ("goto:nowhere", "fault undeclared-state"),
        ("start:unheard-of", "fault undeclared-timer"),
        ("send:", "fault bad-name"),
        ("send:topic,", "fault bad-name"),
        ("wait:", "fault waiting-for-nothing"),
        ("wait:Versioned/p@1", "fault bad-name"),
        ("wait:versioned/p@0", "fault bad-name"),
    ]
    .into_iter()
    .enumerate()
    {
        let mut s = story();
        s.deliver("o@1 start");
        s.check(&format!("o@2 work id={i} : {script}"), &format!("{expect} v1 r1 open"));
    }
    s.check("o@2 rest", "illegal wrong-state v1 r1 open");
    let mut s = story();
    s.check("o@1 unheard-of", "illegal unknown-type v0 r0 -");
}

#[test]
fn rules_that_wait() {
    let mut s = story();
    s.deliver("p@1 start");
    s.check("o@1 start : wait:versioned/p@1", "applied v1 r1 open");
    s.check("o@2 work : wait:versioned/p@1 wait:versioned/p@2", "deferred waiting v1 r1 open");
    assert_eq!(s.entity("o").waiting[0].named, ["versioned/p@1", "versioned/p@2"].map(toy::dependency));
    s.check("p@2 work", "applied v2 r2 busy");
    assert_eq!(s.last.ready, [s.id("o")]);
    s.release();
    s.check("o@2 work : wait:versioned/p@1 wait:versioned/p@2", "duplicate v2 r2 busy");
    let names = |n: u64| (1..=n).map(|i| format!("versioned/x{i}@1")).collect::<Vec<_>>().join(",");
    s.check(&format!("o@3 work id=16 : wait:{}", names(16)), "deferred waiting v2 r2 busy");
    let mut s = story();
    s.deliver("o@1 start");
    s.check(&format!("o@2 work id=17 : wait:{}", names(17)), "fault waiting-for-too-many v1 r1 open");
}

#[test]
fn the_whole_range_of_versions() {
    let mut s = story();
    let (max, before) = (u64::MAX, u64::MAX - 1);
    s.check(&format!("o@{before}<0 start"), &format!("applied v{before} r1 open"));
    s.check(&format!("o@{max} work"), &format!("applied v{max} r2 busy"));
    s.check(&format!("o@{max} work id=b"), &format!("duplicate v{max} r2 busy"));
    s.check("o@1 start", &format!("stale v{max} r2 busy"));
    let mut s = Story::new(Ordering::Snapshot);
    s.check(&format!("o@{max} start"), &format!("applied v{max} r1 open"));
    s.check(&format!("o@{before} work"), &format!("stale v{max} r1 open"));
}

#[test]
fn a_position_that_was_decided_before() {
    let mut s = story();
    s.deliver("o@1 start");
    let event = s.event("o@1 start");
    let again = |event, position| Input::Event { event, position, redelivered: true };
    let decision = s.take(&again(event, s.position(0))).unwrap().clone();
    assert_eq!(decision.outcome.reason().as_deref(), Some("delivered-again"));
    assert!(decision.entity.is_none() && decision.writes.history.is_empty());
    s.take(&again(s.event("o@9 unheard-of"), s.position(0))).unwrap();
    s.commit();
    assert_eq!(s.tables.inbox.len(), 1, "an unknown id of old is not entered");
    assert_eq!(s.tables.inbox[&s.event("o@1 start").key].deliveries, 2);
    assert_eq!(s.tables.counts[&(0, Verdict::Duplicate)], 2);
}

#[test]
fn a_quarantined_event_may_outlive_its_inbox_row() {
    let mut s = story();
    s.deliver("o@1 start");
    s.check("o@1 start id=a : data:2", "conflict version v1 r1 open");
    s.commit();
    s.tables.inbox.clear();
    s.check("o@1 start id=a : data:2", "duplicate quarantined v1 r1 open");
    s.commit();
    assert_eq!(s.tables.conflicts.values().map(|row| row.copies).collect::<Vec<_>>(), [2]);
}
