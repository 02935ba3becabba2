//! Small histories by hand.
#![allow(dead_code, missing_docs, clippy::unwrap_used)]

use std::collections::BTreeSet;

use seqgate_model::*;

/// One machine under test, fed step by step.
pub struct Case {
    pub history: History,
    pub oracle: Oracle,
    machine: &'static str,
    position: u64,
}

/// An event being written down.
#[derive(Clone)]
pub struct Ev(pub Event);

/// An event of a machine; its id is `KEY-VERSION` or must be given.
pub fn ev(kind: &str, key: &str) -> Ev {
    let machine = match kind.split('.').next() {
        Some("order") => "orders",
        Some("subscription") => "subscriptions",
        _ => "accounts",
    };
    let value = Some(Value::object([]));
    Ev(Event {
        machine: machine.into(),
        source: "/cases".into(),
        id: String::new(),
        kind: kind.into(),
        key: key.into(),
        version: None,
        previous: None,
        time: Some(0),
        idempotency_key: None,
        depends_on: vec![],
        logical_time: None,
        content_type: Some("application/json".into()),
        data: b"{}".to_vec(),
        value,
    })
}

impl Ev {
    pub fn v(mut self, version: u64) -> Ev {
        self.0.version = Some(version);
        if self.0.id.is_empty() {
            self.0.id = format!("{}-{version}", self.0.key);
        }
        self
    }
    pub fn after(mut self, previous: u64) -> Ev {
        self.0.previous = Some(previous);
        self
    }
    pub fn id(mut self, id: &str) -> Ev {
        self.0.id = id.into();
        self
    }
    pub fn intent(mut self, key: &str) -> Ev {
        self.0.idempotency_key = Some(key.into());
        self
    }
    pub fn needs(mut self, kind: &str) -> Ev {
        self.0.depends_on.push(Dependency::Type(kind.into()));
        self
    }
    pub fn needs_version(mut self, machine: &str, key: &str, version: u64) -> Ev {
        let entity = entity(machine, key);
        self.0.depends_on.push(Dependency::Version(Target { entity, version }));
        self
    }
    pub fn logical(mut self, time: u64) -> Ev {
        self.0.logical_time = Some(time);
        self
    }
    /// Data by value; its bytes are a spelling of it, which only has to differ where the value is spelled otherwise.
    pub fn data<const N: usize>(mut self, members: [(&str, Value); N]) -> Ev {
        let value = Value::object(members);
        self.0.data = format!("{value:?}").into_bytes();
        self.0.value = Some(value);
        self
    }
    /// Minor units in EUR under the name that the type wants.
    pub fn eur(self, amount: &str) -> Ev {
        let name = if self.0.kind == "order.created" { "total" } else { "amount" };
        self.data([(name, Value::number(amount)), ("currency", Value::text("EUR"))])
    }
}

pub fn entity(machine: &str, key: &str) -> EntityId {
    EntityId { machine: machine.into(), key: key.into() }
}

pub fn event_id(id: &str) -> EventId {
    EventId { machine: "orders".into(), source: "/cases".into(), id: id.into() }
}

pub fn letter(id: &str) -> LetterId {
    LetterId { subject: LetterSubject::Event(event_id(id)), nth: 0 }
}

pub const APPLIED: Outcome = Outcome::Decided(Verdict::Applied, None);
pub const DUPLICATE: Outcome = Outcome::Decided(Verdict::Duplicate, None);
pub const STALE: Outcome = Outcome::Decided(Verdict::Stale, None);
pub const CONFLICT: Outcome = Outcome::Decided(Verdict::Conflict, None);
pub const ILLEGAL: Outcome = Outcome::Decided(Verdict::Illegal, None);
pub const MALFORMED: Outcome = Outcome::Decided(Verdict::Malformed, None);
pub const FAULT: Outcome = Outcome::Decided(Verdict::Fault, None);
pub const SKIPPED: Outcome = Outcome::Decided(Verdict::Skipped, None);

