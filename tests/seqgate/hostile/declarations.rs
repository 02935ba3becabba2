//! Answers of the contract's shape that say what the rules may not say.

use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::{Dependency, Effect, Message, Reason, Rejection, Transition, When};
use serde_json::json;

use super::{Hostile, MALICE, each_costs_one_event, opened};
use crate::program::lines;

fn message() -> Message {
    Message {
        topic: "mail".into(),
        kind: "mail.wanted".into(),
        key: None,
        content_type: "application/json".into(),
        attributes: vec![],
        data: b"{}".to_vec(),
    }
}

/// A guest that sends this message.
fn sending(
    name: &'static str,
    change: impl FnOnce(&mut Message),
    code: &'static str,
    says: &[&'static str],
) -> Hostile {
    let mut message = message();
    change(&mut message);
    Hostile::giving(name, |t| t.effects = vec![Effect::Send(message)], code, says)
}

fn start(name: &str, when: When) -> Effect {
    Effect::Start { name: name.into(), when }
}

#[test]
fn states_edges_and_timers_must_be_declared() {
    let state = |name, to: &'static str, code, says: &[&'static str]| {
        Hostile::giving(name, |t| t.state = to.into(), code, says)
    };
    each_costs_one_event(&[
        state("undeclared-state", "nowhere", "undeclared-state", &["`nowhere`"]),
        state("empty-state", "", "undeclared-state", &["do not declare"]),
        state("nul-state", "open\0", "undeclared-state", &["open\u{fffd}"]),
        state("undeclared-edge", "far", "undeclared-edge", &["from `absent` to `far` by event `thing.opened`"]),
        state("straight-to-the-end", "shut", "undeclared-edge", &["from `absent` to `shut`"]),
        Hostile::giving(
            "undeclared-timer",
            |t| t.effects = vec![start("never", When::After(1))],
            "undeclared-timer",
            &["`never`"],
        ),
        Hostile::giving(
            "nul-timer",
            |t| t.effects = vec![start("late\0", When::After(1))],
            "undeclared-timer",
            &["late"],
        ),
    ]);
}

/// The entity is shut, and the guest opens it again.
#[test]
fn nothing_leaves_a_terminal_state() {
    let guests =
        [Hostile::giving("undead", |t| t.state = "shut".into(), "undeclared-edge", &["from `shut` to `open`"])];
    let site = super::site(&guests);
    let key = |v| opened("undead", "bad").v(v);
    site.write(&lines(&[key(1), key(2).data(MALICE), key(3), opened("undead", "good")]));
    site.run();
    super::named(&site.list(&["dead-letter", "list"]), &guests[0]);
    assert_eq!(site.stands("undead", "bad"), ("shut".into(), 2, 2));
    assert_eq!(site.stands("undead", "good"), ("open".into(), 1, 1));
}

#[test]
fn effects_are_bounded_in_number_size_and_name() {
    let attributes =
        |n: usize, length: usize| (0..n).map(|n| (format!("a{n}"), "v".repeat(length))).collect::<Vec<_>>();
    let many = |n| move |t: &mut Transition| t.effects = vec![Effect::Send(message()); n];
    each_costs_one_event(&[
        Hostile::giving("too-many-effects", many(257), "too-many-effects", &["257 effects; the limit is 256 (fixed)"]),
        sending(
            "large-message",
            |m| m.data = vec![b'1'; 1_048_577],
            "result-too-large",
            &["a message's data has 1048577 bytes; the limit is 1048576 (fixed)"],
        ),
        sending("no-topic", |m| m.topic.clear(), "bad-name", &["topic", "1 to 256 bytes", "(fixed)"]),
        sending("long-topic", |m| m.topic = "t".repeat(257), "bad-name", &["topic", "1 to 256 bytes"]),
        sending("control-in-kind", |m| m.kind = "a\nb".into(), "bad-name", &["kind", "without control characters"]),
        sending("nul-media-type", |m| m.content_type = "a/b\0".into(), "bad-name", &["content type"]),
        sending("no-key", |m| m.key = Some(vec![]), "bad-name", &["key has 0 bytes; the limit is 1 to 512 (fixed)"]),
        sending("long-key", |m| m.key = Some(vec![1; 513]), "bad-name", &["key has 513 bytes"]),
        sending("loud-attribute", |m| m.attributes = vec![("Loud".into(), "v".into())], "bad-name", &["`Loud`"]),
        sending("nul-attribute", |m| m.attributes = vec![("a".into(), "v\0".into())], "bad-name", &["`a`", "control"]),
        sending(
            "many-attributes",
            |m| m.attributes = attributes(65, 1),
            "result-too-large",
            &["65 attributes", "64", "(fixed)"],
        ),
        sending(
            "large-attributes",
            |m| m.attributes = attributes(9, 1_000),
            "result-too-large",
            &["8192 bytes (fixed)"],
        ),
    ]);
}

