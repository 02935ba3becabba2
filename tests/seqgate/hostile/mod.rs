//! Guests that no honest author would build, each through the built program. A guest that loads costs one event, whose
//! dead letter names the limit it ran into; the next event of another entity is applied in the same run. One that
//! should never load is refused, in words that say which limit.

mod answers;
mod between;
mod components;
mod declarations;
mod exports;
mod flat;
mod stops;

use seqgate_decide::rules::{Description, Edge, Origin, Rejection, StateInfo, Transition, Trigger};
use seqgate_test_guest::{Guest, edge};
use serde_json::{Value, json};

use crate::program::{Ev, Site, ev, events, lines, machine_with};

/// Data that the guests of these tests answer with malice; they answer `{}` honestly.
const MALICE: &str = r#"{"do":"harm"}"#;

/// A machine with a state for every purpose.
fn description(name: &str) -> Description {
    let state = |name: &str, terminal| StateInfo { name: name.into(), terminal, expected_within: None };
    let event = |origin, target: &str| -> Edge { edge(origin, Trigger::Event("thing.opened".into()), target) };
    Description {
        name: name.into(),
        version: "1.0.0".into(),
        schema: 1,
        reads: vec![],
        states: vec![state("open", false), state("far", false), state("shut", true)],
        edges: vec![
            event(Origin::Absent, "open"),
            event(Origin::State("open".into()), "open"),
            event(Origin::State("open".into()), "shut"),
            edge(Origin::AnyLive, Trigger::Timer("late".into()), "open"),
            edge(Origin::State("open".into()), Trigger::Compensation("thing.opened".into()), "open"),
        ],
    }
}

/// The honest transition, to be changed.
fn transition() -> Transition {
    Transition { state: "open".into(), data: b"{}".to_vec(), ..Transition::default() }
}

/// A hostile guest, and what its dead letter has to say.
struct Hostile {
    name: &'static str,
    guest: Guest,
    /// Of its machine's configuration.
    settings: &'static str,
    malice: String,
    code: &'static str,
    says: Vec<&'static str>,
}

impl Hostile {
    /// An honest guest, until something is changed.
    fn new(name: &'static str, code: &'static str, says: &[&'static str]) -> Self {
        let guest = Guest::describing(&description(name));
        Self { name, guest, settings: "", malice: MALICE.into(), code, says: says.to_vec() }
    }

    /// A guest whose `apply` does this when it is asked with malice.
    fn doing(name: &'static str, body: &str, code: &'static str, says: &[&'static str]) -> Self {
        let mut hostile = Self::new(name, code, says);
        hostile.guest = hostile.guest.hostile(body);
        hostile
    }

    /// A guest that answers malice with this transition.
    fn giving(
        name: &'static str,
        change: impl FnOnce(&mut Transition),
        code: &'static str,
        says: &[&'static str],
    ) -> Self {
        let mut answer = transition();
        change(&mut answer);
        Self::answering(name, &Ok(answer), code, says)
    }

    /// A guest that answers malice so.
    fn answering(
        name: &'static str,
        answer: &Result<Transition, Rejection>,
        code: &'static str,
        says: &[&'static str],
    ) -> Self {
        let mut hostile = Self::new(name, code, says);
        hostile.guest = hostile.guest.lying(answer);
        hostile
    }

    fn fields(mut self, fields: &str) -> Self {
        self.guest.fields = fields.into();
        self
    }

    fn settings(mut self, settings: &'static str) -> Self {
        self.settings = settings;
        self
    }
}

/// An event of one of these machines.
fn opened(machine: &str, key: &str) -> Ev {
    ev("thing.opened", key).set("machine", machine).set("source", &format!("/{machine}")).v(1)
}

/// A site with a machine for each guest, all fed from one file.
fn site(guests: &[Hostile]) -> Site {
    let site = Site::new("");
    let machines = guests.iter().map(|hostile| {
        let file = site.path(&format!("{}.wasm", hostile.name));
        std::fs::write(&file, hostile.guest.module()).unwrap();
        machine_with(hostile.name, &file, hostile.settings)
    });
    site.configure(&(machines.collect::<String>() + &events(2)));
    site
}

/// Runs all guests at once: each costs its one event, is named by it, and nobody else is.
fn each_costs_one_event(guests: &[Hostile]) {
    let site = site(guests);
    let both = guests.iter().flat_map(|hostile| {
        let bad = opened(hostile.name, "bad").data(&hostile.malice);
        [bad, opened(hostile.name, "good")]
    });
    site.write(&lines(&both.collect::<Vec<_>>()));
    site.run();
    let letters = site.list(&["dead-letter", "list", "--limit", "1000"]);
    for hostile in guests {
        named(&letters, hostile);
        assert_eq!(site.stands(hostile.name, "good"), ("open".into(), 1, 1), "{}", hostile.name);
    }
    assert_eq!(letters.len(), guests.len());
}

/// The one dead letter of a guest says what its guest did.
#[track_caller]
fn named(letters: &[Value], hostile: &Hostile) {
    let name = hostile.name;
    let own: Vec<_> = letters.iter().filter(|letter| letter["machine"] == name).collect();
    let [letter] = own[..] else { panic!("{name}: {own:?} of {letters:#?}") };
    assert_eq!(letter["code"], json!(hostile.code), "{name}: {letter}");
    let message = letter["message"].as_str().unwrap();
    for says in &hostile.says {
        assert!(message.contains(says), "{name}: `{says}` is not in: {message}");
    }
}
