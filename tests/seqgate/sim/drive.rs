//! Drives the core through a history: batches of one partition at a time, commits, releases, restarts; and keeps what
//! every act came to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use seqgate_decide::decide::{Action, DeadTarget, Decision, Erase, Input, OpenConflict, Outcome, Undecided, decide};
use seqgate_decide::envelope::{Decoded, Limits, Received, decode};
use seqgate_decide::event::Event;
use seqgate_decide::ids::{Digest, EntityId};
use seqgate_decide::machine::{Machine, Machines};
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::World;
use seqgate_decide::writes::{Actor, DeadStatus, RulesRef, Writes};
use seqgate_model as model;
use seqgate_model::{Act, Delivery, History, Meaning, Step};

use super::memory::Memory;
use super::names;
use super::native::{Manner, NativeRules};

/// What a run of a history came to.
pub struct Ran {
    pub acts: model::Recorded,
    pub outcomes: Vec<Option<model::Outcome>>,
    pub observed: model::Observed,
    /// Bytes that were read as something else than what they mean.
    pub misread: Vec<String>,
    pub swept: usize,
}

/// Runs a history through the core.
pub fn run(history: &History) -> Ran {
    let mut sim = Sim::new(history);
    for (i, step) in history.steps.iter().enumerate() {
        sim.step(i, step);
    }
    sim.flush();
    Ran {
        acts: sim.acts,
        outcomes: sim.outcomes,
        observed: sim.memory.observed(),
        misread: sim.misread,
        swept: sim.memory.ready().len(),
    }
}

struct Sim<'h> {
    history: &'h History,
    memory: Memory,
    machines: Machines,
    activation: u64,
    /// Deliveries of one partition that go together.
    batch: Vec<(usize, &'h Delivery)>,
    offsets: BTreeMap<(String, u32), u64>,
    acts: model::Recorded,
    outcomes: Vec<Option<model::Outcome>>,
    misread: Vec<String>,
}

impl<'h> Sim<'h> {
    fn new(history: &'h History) -> Self {
        let mut machines = Machines::default();
        for (name, setup) in &history.setup.machines {
            let rules = NativeRules::new(name, Manner::real(history.setup.markers));
            let in_force = RulesRef { activation: 1, digest: Digest([0; 32]) };
            machines.insert(Machine::new(Arc::new(names::setup(name, setup)), Box::new(rules), in_force));
        }
        Self {
            history,
            memory: Memory::default(),
            machines,
            activation: 1,
            batch: Vec::new(),
            offsets: BTreeMap::new(),
            acts: Vec::new(),
            outcomes: Vec::new(),
            misread: Vec::new(),
        }
    }

    fn step(&mut self, i: usize, step: &'h Step) {
        let same =
            |(_, last): &(usize, &Delivery), d: &Delivery| last.source == d.source && last.partition == d.partition;
        match step {
            Step::Deliver(d) if self.batch.last().is_none_or(|last| same(last, d)) => return self.batch.push((i, d)),
            Step::Deliver(d) => {
                self.flush();
                return self.batch.push((i, d));
            }
            _ => self.flush(),
        }
        match step {
            Step::Deliver(_) | Step::Cut | Step::Restart | Step::HandOver { .. } => {}
            Step::Repair(d) => {
                let input = self.input(d, false);
                self.act(Act::Repair(i), &input, d.received, |d| Some(decided(&d.outcome)));
            }
            Step::Timer { entity, name, now } => {
                let input = Input::Timer { entity: names::entity(entity), name: name.as_str().into() };
                self.act(Act::Timer(i), &input, *now, |d| {
                    Some(match d.outcome.verdict {
                        Verdict::Applied => model::Outcome::Done,
                        Verdict::Skipped => model::Outcome::Ignored,
                        Verdict::Fault => model::Outcome::Decided(model::Verdict::Fault, None),
                        _ => model::Outcome::Refused,
                    })
                });
            }
            Step::Person(person) => match self.person(person) {
                Some(input) => self.act(Act::Person(i), &input, person.now, |_| Some(model::Outcome::Done)),
                None => self.note(Act::Person(i), Some(model::Outcome::Refused)),
            },
            Step::Rules { machine, schema, reads, refuses, timers } => {
                self.activation += 1;
                let (markers, reads) = (self.history.setup.markers, reads.clone());
                let manner = Manner { markers, schema: *schema, reads, refuses: *refuses, timers: *timers };
                let setup = Arc::new(names::setup(machine, &self.history.setup.machines[machine]));
                let in_force = RulesRef { activation: self.activation, digest: Digest([0; 32]) };
                self.machines.insert(Machine::new(setup, Box::new(NativeRules::new(machine, manner)), in_force));
                self.note(Act::Rules(i), None);
            }
            Step::Migrate { entity } => {
                self.act(Act::Migrate(i), &Input::Migrate(names::entity(entity)), 0, |_| None);
            }
            Step::Import(step) => {
                self.act(Act::Import(i), &names::import(step), step.now, |_| Some(model::Outcome::Done));
            }
            Step::Deadline { now } => self.deadline(i, *now),
        }
    }