fn named(machine: &str, key: &[u8], version: u64) -> Dependency {
    Dependency { entity: EntityId::new(machine, key.to_vec()), version }
}

#[test]
fn waiting_must_name_something_that_can_be() {
    let waits = |name, list: Vec<Dependency>, code, says: &[&'static str]| {
        Hostile::answering(name, &Err(Rejection::Waiting(list)), code, says)
    };
    let many = (0..17).map(|n| named("waits-for-many", b"k", n + 1)).collect();
    each_costs_one_event(&[
        waits("waits-for-nothing", vec![], "waiting-for-nothing", &["nothing that is not met"]),
        waits("waits-for-many", many, "waiting-for-too-many", &["17 versions; the limit is 16 (fixed)"]),
        waits("waits-for-no-name", vec![named("No Machine", b"k", 1)], "bad-name", &["waiting"]),
        waits("waits-for-no-key", vec![named("things", b"", 1)], "bad-name", &["waiting"]),
        waits("waits-for-zero", vec![named("things", b"k", 0)], "bad-name", &["version 0"]),
    ]);
}

/// What is met is asked again at once, with its name in `met`: a guest that waits all the same is no endless loop.
#[test]
fn waiting_for_ever_is_seen() {
    let wait = |name, on: &str| {
        let met = Err(Rejection::Waiting(vec![named(name, on.as_bytes(), 1)]));
        Hostile::answering(name, &met, "waiting-for-nothing", &["named nothing that is not met"])
    };
    let guests = [wait("waits-again", "good"), wait("waits-for-itself", "bad")];
    let site = super::site(&guests);
    let both = |name| [opened(name, "good"), opened(name, "bad").data(MALICE)];
    site.write(&lines(&[both("waits-again"), both("waits-for-itself")].concat()));
    site.run();
    // Whichever partition came first, the run ends with the one asked again.
    let letters = site.list(&["dead-letter", "list"]);
    super::named(&letters, &guests[0]);
    assert_eq!(letters.len(), 1);
    // What may still come about is listed as waiting, with what it waits for, and a person may take it out.
    let waiting = site.list(&["deferred", "list"]);
    let [one] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((&one["machine"], &one["reason"]), (&json!("waits-for-itself"), &json!("waiting")), "{one}");
    for guest in &guests {
        assert_eq!(site.stands(guest.name, "good"), ("open".into(), 1, 1));
    }
}

/// Codes and texts of refusals are kept, cut and without NUL.
#[test]
fn reasons_are_cut() {
    let reason = |code: &str| Reason::new(code, "m".repeat(100_000));
    let refusing =
        |name, code: &str, kept| Hostile::answering(name, &Err(Rejection::Illegal(reason(code))), kept, &["mmm…"]);
    each_costs_one_event(&[refusing("long-reason", "much", "much"), refusing("nul-reason", "a\0b", "a\u{fffd}b")]);
}

/// Times that no clock shows: they are kept as they are, and no timer ends a run.
#[test]
fn timers_at_the_ends_of_time_end_nothing() {
    let timer = |name, when| Hostile::giving(name, |t| t.effects = vec![start("late", when); 256], "", &[]);
    let guests = [
        timer("timer-past", When::At(i64::MIN)),
        timer("timer-future", When::At(i64::MAX)),
        timer("timer-overflow", When::After(u64::MAX)),
        // Each firing answers with the next timer, as overdue as the last.
        timer("timer-now", When::At(0)).fires(),
    ];
    let site = super::site(&guests);
    let both = guests.iter().flat_map(|g| [opened(g.name, "bad").data(MALICE), opened(g.name, "good")]);
    site.write(&lines(&both.collect::<Vec<_>>()));
    let fired = site.ask(&["run", "--until-idle", "--timers"])["timers"].as_u64().unwrap();
    assert_eq!(fired, 2, "each that is due, once a round");
    for guest in &guests {
        assert_eq!(site.stands(guest.name, "good"), ("open".into(), 1, 1));
        assert_eq!(site.entity(guest.name, "bad")["version"], 1);
    }
}

impl Hostile {
    /// Timers are answered like malice.
    fn fires(mut self) -> Self {
        let trigger = seqgate_test_guest::TRIGGER;
        let asked =
            format!("(i32.gt_u (i32.load offset={} (local.get 0)) (i32.const 2))", seqgate_test_guest::DATA_LENGTH);
        assert!(self.guest.apply.contains(&asked));
        let timer = format!("(i32.or {asked} (i32.load8_u offset={trigger} (local.get 0)))");
        self.guest.apply = self.guest.apply.replace(&asked, &timer);
        self
    }
}
