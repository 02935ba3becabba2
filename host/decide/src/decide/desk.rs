//! The working place of one decision: a copy of its entity, and the rows that it will write.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use crate::digest;
use crate::effects;
use crate::event::Event;
use crate::ids::{EntityId, EventKey, Position, Ref};
use crate::machine::{Machine, Machines};
use crate::rules::Dependency;
use crate::setup::Ordering;
use crate::verdict::Verdict;
use crate::world::{ConflictEntry, Consumed, DeadEntry, Entity, InboxEntry, Need, Waiter, Waiting, World};
use crate::writes::{
    Actor, AlarmKind, AlarmWrite, Cause, ConflictWrite, DeadUpdate, DeadWrite, HistoryRow, InboxWrite, TimerWrite,
    WaitingWrite, Writes,
};

use super::{Decision, Outcome, Undecided, refused};

pub(super) struct Desk<'a> {
    pub world: &'a World,
    pub machine: &'a mut Machine,
    pub now: i64,
    pub entity: Entity,
    /// The person on whose word this is decided.
    pub by: Option<Actor>,
    /// The entity's row is to be written.
    pub dirty: bool,
    /// Its version, state or blocking changed since waiting events were last asked.
    pub moved: bool,
    pub writes: Writes,
    pub decided: Vec<(EventKey, Outcome)>,
    ready: Vec<EntityId>,
    waits: Vec<(EntityId, Waiter, bool)>,
}

/// What a change of an entity leaves in its history.
pub(super) struct Step<'e> {
    pub cause: Cause,
    pub event: Option<&'e Arc<Event>>,
    pub timer: Option<Arc<str>>,
    pub time: i64,
    pub consumed: Option<u64>,
    pub previous_state: Option<Arc<str>>,
    pub effects_digest: crate::ids::Digest,
    pub code: Option<String>,
    pub notes: Vec<String>,
}

impl<'e> Step<'e> {
    /// A change that an event makes without touching the state.
    pub fn quiet(cause: Cause, event: &'e Arc<Event>, state: Option<Arc<str>>) -> Self {
        Self {
            cause,
            event: Some(event),
            timer: None,
            time: event.time,
            consumed: None,
            previous_state: state,
            effects_digest: effects::digest(&[]),
            code: None,
            notes: Vec::new(),
        }
    }
}

impl<'a> Desk<'a> {
    pub fn open(world: &'a World, machines: &'a mut Machines, id: &EntityId, now: i64) -> Result<Self, Undecided> {
        let Some(machine) = machines.get_mut(&id.machine) else {
            return refused("machine", format!("no machine `{}` is configured", id.machine));
        };
        let entity = world.entity(id)?.clone();
        Ok(Self {
            world,
            machine,
            now,
            entity,
            by: None,
            dirty: false,
            moved: false,
            writes: Writes::default(),
            decided: Vec::new(),
            ready: Vec::new(),
            waits: Vec::new(),
        })
    }

    pub fn close(mut self, outcome: Outcome) -> Decision {
        let entity = self.dirty.then_some(self.entity);
        self.ready.sort();
        self.ready.dedup();
        Decision { outcome, decided: self.decided, entity, writes: self.writes, ready: self.ready, waits: self.waits }
    }

    /// For inputs that are no event: `applied` when something changed.
    pub fn close_quietly(self) -> Decision {
        let changed = !self.decided.is_empty() || !self.writes.history.is_empty();
        let verdict = if changed { Verdict::Applied } else { Verdict::Skipped };
        self.close(Outcome::plain(verdict))
    }

    pub fn ordering(&self) -> Ordering {
        self.machine.setup.ordering
    }

    /// The version of an entity, this one or another.
    pub fn version_of(&self, id: &EntityId) -> Result<u64, Need> {
        if *id == self.entity.id { Ok(self.entity.version) } else { Ok(self.world.entity(id)?.version) }
    }

    pub fn is_met(&self, dependency: &Dependency) -> Result<bool, Need> {
        Ok(self.version_of(&dependency.entity)? >= dependency.version)
    }

    // ---- counters and the inbox

    pub fn count(&mut self, position: &Position, verdict: Verdict) {
        *self.writes.counts.entry((position.source.clone(), position.partition, verdict)).or_default() += 1;
    }

    pub fn change_verdict(&mut self, position: Option<&Position>, from: Verdict, to: Verdict) {
        if let Some(position) = position.filter(|_| from != to) {
            let key = (position.source.clone(), position.partition, from, to);
            *self.writes.moves.entry(key).or_default() += 1;
        }
    }

    pub fn inbox_verdict(&mut self, key: &EventKey, outcome: &Outcome) {
        let verdict = Some((outcome.verdict, outcome.reason()));
        self.writes.amend_inbox(key.clone(), InboxWrite::Update { deliveries: 0, last: None, verdict });
    }

