//! An entity folded from its changes, and the questions that steps ask of the lists.

use std::collections::{BTreeMap, BTreeSet};

use super::{Letter, Oracle, Waiter};
use crate::facts;
use crate::machines::{Effect, Facts, Move, machine};
use crate::{Dependency, EntityId, Event, ImportStep, LetterKind, LetterStatus, MessageView, Ordering, Reason, Target};

/// Why an entity changed. Every one of these but the last adds exactly 1 to the revision (R5).
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cause {
    Event,
    Ignored,
    IntentDuplicate,
    Skip,
    Compensation,
    Dismiss,
    Timer(String),
    Migration,
    Import(Box<ImportStep>),
    Erase,
    /// A timer that was ignored or faulted is gone: no revision (R6).
    TimerGone(String),
}

/// A line of an entity's history.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) cause: Cause,
    pub(super) event: Option<Event>,
    /// The transition and the time it was decided by.
    pub(super) step: Option<(Move, i64)>,
    /// The layout that the rules wrote.
    pub(super) schema: Option<u32>,
}

/// An entity now.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) state: Option<String>,
    pub(super) version: u64,
    pub(super) revision: u64,
    pub(super) facts: Facts,
    pub(super) timers: BTreeMap<String, i64>,
    pub(super) seen: BTreeSet<String>,
    pub(super) schema: Option<u32>,
    /// Up to here, the history of another system.
    pub(super) imported: u64,
    pub(super) erased: bool,
    pub(super) messages: Vec<MessageView>,
}

/// The version an event follows, in a versioned machine.
pub(super) fn predecessor(event: &Event) -> u64 {
    event.previous.unwrap_or_else(|| version(event) - 1)
}

/// The version of an event whose machine needs one: without it, the envelope would be malformed (R1).
pub(super) fn version(event: &Event) -> u64 {
    event.version.unwrap_or_else(|| panic!("{} has no version", event.event_id()))
}

impl Change {
    /// What this change makes of the entity's version (R3, R4).
    fn numbers(&self, ordering: Ordering, version: u64) -> u64 {
        let up = |yes: bool| if yes { version + 1 } else { version };
        match ordering {
            Ordering::Versioned | Ordering::Snapshot => self.event.as_ref().and_then(|e| e.version).unwrap_or(version),
            Ordering::Causal => up(self.cause == Cause::Event),
            Ordering::Arrival => {
                up(matches!(self.cause, Cause::Event | Cause::Ignored | Cause::Skip | Cause::Compensation))
            }
        }
    }
}

impl View {
    fn fold(id: &EntityId, ordering: Ordering, changes: &[Change]) -> View {
        let mut view = View::default();
        for change in changes {
            if let Cause::Timer(name) | Cause::TimerGone(name) = &change.cause {
                view.timers.remove(name);
            }
            if matches!(change.cause, Cause::TimerGone(_)) {
                continue;
            }
            view.revision += 1;
            view.version = change.numbers(ordering, view.version);
            view.schema = change.schema.or(view.schema);
            match &change.cause {
                Cause::Import(import) => view.import(&id.machine, import),
                Cause::Erase => {
                    view.erased = true;
                    view.facts.clear();
                    view.timers.clear();
                }
                _ => {}
            }
            if let (Cause::Event, Some(event)) = (&change.cause, &change.event) {
                view.seen.insert(event.kind.clone());
            }
            if let Some((step, time)) = &change.step {
                view.step(id, step, *time);
            }
        }
        view
    }

    fn import(&mut self, machine: &str, import: &ImportStep) {
        (self.version, self.imported) = (import.version, import.version);
        self.state = Some(import.state.clone());
        self.facts = facts(machine, &import.data);
        self.schema = Some(import.schema);
        self.seen.extend(import.seen.iter().cloned());
        self.timers.clone_from(&import.timers);
    }

    fn step(&mut self, id: &EntityId, step: &Move, time: i64) {
        self.state = Some(step.state.clone());
        self.facts = step.facts.clone();
        let mut index = 0;
        for effect in &step.effects {
            match effect {
                Effect::StartAfter(name, wait) => _ = self.timers.insert((*name).to_owned(), time + wait),
                Effect::StartAt(name, due) => _ = self.timers.insert((*name).to_owned(), *due),
                Effect::Cancel(name) => _ = self.timers.remove(*name),
                Effect::Send(kind) => {
                    let kind = (*kind).to_owned();
                    self.messages.push(MessageView { revision: self.revision, index, topic: None, kind });
                    index += 1;
                }
            }
        }
        if !machine(&id.machine).is_live(&step.state) {
            self.timers.clear();
        }
    }
}

