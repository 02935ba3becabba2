//! What the rules say must become of a history.
//!
//! The oracle keeps lists: of each entity's changes, of deliveries with their present verdict, of waiting events, dead
//! letters and conflicts. Whatever else is asked (a state, a version, who holds an idempotency key) is worked out from
//! those lists each time. A job a file: `view` folds an entity, `arrive` is what each ordering asks of a new event, `take`
//! is steps 7 to 10 of R3, `rules` their last question, `release` lets waiting events go, `adopt` is import and erasing, `person` and `input` are what comes from outside the sources.

mod adopt;
mod arrive;
mod ask;
mod input;
mod person;
mod release;
mod report;
mod rules;
mod take;
mod view;

use std::collections::BTreeMap;

use crate::coverage::Coverage;
use crate::{
    Act, ConflictReason, ConflictStatus, Delivery, EntityId, Event, EventId, History, LetterKind, LetterStatus,
    LetterSubject, Meaning, Ordering, Outcome, Policy, Reason, Setup, Step, Target, TimerRules, Verdict,
};
use view::{Cause, Change};

/// The oracle.
#[derive(Clone, Debug)]
pub struct Oracle {
    setup: Setup,
    rules: BTreeMap<String, InForce>,
    log: BTreeMap<EntityId, Vec<Change>>,
    inbox: BTreeMap<EventId, InboxRow>,
    waiting: Vec<Waiter>,
    letters: Vec<Letter>,
    quarantine: Vec<Conflict>,
    tally: Vec<Tally>,
    /// By (source, partition): the last position read.
    read: BTreeMap<(String, u32), u64>,
    clock: i64,
    deferrals: u64,
    coverage: Coverage,
}

/// The rules in force of a machine.
#[derive(Clone, Debug)]
struct InForce {
    schema: u32,
    reads: Vec<u32>,
    refuses: bool,
    timers: TimerRules,
}

/// One delivery and its present verdict: what the counters count.
#[derive(Clone, Debug)]
struct Tally {
    source: String,
    partition: u32,
    verdict: Verdict,
}

/// A readable event on its way, with its time and the delivery that it came with. A replacement comes with none.
#[derive(Clone, Debug)]
struct Item {
    event: Event,
    time: i64,
    tally: Option<usize>,
}

#[derive(Clone, Debug)]
struct InboxRow {
    event: Event,
    verdict: Verdict,
    deliveries: u64,
}

#[derive(Clone, Debug)]
struct Waiter {
    item: Item,
    reason: Reason,
    /// Its place in the order of deferral.
    order: u64,
    /// Since when it waits for this reason: an early one's deadline counts from there.
    since: i64,
    /// What the rules have named so far (R3 step 10).
    named: Vec<Target>,
}

#[derive(Clone, Debug)]
struct Letter {
    subject: LetterSubject,
    entity: Option<EntityId>,
    kind: LetterKind,
    class: Verdict,
    unknown_type: bool,
    status: LetterStatus,
    item: Option<Item>,
    /// The delivery of a malformed envelope.
    tally: Option<usize>,
}

#[derive(Clone, Debug)]
struct Conflict {
    item: Item,
    reason: ConflictReason,
    copies: u64,
    status: ConflictStatus,
}

impl Oracle {
    /// An oracle before anything happened.
    pub fn new(setup: &Setup) -> Oracle {
        let first = InForce { schema: 1, reads: vec![], refuses: false, timers: TimerRules::Real };
        Oracle {
            setup: setup.clone(),
            rules: setup.machines.keys().map(|name| (name.clone(), first.clone())).collect(),
            log: BTreeMap::new(),
            inbox: BTreeMap::new(),
            waiting: Vec::new(),
            letters: Vec::new(),
            quarantine: Vec::new(),
            tally: Vec::new(),
            read: BTreeMap::new(),
            clock: i64::MIN,
            deferrals: 0,
            coverage: Coverage::default(),
        }
    }

    /// What was counted so far.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Carries out one act of the history.
    ///
    /// # Panics
    /// Where the act's index is not that of a step of its kind.
    pub fn act(&mut self, history: &History, act: &Act) -> Outcome {
        let step = |i: usize| &history.steps[i];
        match act {
            Act::Deliver(i) => match step(*i) {
                Step::Deliver(delivery) => self.deliver(delivery),
                other => panic!("step {i} is no delivery: {other:?}"),
            },
            Act::Ready(entity) => {
                self.coverage.hit("input", "ready");
                self.release(entity);
                Outcome::Done
            }
            Act::Deadline(i, only) => match step(*i) {
                Step::Deadline { now } => self.deadline(*now, only.as_ref()),
                other => panic!("step {i} is no deadline: {other:?}"),
            },
            Act::Repair(i) | Act::Timer(i) | Act::Person(i) | Act::Rules(i) | Act::Migrate(i) | Act::Import(i) => {
                match step(*i) {
                    Step::Repair(delivery) => self.repair(delivery),
                    Step::Timer { entity, name, now } => self.timer(entity, name, *now),
                    Step::Person(person) => self.person(person),
                    Step::Migrate { entity } => self.migrate_input(entity),
                    Step::Import(import) => self.import(import),
                    Step::Rules { machine, schema, reads, refuses, timers } => {
                        let now = InForce { schema: *schema, reads: reads.clone(), refuses: *refuses, timers: *timers };
                        self.coverage.hit("input", "rules");
                        self.rules.insert(machine.clone(), now);
                        Outcome::Done
                    }
                    other => panic!("step {i} is none of an act's: {other:?}"),
                }
            }
        }
    }