pub const fn deferred(reason: Reason) -> Outcome {
    Outcome::Decided(Verdict::Deferred, Some(reason))
}

impl Case {
    /// All machines with that ordering, parking everything.
    pub fn new(ordering: Ordering) -> Case {
        Case::with(ordering, |_| {})
    }

    /// The same, with options.
    pub fn with(ordering: Ordering, options: impl Fn(&mut MachineSetup)) -> Case {
        let mut machine = MachineSetup {
            ordering,
            on_illegal: Policy::Park,
            on_malformed: Policy::Park,
            on_fault: Policy::Park,
            on_unknown: Policy::Park,
            ignore: BTreeSet::new(),
            on_early_wait: false,
            early_after: 3_600_000,
        };
        options(&mut machine);
        let machines = ["orders", "subscriptions", "accounts"];
        let setup = Setup {
            machines: machines.into_iter().map(|m| (m.to_owned(), machine.clone())).collect(),
            sources: vec![SourceSetup { name: "case".into(), partitions: 1 }],
            markers: true,
        };
        let oracle = Oracle::new(&setup);
        Case { history: History { seed: 0, setup, steps: vec![] }, oracle, machine: "orders", position: 0 }
    }

    fn delivery(&mut self, meaning: Meaning) -> Delivery {
        self.position += 10;
        let (source, position) = ("case".to_owned(), self.position);
        Delivery { source, partition: 0, position, received: 0, bytes: vec![], meaning, replay: false }
    }

    pub fn step(&mut self, step: Step) -> Outcome {
        self.history.steps.push(step);
        let act = act_of(&self.history, self.history.steps.len() - 1).unwrap();
        self.oracle.act(&self.history, &act)
    }

    pub fn deliver(&mut self, ev: Ev) -> Outcome {
        let delivery = self.delivery(Meaning::Event(Box::new(ev.0)));
        self.step(Step::Deliver(delivery))
    }

    pub fn malformed(&mut self, key: Option<&str>) -> Outcome {
        let entity = key.map(|key| entity(self.machine, key));
        let delivery = self.delivery(Meaning::Malformed { entity, why: "by hand" });
        self.step(Step::Deliver(delivery))
    }

    pub fn person(&mut self, decision: Decision) -> Outcome {
        let (actor, reason) = ("ada".to_owned(), "by hand".to_owned());
        self.step(Step::Person(PersonStep { actor, reason, now: 0, decision }))
    }

    /// Decides what is ready.
    pub fn ready(&mut self) -> Vec<EntityId> {
        let ready = self.oracle.ready();
        for entity in &ready {
            self.oracle.act(&self.history, &Act::Ready(entity.clone()));
        }
        ready
    }

    pub fn observed(&self) -> Observed {
        self.oracle.observed()
    }

    /// State, version and revision.
    pub fn entity(&self, machine: &str, key: &str) -> (String, u64, u64) {
        let view = self.observed().entities.remove(&entity(machine, key)).unwrap_or_default();
        (view.state.unwrap_or_default(), view.version, view.revision)
    }

    pub fn order(&self, key: &str) -> (String, u64, u64) {
        self.entity("orders", key)
    }

    /// The event's verdict now.
    pub fn verdict(&self, id: &str) -> Verdict {
        let inbox = self.observed().inbox;
        inbox.iter().find(|(event, _)| event.id == id).unwrap().1.verdict
    }

    /// Counts by verdict.
    pub fn verdicts(&self) -> Vec<(Verdict, u64)> {
        self.observed().counters.into_iter().map(|((_, _, v), n)| (v, n)).collect()
    }
}

/// `(state, version, revision)` as [`Case::order`] gives it.
pub fn is(state: &str, version: u64, revision: u64) -> (String, u64, u64) {
    (state.to_owned(), version, revision)
}
