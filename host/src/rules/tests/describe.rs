//! Descriptions that contradict themselves, through a real component.

use seqgate_decide::rules::{Description, Origin, StateInfo, Trigger};

use super::super::describe::{Flaw, NameProblem};
use super::super::{LoadError, Refused};
use super::guest::{Guest, description, edge};
use super::load;

/// The flaws of the sound description after a change.
fn flaws(change: impl FnOnce(&mut Description)) -> Vec<Flaw> {
    let mut description = description();
    change(&mut description);
    match load(&Guest::describing(&description)) {
        Ok(_) => Vec::new(),
        Err(LoadError::Refused(Refused::Description { flaws })) => flaws,
        Err(other) => panic!("{other}"),
    }
}

fn event(name: &str) -> Trigger {
    Trigger::Event(name.into())
}

fn from(state: &str) -> Origin {
    Origin::State(state.into())
}

#[test]
fn a_sound_description_arrives_whole() {
    assert_eq!(**load(&Guest::new()).unwrap().description(), description());
}

#[test]
fn machine_names_are_plain() {
    for name in ["", "Orders", "1orders", "-orders", "or_ders", "ördérs"] {
        assert_eq!(flaws(|d| d.name = name.into()), [Flaw::Machine(name.into())]);
    }
    assert_eq!(flaws(|d| d.name = "o-2".into()), []);
}

#[test]
fn versions_are_semantic() {
    assert_eq!(flaws(|d| d.version = "1.0".into()), [Flaw::Version("1.0".into())]);
    assert_eq!(flaws(|d| d.version = "1.0.0-rc.1+b7".into()), []);
}

#[test]
fn own_schema_is_not_an_older_one() {
    assert_eq!(flaws(|d| d.reads.push(2)), [Flaw::OwnSchema(2)]);
}

#[test]
fn edges_start_and_end_at_declared_states() {
    let unknown = |edge: &str| Flaw::UnknownState { edge: edge.into(), state: "gone".into() };
    let origin = flaws(|d| d.edges.push(edge(from("gone"), event("x"), "open")));
    assert_eq!(origin, [unknown("edge gone -(event type x)-> open")]);
    let target = flaws(|d| d.edges.push(edge(from("open"), event("x"), "gone")));
    assert_eq!(target, [unknown("edge open -(event type x)-> gone")]);
}

#[test]
fn only_compensation_leaves_a_terminal_state() {
    for trigger in [event("x"), Trigger::Timer("x".into())] {
        let flaws = flaws(|d| d.edges.push(edge(from("shut"), trigger, "open")));
        assert!(matches!(flaws[..], [Flaw::FromTerminal(_)]), "{flaws:?}");
    }
    assert_eq!(flaws(|d| d.edges.push(edge(from("shut"), Trigger::Compensation("x".into()), "open"))), []);
}

#[test]
fn something_creates_entities() {
    assert_eq!(flaws(|d| d.edges.retain(|e| e.origin != Origin::Absent)), [Flaw::NoCreation]);
    let timer_only = flaws(|d| d.edges[0].trigger = Trigger::Timer("t".into()));
    assert_eq!(timer_only, [Flaw::NoCreation]);
}

#[test]
fn states_and_edges_are_declared_once() {
    let twice = |d: &mut Description| d.states.push(StateInfo { terminal: true, ..d.states[0].clone() });
    assert_eq!(flaws(twice), [Flaw::DuplicateState("open".into())]);
    assert!(matches!(flaws(|d| d.edges.push(d.edges[1].clone()))[..], [Flaw::DuplicateEdge(_)]));
    let fork = flaws(|d| d.edges.push(edge(from("open"), event("thing.opened"), "shut")));
    assert_eq!(fork, [], "several targets for one origin and trigger are fine");
    let kinds = flaws(|d| d.edges.push(edge(from("open"), Trigger::Timer("thing.opened".into()), "open")));
    assert_eq!(kinds, [], "an event and a timer of one name are two triggers");
}

#[test]
fn names_are_short_and_printable() {
    for (name, problem) in [
        (String::new(), NameProblem::Empty),
        ("a\u{7}b".into(), NameProblem::Control),
        ("a\u{85}b".into(), NameProblem::Control),
        ("a".repeat(257), NameProblem::Long),
    ] {
        let cut = name[..name.len().min(256)].to_owned();
        let state = StateInfo { name: name.clone(), terminal: false, expected_within: None };
        let found = flaws(|d| d.states.push(state));
        assert_eq!(found, [Flaw::Name { what: "state", name: cut.clone(), problem }]);
        let found = flaws(|d| d.edges.push(edge(from("open"), event(&name), "open")));
        assert_eq!(found, [Flaw::Name { what: "event type", name: cut, problem }]);
    }
    assert_eq!(flaws(|d| d.edges.push(edge(from("open"), event(&"a".repeat(256)), "open"))), []);
}

#[test]
fn sizes_are_bounded() {
    let many = flaws(|d| {
        let state = |n| StateInfo { name: format!("s{n}"), terminal: false, expected_within: None };
        d.states = (0..257).map(state).collect();
    });
    assert_eq!(many, [Flaw::TooMany { what: "states", count: 257, limit: 256 }]);
}

#[test]
fn every_flaw_is_told_at_once() {
    let found = flaws(|d| {
        d.version = "one".into();
        d.reads = vec![2];
    });
    assert_eq!(found, [Flaw::Version("one".into()), Flaw::OwnSchema(2)]);
}

#[test]
fn a_describe_that_traps_or_never_ends_is_refused() {
    for (body, expected) in [("(unreachable)", "trap"), ("(loop (br 0)) (unreachable)", "fuel")] {
        match load(&Guest { describe: body.into(), ..Guest::new() }).unwrap_err() {
            LoadError::Refused(Refused::DescribeFailed { code, .. }) => assert_eq!(code, expected),
            other => panic!("{other}"),
        }
    }
}