impl Oracle {
    /// The entity now, folded from nothing.
    pub(super) fn view(&self, id: &EntityId) -> View {
        View::fold(id, self.ordering(&id.machine), self.log.get(id).map_or(&[], Vec::as_slice))
    }

    /// Writes a change into the entity's history.
    pub(super) fn change(&mut self, id: &EntityId, cause: Cause, event: Option<&Event>, step: Option<(Move, i64)>) {
        let schema = (step.is_some() || cause == Cause::Migration).then(|| self.rules[&id.machine].schema);
        let change = Change { cause, event: event.cloned(), step, schema };
        self.log.entry(id.clone()).or_default().push(change);
    }

    /// The event whose history row consumed that version (R3 step 3).
    pub(super) fn consumed(&self, id: &EntityId, version: u64) -> Option<&Event> {
        self.log.get(id)?.iter().filter_map(|c| c.event.as_ref()).find(|e| e.version == Some(version))
    }

    /// The applied event that holds an idempotency key; only applied events do (R2).
    pub(super) fn intent(&self, machine: &str, key: &str) -> Option<&Event> {
        let of_machine = self.log.iter().filter(|(id, _)| id.machine == machine);
        of_machine
            .flat_map(|(_, changes)| changes)
            .filter(|c| c.cause == Cause::Event)
            .filter_map(|c| c.event.as_ref())
            .find(|e| e.idempotency_key.as_deref() == Some(key))
    }

    /// An open dead letter blocks the entity: kind event or migration (R5). Snapshot machines ask this for timers only.
    pub(super) fn blocked(&self, id: &EntityId) -> bool {
        let blocks = |l: &&Letter| l.status == LetterStatus::Open && l.kind != LetterKind::Timer;
        self.letters.iter().filter(blocks).any(|l| l.entity.as_ref() == Some(id))
    }

    /// The entity's waiting events.
    pub(super) fn waiters<'a>(&'a self, id: &'a EntityId) -> impl Iterator<Item = &'a Waiter> {
        self.waiting.iter().filter(move |w| w.item.event.entity() == *id)
    }

    /// The entity's event that waits, or lies in an open dead letter, at that version (R3 step 4).
    pub(super) fn standing(&self, id: &EntityId, version: u64) -> Option<&Event> {
        let letters = self.letters.iter().filter(|l| l.status == LetterStatus::Open && l.kind == LetterKind::Event);
        let events = letters.filter_map(|l| l.item.as_ref()).chain(self.waiting.iter().map(|w| &w.item));
        events.map(|i| &i.event).find(|e| e.entity() == *id && e.version == Some(version))
    }

    /// Content is machine, key, type, version (where the ordering has any), and data by bytes or by value (R2).
    pub(super) fn same_content(&self, a: &Event, b: &Event) -> bool {
        let versions = match self.ordering(&a.machine) {
            Ordering::Versioned | Ordering::Snapshot => a.version == b.version,
            Ordering::Causal | Ordering::Arrival => true,
        };
        versions && (&a.machine, &a.key, &a.kind) == (&b.machine, &b.key, &b.kind) && same_data(a, b)
    }

    /// All dependencies of the event are met (R3 step 9).
    pub(super) fn met(&self, event: &Event) -> bool {
        event.depends_on.iter().all(|d| match d {
            Dependency::Type(kind) => self.view(&event.entity()).seen.contains(kind),
            Dependency::Version(target) => self.reached(target),
        })
    }

    /// The entity's version is that or more, however consumed.
    pub(super) fn reached(&self, target: &Target) -> bool {
        let known = self.setup.machines.contains_key(&target.entity.machine);
        known && self.view(&target.entity).version >= target.version
    }

    /// The entity's version.
    pub(crate) fn version(&self, id: &EntityId) -> u64 {
        self.view(id).version
    }

    /// Whether a waiting event has what it waited for, as far as others are concerned (R4).
    pub(super) fn askable(&self, w: &Waiter) -> bool {
        match w.reason {
            Reason::Dependency | Reason::Waiting => self.met(&w.item.event) && w.named.iter().all(|t| self.reached(t)),
            _ => true,
        }
    }

    /// Whether a release pass would come to this waiting event at all.
    pub(super) fn is_up(&self, w: &Waiter) -> bool {
        let id = w.item.event.entity();
        match self.ordering(&id.machine) {
            Ordering::Versioned => predecessor(&w.item.event) == self.view(&id).version,
            Ordering::Arrival => self.waiters(&id).all(|other| other.reason == Reason::Early || other.order >= w.order),
            Ordering::Causal | Ordering::Snapshot => true,
        }
    }
}

fn same_data(a: &Event, b: &Event) -> bool {
    let by_value = matches!((&a.value, &b.value), (Some(a), Some(b)) if a.same(b));
    a.data == b.data || by_value
}