    fn deadline(&mut self, i: usize, now: i64) {
        let overdue = self.memory.overdue(now);
        let entities: BTreeSet<EntityId> = overdue.iter().map(|(id, _)| id.clone()).collect();
        let mut acts = Vec::new();
        for entity in entities {
            self.decide_and_commit(&Input::Deadline(entity), now, &mut acts);
        }
        self.note(Act::Deadline(i, None), None);
        self.acts.append(&mut acts);
        self.outcomes.resize(self.acts.len(), None);
    }

    fn note(&mut self, act: Act, outcome: Option<model::Outcome>) {
        self.acts.push(act);
        self.outcomes.push(outcome);
    }

    /// Decides and commits an input of its own, and what it makes ready.
    fn act(&mut self, act: Act, input: &Input, now: i64, outcome: impl Fn(&Decision) -> Option<model::Outcome>) {
        let mut released = Vec::new();
        let decision = self.decide_and_commit(input, now, &mut released);
        self.note(act, decision.map_or(Some(model::Outcome::Refused), |d| outcome(&d)));
        self.acts.append(&mut released);
        self.outcomes.resize(self.acts.len(), None);
    }

    fn decide_and_commit(&mut self, input: &Input, now: i64, released: &mut model::Recorded) -> Option<Decision> {
        let mut world = World::new();
        let decision = self.decide(&mut world, input, now)?;
        let mut host = Host::default();
        host.take(&mut world, decision.clone());
        let ready = host.commit(&mut self.memory, &world);
        self.release(ready, now, released);
        Some(decision)
    }

    /// Asks until the world knows enough; `None` is a refusal.
    fn decide(&mut self, world: &mut World, input: &Input, now: i64) -> Option<Decision> {
        loop {
            match decide(world, &mut self.machines, input, now) {
                Ok(decision) => return Some(decision),
                Err(Undecided::Need(need)) => {
                    assert!(!world.knows(&need), "{need:?} is asked for and known");
                    self.memory.load(&need, world);
                }
                Err(Undecided::Refused(_)) => return None,
            }
        }
    }

    fn release(&mut self, ready: BTreeSet<EntityId>, now: i64, released: &mut model::Recorded) {
        for entity in ready {
            released.push(Act::Ready(names::model_entity(&entity)));
            self.decide_and_commit(&Input::Release(entity), now, released);
        }
    }

    /// Commits the deliveries in hand, in as many transactions as ready entities ask for.
    fn flush(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        let mut from = 0;
        while from < batch.len() {
            let (mut world, mut host) = (World::new(), Host::default());
            let mut taken = 0;
            let mut now = 0;
            for (i, d) in &batch[from..] {
                let at = (d.source.clone(), d.partition);
                let redelivered = self.offsets.get(&at).is_some_and(|offset| d.position < *offset);
                let input = self.input(d, redelivered);
                let entity = match &input {
                    Input::Event { event, .. } => Some(event.entity.clone()),
                    Input::Malformed { malformed, .. } => malformed.entity.clone(),
                    _ => None,
                };
                if taken > 0 && entity.is_some_and(|e| host.ready.contains(&e)) {
                    break;
                }
                now = d.received;
                let decision = self.decide(&mut world, &input, now).expect("deliveries are never refused");
                self.note(Act::Deliver(*i), Some(decided(&decision.outcome)));
                host.take(&mut world, decision);
                if !d.replay {
                    self.offsets.insert(at, d.position + d.bytes.len() as u64 + 1);
                }
                taken += 1;
            }
            from += taken;
            let ready = host.commit(&mut self.memory, &world);
            let mut released = Vec::new();
            self.release(ready, now, &mut released);
            self.acts.append(&mut released);
            self.outcomes.resize(self.acts.len(), None);
        }
    }

    fn decode(&self, bytes: &[u8], received_at: i64) -> Decoded {
        let received = Received { bytes, key: None, record_time: None, received_at, machine: None };
        decode(&received, &self.machines, &Limits::default())
    }

    fn input(&mut self, d: &Delivery, redelivered: bool) -> Input {
        let decoded = self.decode(&d.bytes, d.received);
        self.misread.extend(misread(d, &decoded));
        let position = names::position(d);
        match decoded {
            Decoded::Event(event) => Input::Event { event, position, redelivered },
            Decoded::Malformed(malformed) => {
                Input::Malformed { malformed, raw: d.bytes.as_slice().into(), position, redelivered }
            }
        }
    }