    pub fn inbox_seen(&mut self, key: &EventKey, position: &Position) {
        let seen = InboxWrite::Update { deliveries: 1, last: Some(position.clone()), verdict: None };
        self.writes.amend_inbox(key.clone(), seen);
    }

    // ---- the entity and its history

    /// Adds one revision and its history row (R5: every change adds exactly 1).
    pub fn revise(&mut self, step: Step<'_>) {
        self.entity.revision += 1;
        if let Some(version) = step.consumed {
            debug_assert!(version > self.entity.version, "versions are consumed in rising order");
            self.entity.version = version;
            self.wake_waiters();
        }
        self.entity.rules = Some(self.machine.in_force.digest);
        self.dirty = true;
        self.moved = true;
        self.writes.history.push(HistoryRow {
            entity: self.entity.id.clone(),
            revision: self.entity.revision,
            version: self.entity.version,
            consumed: step.consumed,
            cause: step.cause,
            event: step.event.cloned(),
            timer: step.timer,
            time: step.time,
            decided_at: self.now,
            previous_state: step.previous_state,
            next_state: self.entity.state.clone(),
            data_digest: digest::of_bytes(&self.entity.data),
            effects_digest: step.effects_digest,
            schema: self.entity.schema,
            rules: self.machine.in_force,
            code: step.code,
            notes: step.notes,
            by: self.by.clone(),
        });
    }

    /// The version that an event consumes or is given, by its cause (R4's row "versions").
    pub fn numbers(&self, cause: Cause, event: &Event) -> Option<u64> {
        let next = self.next_number();
        match (self.ordering(), cause) {
            (_, Cause::Timer | Cause::Migration | Cause::Import | Cause::Erase) => None,
            (Ordering::Versioned | Ordering::Snapshot, _) => event.version,
            (Ordering::Causal | Ordering::Arrival, Cause::Event) => next,
            (Ordering::Arrival, Cause::Skip | Cause::Ignored | Cause::Compensation) => next,
            (Ordering::Causal | Ordering::Arrival, _) => None,
        }
    }

    /// The number that a host which numbers events gives to the next one.
    pub fn next_number(&self) -> Option<u64> {
        self.entity.version.checked_add(1)
    }

    // ---- waiting events

    /// A waiting event, by its place in the order of deferral, which is the order in which they are kept.
    pub fn waiting(&self, arrival: u64) -> Option<&Waiting> {
        let at = self.entity.waiting.binary_search_by_key(&arrival, |w| w.arrival).ok()?;
        Some(&self.entity.waiting[at])
    }

    pub fn put_waiting(&mut self, row: Waiting) -> Result<(), Need> {
        let mut waits_for = Vec::new();
        for target in other_entities(&row, &self.entity.id) {
            if !self.is_met(target)? {
                waits_for.push(target.clone());
            }
        }
        for target in &waits_for {
            self.writes.touched.insert(target.entity.clone());
            self.waits.push((target.entity.clone(), row.waiter(target.version), true));
        }
        let key = (self.entity.id.clone(), row.id());
        match self.entity.waiting.binary_search_by_key(&row.arrival, |w| w.arrival) {
            Ok(at) => self.entity.waiting[at] = row.clone(),
            Err(at) => self.entity.waiting.insert(at, row.clone()),
        }
        self.writes.waiting.insert(key, WaitingWrite::Put { row, waits_for });
        self.dirty = true;
        Ok(())
    }

    pub fn remove_waiting(&mut self, row: &Waiting) {
        for target in other_entities(row, &self.entity.id) {
            self.waits.push((target.entity.clone(), row.waiter(target.version), false));
        }
        if let Ok(at) = self.entity.waiting.binary_search_by_key(&row.arrival, |w| w.arrival) {
            self.entity.waiting.remove(at);
        }
        self.writes.waiting.insert((self.entity.id.clone(), row.id()), WaitingWrite::Delete);
        self.dirty = true;
    }

    /// Marks one of this entity's own waiting events: the release goes on in the next transaction.
    pub fn mark_own_ready(&mut self, arrival: u64) {
        if let Some(row) = self.entity.waiting.iter_mut().find(|w| w.arrival == arrival) {
            row.ready = true;
            let key = (self.entity.id.clone(), row.id());
            match self.writes.waiting.entry(key) {
                Entry::Occupied(mut write) => {
                    if let WaitingWrite::Put { row, .. } = write.get_mut() {
                        row.ready = true;
                    }
                }
                Entry::Vacant(free) => {
                    free.insert(WaitingWrite::Ready);
                }
            }
            self.ready.push(self.entity.id.clone());
            self.dirty = true;
        }
    }

    /// Marks other entities' events that waited for the version this entity has come to (R3).
    pub fn wake_waiters(&mut self) {
        let version = self.entity.version;
        if self.entity.waiters.iter().all(|w| w.version > version) {
            return;
        }
        let (met, rest): (Vec<_>, Vec<_>) = self.entity.waiters.drain(..).partition(|w| w.version <= version);
        self.entity.waiters = rest;
        for waiter in met {
            self.writes.touched.insert(waiter.entity.clone());
            self.writes.waiting.insert((waiter.entity.clone(), waiter.event), WaitingWrite::Ready);
            self.ready.push(waiter.entity);
        }
    }

