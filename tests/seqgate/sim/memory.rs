//! Tables in memory. Every row comes from [`Writes`], and every entity is put together from rows again, so that a row that
//! a decision forgets to write is missed.

use std::collections::BTreeMap;
use std::sync::Arc;

use seqgate_decide::ids::{EntityId, EventKey, Ref};
use seqgate_decide::rules::{Dependency, Reason};
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::{
    ConflictEntry, Consumed, DeadEntry, DeadKind, Entity, InboxEntry, Intent, Need, Waiter, Waiting, World,
};
use seqgate_decide::writes::{
    ConflictRow, ConflictWrite, DeadRow, DeadStatus, DeadWrite, HistoryRow, InboxRow, InboxWrite, OutboxRow,
    TimerWrite, WaitingWrite, Writes,
};
use seqgate_model as model;

use super::names;

#[derive(Clone, Default)]
pub struct Memory {
    entities: BTreeMap<EntityId, Entity>,
    history: Vec<HistoryRow>,
    inbox: BTreeMap<EventKey, InboxRow>,
    intents: BTreeMap<(Arc<str>, Arc<str>), Intent>,
    waiting: BTreeMap<(EntityId, Ref), (Waiting, Vec<Dependency>)>,
    /// In the order in which they were opened.
    pub dead: Vec<(Ref, DeadRow)>,
    pub conflicts: Vec<(Ref, ConflictRow)>,
    outbox: Vec<OutboxRow>,
    timers: BTreeMap<(EntityId, Arc<str>), i64>,
    counters: BTreeMap<(Arc<str>, u32, Verdict), i64>,
}

impl Memory {
    /// Puts a row, or its absence, into the world.
    pub fn load(&self, need: &Need, world: &mut World) {
        match need {
            Need::Entity(id) => world.put_entity(self.entity(id)),
            Need::Inbox(key) => {
                let entry = self.inbox.get(key).map(|row| InboxEntry {
                    entity: row.entity.clone(),
                    digest: row.digest,
                    value_digest: row.value_digest,
                    verdict: row.verdict,
                    first: row.first.clone(),
                });
                world.put_inbox(key.clone(), entry);
                for (id, row) in self.conflicts.iter().filter(|(_, row)| row.event.key == *key) {
                    let (digest, value_digest) = (row.event.digest, row.event.value_digest);
                    let open = row.dismissed.is_none();
                    world.put_conflict(key.clone(), ConflictEntry { id: *id, digest, value_digest, open });
                }
            }
            Need::History(id, version) => {
                let row = self.history.iter().find(|r| r.entity == *id && r.consumed == Some(*version));
                let content = row.and_then(|r| r.event.as_ref()).map(|event| Consumed {
                    digest: event.digest,
                    value_digest: event.value_digest,
                    source: event.key.source.clone(),
                });
                world.put_history(id.clone(), *version, content);
            }
            Need::Intent(machine, key) => {
                let intent = self.intents.get(&(machine.clone(), key.clone())).cloned();
                world.put_intent(machine.clone(), key.clone(), intent);
            }
            Need::Instance(why) => panic!("native rules are always there: {why}"),
        }
    }

    fn entity(&self, id: &EntityId) -> Entity {
        let mut entity = self.entities.get(id).cloned().unwrap_or_else(|| Entity::absent(id.clone()));
        entity.timers =
            self.timers.iter().filter(|((e, _), _)| e == id).map(|((_, n), due)| (n.clone(), *due)).collect();
        entity.waiting = self.waiting.iter().filter(|((e, _), _)| e == id).map(|(_, (row, _))| row.clone()).collect();
        entity.waiting.sort_by_key(|w| w.arrival);
        // A malformed envelope that blocks nobody is no concern of the entity that it names.
        let concerns = |row: &DeadRow| row.blocks || row.kind != DeadKind::Event;
        let is_open = |row: &DeadRow| row.entity.as_ref() == Some(id) && row.status == DeadStatus::Open;
        let open = |r: &&(Ref, DeadRow)| is_open(&r.1) && concerns(&r.1);
        entity.dead = self.dead.iter().filter(open).map(|(id, row)| entry(*id, row)).collect();
        entity.waiters = Vec::new();
        for (row, waits_for) in self.waiting.values() {
            for dependency in waits_for.iter().filter(|d| d.entity == *id) {
                let (entity_, event, version) = (row.event.entity.clone(), row.id(), dependency.version);
                entity.waiters.push(Waiter { entity: entity_, event, version });
            }
        }
        entity
    }