    fn deliver(&mut self, delivery: &Delivery) -> Outcome {
        self.coverage.hit("input", "deliver");
        self.clock = self.clock.max(delivery.received);
        let partition = (delivery.source.clone(), delivery.partition);
        let tally = self.count(&partition.0, partition.1);
        // A position below the stored offset is a duplicate, whatever the inbox still holds (R2).
        if self.read.get(&partition).is_some_and(|last| delivery.position <= *last) {
            if let Meaning::Event(event) = &delivery.meaning
                && let Some(row) = self.inbox.get_mut(&event.event_id())
            {
                row.deliveries += 1;
            }
            self.coverage.hit("input", "deliver below the offset");
            self.tally[tally].verdict = Verdict::Duplicate;
            return Outcome::Decided(Verdict::Duplicate, None);
        }
        self.read.insert(partition, delivery.position);
        let outcome = match &delivery.meaning {
            Meaning::Event(event) => self.receive(event, delivery.received, tally),
            Meaning::Malformed { entity, .. } => self.malformed(delivery, entity.as_ref(), tally),
        };
        self.cover(&delivery.meaning, outcome);
        outcome
    }

    fn repair(&mut self, delivery: &Delivery) -> Outcome {
        self.coverage.hit("input", "repair");
        self.clock = self.clock.max(delivery.received);
        let Meaning::Event(event) = &delivery.meaning else {
            return Outcome::Refused;
        };
        let tally = self.count(&format!("repair:{}", event.machine), 0);
        let outcome = self.receive(event, delivery.received, tally);
        self.cover(&delivery.meaning, outcome);
        outcome
    }

    fn cover(&mut self, meaning: &Meaning, outcome: Outcome) {
        let Outcome::Decided(verdict, reason) = outcome else {
            return;
        };
        let what = reason.map_or(verdict.to_string(), |r| format!("{verdict} ({r})"));
        self.coverage.hit("verdict", &verdict.to_string());
        let machine = match meaning {
            Meaning::Event(event) => &event.machine,
            Meaning::Malformed { entity: Some(entity), .. } => &entity.machine,
            Meaning::Malformed { entity: None, .. } => return,
        };
        let ordering = self.ordering(machine);
        self.coverage.hit(&ordering.to_string(), &what);
    }

    fn count(&mut self, source: &str, partition: u32) -> usize {
        // The verdict is set before anything looks at it.
        self.tally.push(Tally { source: source.to_owned(), partition, verdict: Verdict::Duplicate });
        self.tally.len() - 1
    }

    /// A malformed envelope: kept by source position. It blocks nobody, except that in causal and arrival machines one
    /// with a usable machine and subject is a refusal of that entity (R5).
    fn malformed(&mut self, delivery: &Delivery, entity: Option<&EntityId>, tally: usize) -> Outcome {
        self.coverage.hit("step", "1");
        self.tally[tally].verdict = Verdict::Malformed;
        let numbered = |e: &&EntityId| matches!(self.ordering(&e.machine), Ordering::Causal | Ordering::Arrival);
        let entity = entity.filter(numbered).cloned();
        let skip = entity.as_ref().is_some_and(|e| {
            !self.blocked(e) && (self.view(e).erased || self.setup.machines[&e.machine].on_malformed == Policy::Skip)
        });
        self.letters.push(Letter {
            subject: LetterSubject::Envelope {
                source: delivery.source.clone(),
                partition: delivery.partition,
                position: delivery.position,
            },
            entity: entity.clone(),
            kind: LetterKind::Event,
            class: Verdict::Malformed,
            unknown_type: false,
            status: if skip { LetterStatus::Skipped } else { LetterStatus::Open },
            item: None,
            tally: Some(tally),
        });
        if let Some(entity) = entity
            && skip
        {
            self.change(&entity, Cause::Skip, None, None);
            self.release(&entity);
        }
        Outcome::Decided(Verdict::Malformed, None)
    }

    fn ordering(&self, machine: &str) -> Ordering {
        self.setup.machines[machine].ordering
    }

    /// Gives an event's delivery its verdict, and its inbox row where the row is that delivery's.
    fn verdict(&mut self, item: &Item, verdict: Verdict) {
        if let Some(tally) = item.tally {
            self.tally[tally].verdict = verdict;
        }
        if let Some(row) = self.inbox.get_mut(&item.event.event_id()) {
            row.verdict = verdict;
        }
    }

    /// The entities that a release pass would move on: something there waits for others, and all of it is met (R3).
    pub fn ready(&self) -> Vec<EntityId> {
        let mut all: Vec<EntityId> = self
            .waiting
            .iter()
            .filter(|w| matches!(w.reason, Reason::Dependency | Reason::Waiting))
            .filter(|w| self.askable(w) && self.is_up(w))
            .map(|w| w.item.event.entity())
            .filter(|entity| !self.blocked(entity))
            .collect();
        all.sort();
        all.dedup();
        all
    }
}