    // ---- dead letters and alarms

    pub fn close_dead(&mut self, id: Ref, change: DeadUpdate) {
        let was_blocked = self.entity.blocked();
        self.entity.dead.retain(|d| d.id != id);
        self.amend_dead(id, change);
        self.dirty = true;
        if was_blocked && !self.entity.blocked() {
            self.moved = true;
            let subject = self.entity.id.to_string();
            self.writes.alarms.insert((AlarmKind::Parked, subject), AlarmWrite::Clear { at: self.now });
        }
    }

    pub fn amend_dead(&mut self, id: Ref, change: DeadUpdate) {
        self.writes.amend_dead(id, DeadWrite::Update(change));
    }

    pub fn open_dead(&mut self, entry: DeadEntry, row: crate::writes::DeadRow) {
        if entry.blocks {
            let message = format!("{} {}: {}", row.class, row.code, row.message);
            self.raise(AlarmKind::Parked, self.entity.id.to_string(), message);
        }
        self.writes.dead.insert(entry.id, DeadWrite::Put(row));
        self.entity.dead.push(entry);
        self.dirty = true;
    }

    pub fn raise(&mut self, kind: AlarmKind, subject: String, message: String) {
        self.writes.alarms.insert((kind, subject), AlarmWrite::Raise { message, at: self.now });
    }

    pub fn drop_timers(&mut self) {
        for (name, _) in std::mem::take(&mut self.entity.timers) {
            self.close_timer(name, "dropped", None);
        }
    }

    pub fn close_timer(&mut self, name: Arc<str>, outcome: &'static str, code: Option<String>) {
        let write = TimerWrite::Close { outcome, code, at: self.now };
        self.writes.timers.insert((self.entity.id.clone(), name), write);
        self.dirty = true;
    }
}

/// The versions of other entities that a waiting event names, in its envelope or by its rules' answers.
fn other_entities<'r>(row: &'r Waiting, own: &EntityId) -> Vec<&'r Dependency> {
    use crate::envelope::depends::DependsOn;
    let declared = row.event.depends_on.iter().filter_map(|d| match d {
        DependsOn::Entity(dependency) => Some(dependency),
        DependsOn::Type(_) => None,
    });
    let mut all: Vec<_> = declared.chain(&row.named).filter(|d| d.entity != *own).collect();
    all.sort();
    all.dedup();
    all
}

/// The part of a decision's rows that later decisions of the batch ask for.
pub(super) fn absorb_rows(world: &mut World, writes: &Writes) {
    for (key, write) in &writes.inbox {
        match write {
            InboxWrite::Insert(row) => {
                let entry = InboxEntry {
                    entity: row.entity.clone(),
                    digest: row.digest,
                    value_digest: row.value_digest,
                    verdict: row.verdict,
                    first: row.first.clone(),
                };
                world.inbox.insert(key.clone(), Some(entry));
            }
            InboxWrite::Update { verdict: Some((verdict, _)), .. } => {
                if let Some(Some(entry)) = world.inbox.get_mut(key) {
                    entry.verdict = *verdict;
                }
            }
            InboxWrite::Update { .. } => {}
        }
    }
    for row in &writes.history {
        if let (Some(version), Some(event)) = (row.consumed, &row.event) {
            let content =
                Consumed { digest: event.digest, value_digest: event.value_digest, source: event.key.source.clone() };
            world.history.insert((row.entity.clone(), version), Some(content));
        }
    }
    for (key, intent) in &writes.intents {
        world.intents.insert(key.clone(), Some(intent.clone()));
    }
    for (id, write) in &writes.conflicts {
        match write {
            ConflictWrite::Put(row) => {
                let (digest, value_digest) = (row.event.digest, row.event.value_digest);
                let entry = ConflictEntry { id: *id, digest, value_digest, open: row.dismissed.is_none() };
                world.conflicts.entry(row.event.key.clone()).or_default().push(entry);
            }
            ConflictWrite::Update { dismissed: Some(_), .. } => {
                let known = world.conflicts.values_mut().flatten();
                known.filter(|c| c.id == *id).for_each(|c| c.open = false);
            }
            ConflictWrite::Update { .. } => {}
        }
    }
    let marked = writes.waiting.iter().filter(|(_, write)| matches!(write, WaitingWrite::Ready));
    let mut entities: Vec<&EntityId> = marked.map(|((entity, _), _)| entity).collect();
    entities.dedup();
    for id in entities {
        // An event's name is a digest: each is taken once, however many events are marked.
        for row in world.entities.get_mut(id).into_iter().flat_map(|entity| &mut entity.waiting) {
            row.ready |= matches!(writes.waiting.get(&(id.clone(), row.id())), Some(WaitingWrite::Ready));
        }
    }
}