    /// Writes a transaction's rows; says whether the guards allow it.
    pub fn commit(&mut self, writes: &Writes, read: &World) -> bool {
        let now = |id: &EntityId| self.entities.get(id).map_or(0, |e| e.row_version);
        if read.entities().any(|e| e.row_version != now(&e.id)) {
            return false;
        }
        for (id, entity) in &writes.entities {
            self.entities.insert(id.clone(), Entity { row_version: now_or(&self.entities, id) + 1, ..entity.clone() });
        }
        for id in &writes.touched {
            let row_version = now_or(&self.entities, id) + 1;
            self.entities.entry(id.clone()).or_insert_with(|| Entity::absent(id.clone())).row_version = row_version;
        }
        for row in &writes.history {
            let same = |r: &&HistoryRow| r.entity == row.entity;
            let last = self.history.iter().filter(same).map(|r| r.revision).max().unwrap_or(0);
            assert_eq!(row.revision, last + 1, "{} has a revision twice, or none", row.entity);
            let twice = self.history.iter().filter(same).any(|r| r.consumed.is_some() && r.consumed == row.consumed);
            assert!(!twice, "{} consumed version {:?} twice", row.entity, row.consumed);
            self.history.push(row.clone());
        }
        for (key, write) in &writes.inbox {
            self.write_inbox(key, write);
        }
        for (key, intent) in &writes.intents {
            assert!(self.intents.insert(key.clone(), intent.clone()).is_none(), "{key:?} was taken twice");
        }
        self.write_waiting(writes);
        self.write_dead(writes);
        self.outbox.extend(writes.outbox.iter().cloned());
        for (key, write) in &writes.timers {
            match write {
                TimerWrite::Put { due, .. } => drop(self.timers.insert(key.clone(), *due)),
                TimerWrite::Close { .. } => drop(self.timers.remove(key)),
            }
        }
        for ((source, partition, verdict), n) in &writes.counts {
            *self.counters.entry((source.clone(), *partition, *verdict)).or_default() += *n as i64;
        }
        for ((source, partition, from, to), n) in &writes.moves {
            *self.counters.entry((source.clone(), *partition, *from)).or_default() -= *n as i64;
            *self.counters.entry((source.clone(), *partition, *to)).or_default() += *n as i64;
        }
        for (id, entity) in &writes.entities {
            let mut rebuilt = self.entity(id);
            rebuilt.row_version = entity.row_version;
            rebuilt.waiters.clone_from(&entity.waiters);
            // Open dead letters are a set: rows have no order among those of one moment.
            let mut entity = entity.clone();
            entity.dead.sort_by_key(|d| d.id);
            rebuilt.dead.sort_by_key(|d| d.id);
            let (rows, decided) = (format!("{rebuilt:?}"), format!("{entity:?}"));
            let same = rows.bytes().zip(decided.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(200);
            assert_eq!(rows.get(same..), decided.get(same..), "the rows of {id} do not make what was decided");
        }
        true
    }

    fn write_inbox(&mut self, key: &EventKey, write: &InboxWrite) {
        match write {
            InboxWrite::Insert(row) => {
                assert!(self.inbox.insert(key.clone(), row.clone()).is_none(), "{key:?} enters the inbox twice");
            }
            InboxWrite::Update { deliveries, last, verdict } => {
                let row = self.inbox.get_mut(key).expect("an inbox row is amended after it was inserted");
                row.deliveries += deliveries;
                row.last = last.clone().or(row.last.take());
                if let Some((verdict, reason)) = verdict {
                    (row.verdict, row.reason) = (*verdict, reason.clone());
                }
            }
        }
    }

    fn write_waiting(&mut self, writes: &Writes) {
        for (key, write) in &writes.waiting {
            match write {
                WaitingWrite::Put { row, waits_for } => {
                    self.waiting.insert(key.clone(), (row.clone(), waits_for.clone()));
                }
                WaitingWrite::Ready => {
                    self.waiting.get_mut(key).expect("what is marked ready waits").0.ready = true;
                }
                WaitingWrite::Delete => drop(self.waiting.remove(key)),
            }
        }
    }

    fn write_dead(&mut self, writes: &Writes) {
        let mut letters: Vec<_> = writes.dead.iter().collect();
        letters.sort_by_key(|(_, write)| match write {
            DeadWrite::Put(row) => (row.since, row.position.clone()),
            DeadWrite::Update(_) => (i64::MAX, None),
        });
        for (id, write) in letters {
            match write {
                DeadWrite::Put(row) => {
                    assert!(self.dead.iter().all(|(d, _)| d != id), "dead letter {id} is written twice");
                    self.dead.push((*id, row.clone()));
                }
                DeadWrite::Update(change) => {
                    let (_, row) = self.dead.iter_mut().find(|(d, _)| d == id).expect("it is there");
                    assert_eq!(row.status, DeadStatus::Open, "only open letters are decided");
                    row.status = change.status.unwrap_or(row.status);
                    row.attempts = change.attempts.unwrap_or(row.attempts);
                    if let Some((class, code, message)) = &change.refusal {
                        (row.class, row.code, row.message) = (*class, code.clone(), message.clone());
                    }
                }
            }
        }
        // In the order in which they came, which is how the model names them.
        let mut conflicts: Vec<_> = writes.conflicts.iter().collect();
        conflicts.sort_by_key(|(_, write)| match write {
            ConflictWrite::Put(row) => (row.since, row.position.clone()),
            ConflictWrite::Update { .. } => (i64::MAX, None),
        });
        for (id, write) in conflicts {
            match write {
                ConflictWrite::Put(row) => self.conflicts.push((*id, row.clone())),
                ConflictWrite::Update { copies, dismissed, .. } => {
                    let (_, row) = self.conflicts.iter_mut().find(|(c, _)| c == id).expect("it is there");
                    row.copies += copies;
                    row.dismissed = dismissed.clone().or(row.dismissed.take());
                }
            }
        }
    }

    /// Entities with events that are ready.
    pub fn ready(&self) -> Vec<EntityId> {
        self.waiting.iter().filter(|(_, (row, _))| row.ready).map(|((id, _), _)| id.clone()).collect()
    }

    /// Early events that are overdue.
    pub fn overdue(&self, now: i64) -> Vec<(EntityId, EventKey)> {
        let late = |w: &Waiting| w.deadline.is_some_and(|d| d <= now);
        let rows = self.waiting.iter().filter(|(_, (row, _))| late(row));
        rows.map(|((id, _), (row, _))| (id.clone(), row.event.key.clone())).collect()
    }

    pub fn deferred(&self, key: &EventKey) -> Option<(EntityId, Ref)> {
        self.waiting.iter().find(|(_, (row, _))| row.event.key == *key).map(|(k, _)| k.clone())
    }

    /// Whether a dead letter, by the model's name, and its row.
    pub fn letter(&self, id: &model::LetterId) -> Option<(Ref, &DeadRow)> {
        let named = self.dead.iter().filter(|(_, row)| subject(row) == id.subject);
        named.map(|(r, row)| (*r, row)).nth(id.nth as usize)
    }

    pub fn conflict(&self, id: &model::ConflictId) -> Option<(Ref, &ConflictRow)> {
        let key = names::event(&id.event);
        let named = self.conflicts.iter().filter(|(_, row)| row.event.key == key);
        named.map(|(r, row)| (*r, row)).nth(id.nth as usize)
    }

    /// What the tables say, in the model's words.
    pub fn observed(&self) -> model::Observed {
        let mut out = model::Observed::default();
        for (id, entity) in self.entities.iter().filter(|(_, e)| e.revision > 0) {
            let entity = self.entity(&entity.id.clone()).clone();
            let view = model::EntityView {
                state: entity.state.as_deref().map(str::to_owned),
                version: entity.version,
                revision: entity.revision,
                seen: entity.seen.iter().map(|s| s.to_string()).collect(),
                data: model::facts(&id.machine, &entity.data),
                timers: entity.timers.iter().map(|(n, due)| (n.to_string(), *due)).collect(),
            };
            out.entities.insert(names::model_entity(id), view);
        }
        for (row, _) in self.waiting.values() {
            let view = model::WaitingView {
                entity: names::model_entity(&row.event.entity),
                reason: names::reason(row.reason),
            };
            out.waiting.insert(names::model_event(&row.event.key), view);
        }
        let mut letters: BTreeMap<model::LetterSubject, u32> = BTreeMap::new();
        for (_, row) in &self.dead {
            let subject = subject(row);
            let nth = letters.entry(subject.clone()).or_default();
            out.letters.insert(model::LetterId { subject, nth: *nth }, letter_view(row));
            *nth += 1;
        }
        let mut conflicts: BTreeMap<model::EventId, u32> = BTreeMap::new();
        for (_, row) in &self.conflicts {
            let event = names::model_event(&row.event.key);
            let nth = conflicts.entry(event.clone()).or_default();
            out.conflicts.insert(model::ConflictId { event, nth: *nth }, conflict_view(row));
            *nth += 1;
        }
        for row in &self.outbox {
            let messages = out.outbox.entry(names::model_entity(&row.entity)).or_default();
            messages.push(model::MessageView {
                revision: row.revision,
                index: row.index,
                topic: None,
                kind: row.kind.clone(),
            });
        }
        for (key, row) in &self.inbox {
            let view = model::InboxView { verdict: names::verdict(row.verdict), deliveries: row.deliveries };
            out.inbox.insert(names::model_event(key), view);
        }
        for ((source, partition, verdict), n) in self.counters.iter().filter(|(_, n)| **n != 0) {
            out.counters.insert((source.to_string(), *partition, names::verdict(*verdict)), *n as u64);
        }
        out
    }
}

fn now_or(entities: &BTreeMap<EntityId, Entity>, id: &EntityId) -> u64 {
    entities.get(id).map_or(0, |e| e.row_version)
}

fn entry(id: Ref, row: &DeadRow) -> DeadEntry {
    DeadEntry {
        id,
        kind: row.kind,
        blocks: row.blocks,
        class: row.class,
        reason: Reason::new(row.code.clone(), row.message.clone()),
        event: row.event.clone(),
        position: row.position.clone(),
        attempts: row.attempts,
        timer: row.timer.clone(),
    }
}

pub fn subject(row: &DeadRow) -> model::LetterSubject {
    match (row.kind, &row.event, &row.position, &row.timer, &row.entity) {
        (DeadKind::Event, Some(event), ..) => model::LetterSubject::Event(names::model_event(&event.key)),
        (DeadKind::Event, None, Some(p), ..) => {
            model::LetterSubject::Envelope { source: p.source.to_string(), partition: p.partition, position: p.offset }
        }
        (DeadKind::Timer, .., Some((name, _)), Some(entity)) => {
            model::LetterSubject::Timer { entity: names::model_entity(entity), name: name.to_string() }
        }
        (DeadKind::Migration, .., Some(entity)) => model::LetterSubject::Migration(names::model_entity(entity)),
        _ => panic!("{row:?} is about nothing"),
    }
}

pub fn letter_view(row: &DeadRow) -> model::LetterView {
    // The model names an envelope's entity only where it blocks or was passed over for it.
    let named = row.event.is_some() || row.kind != DeadKind::Event || row.rules.is_some();
    model::LetterView {
        entity: row.entity.as_ref().filter(|_| named).map(names::model_entity),
        kind: match row.kind {
            DeadKind::Event => model::LetterKind::Event,
            DeadKind::Timer => model::LetterKind::Timer,
            DeadKind::Migration => model::LetterKind::Migration,
        },
        class: names::verdict(row.class),
        unknown_type: row.code == "unknown-type",
        status: names::status(row.status),
    }
}

pub fn conflict_view(row: &ConflictRow) -> model::ConflictView {
    model::ConflictView {
        entity: names::model_entity(&row.event.entity),
        version: row.event.version,
        reason: names::conflict(row.code),
        copies: row.copies,
        status: match row.dismissed {
            Some(_) => model::ConflictStatus::Dismissed,
            None => model::ConflictStatus::Open,
        },
    }
}