    fn person(&self, step: &model::PersonStep) -> Option<Input> {
        let action = match &step.decision {
            model::Decision::Redrive(id) => Action::Redrive(self.letter(id)?),
            model::Decision::Skip(id) => Action::Skip(self.letter(id)?),
            model::Decision::Compensate(id) => Action::Compensate(self.letter(id)?),
            model::Decision::Replace(id, bytes, _) => match self.decode(bytes, step.now) {
                Decoded::Event(event) => Action::Replace(self.letter(id)?, event),
                Decoded::Malformed(m) => panic!("a correction is readable: {m:?}"),
            },
            model::Decision::Erase(id, live) => {
                Action::Erase(Erase { entity: names::entity(id), live: *live, envelopes: Vec::new() })
            }
            model::Decision::DismissDeferred(id) => {
                let (entity, id) = self.memory.deferred(&names::event(id))?;
                Action::DismissWaiting(entity, id)
            }
            model::Decision::DismissConflict(id) => {
                let (id, row) = self.memory.conflict(id)?;
                if row.dismissed.is_some() {
                    return None;
                }
                let (event, position) = (row.event.clone(), row.position.clone());
                Action::DismissConflict(OpenConflict { id, event, position })
            }
        };
        Some(Input::Person { by: Actor { name: step.actor.clone(), reason: step.reason.clone() }, action })
    }

    fn letter(&self, id: &model::LetterId) -> Option<DeadTarget> {
        let (id, row) = self.memory.letter(id)?;
        if row.status != DeadStatus::Open {
            return None;
        }
        let envelope = row.raw.as_ref().map(|raw| {
            (row.position.clone().expect("an envelope was received somewhere"), self.decode(raw, row.since))
        });
        Some(DeadTarget { id, entity: row.entity.clone(), envelope })
    }
}

/// The rows of one transaction.
#[derive(Default)]
struct Host {
    writes: Writes,
    changed: BTreeSet<EntityId>,
    ready: BTreeSet<EntityId>,
}

impl Host {
    fn take(&mut self, world: &mut World, mut decision: Decision) {
        self.changed.extend(decision.entity.as_ref().map(|e| e.id.clone()));
        world.absorb(&mut decision);
        self.ready.extend(decision.ready);
        self.writes.merge(decision.writes);
    }

    fn commit(mut self, memory: &mut Memory, world: &World) -> BTreeSet<EntityId> {
        for id in &self.changed {
            self.writes.touched.remove(id);
            self.writes.entities.insert(id.clone(), world.get(id).expect("it was decided").clone());
        }
        assert!(memory.commit(&self.writes, world), "nobody races here");
        self.ready
    }
}

fn decided(outcome: &Outcome) -> model::Outcome {
    model::Outcome::Decided(names::verdict(outcome.verdict), outcome.defer.map(names::reason))
}

/// What was read against what it means.
fn misread(d: &Delivery, decoded: &Decoded) -> Vec<String> {
    let text = String::from_utf8_lossy(&d.bytes);
    let text: String = text.chars().take(300).collect();
    match (&d.meaning, decoded) {
        (Meaning::Malformed { entity, why }, Decoded::Malformed(got)) => {
            let got = got.entity.as_ref().map(names::model_entity);
            // Machines with versions have no use for the entity, and the model does not name it.
            match entity {
                Some(_) if got != *entity => vec![format!("{text}: {why}, of {entity:?}, was read as of {got:?}")],
                _ => vec![],
            }
        }
        (Meaning::Event(means), Decoded::Event(got)) => {
            let wrong = differs(means, got, d.received);
            if wrong.is_empty() { vec![] } else { vec![format!("{text}: {} differ", wrong.join(", "))] }
        }
        (Meaning::Malformed { why, .. }, Decoded::Event(_)) => vec![format!("{text}: {why}, and was read as an event")],
        (Meaning::Event(_), Decoded::Malformed(m)) => vec![format!("{text}: was refused: {:?}", m.reason)],
    }
}

fn differs(means: &model::Event, got: &Event, received: i64) -> Vec<&'static str> {
    let mut wrong = Vec::new();
    let mut check = |what, same: bool| {
        if !same {
            wrong.push(what);
        }
    };
    check("entity", names::entity(&means.entity()) == got.entity);
    check("identity", names::event(&means.event_id()) == got.key);
    check("type", means.kind == *got.kind);
    check("version", got.version.is_none() || means.version == got.version);
    check("previous", got.version.is_none() || means.previous == got.previous);
    check("time", means.time.unwrap_or(received) == got.time);
    check("intent", means.idempotency_key.as_deref() == got.idempotency_key.as_deref());
    check("logical time", means.logical_time == got.logical_time);
    check("content type", means.content_type.as_deref() == got.content_type.as_deref());
    check("dependencies", means.depends_on.len() == got.depends_on.len());
    check("data", means.data == *got.data);
    wrong
}
