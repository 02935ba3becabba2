//! A story: lines that are delivered one after the other, to a host whose tables are in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::toy::Toy;
use crate::decide::{Action, DeadTarget, Decision, Input, Outcome, Undecided, decide};
use crate::digest;
use crate::envelope::depends;
use crate::event::Event;
use crate::ids::{Digest, EntityId, EventKey, Position, Ref};
use crate::machine::{Machine, Machines};
use crate::setup::{Ordering, Setup};
use crate::verdict::Verdict;
use crate::world::{ConflictEntry, Consumed, Entity, InboxEntry, Intent, Need, World};
use crate::writes::*;

pub const RULES: RulesRef = RulesRef { activation: 3, digest: Digest([7; 32]) };

/// The committed rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tables {
    pub entities: BTreeMap<EntityId, Entity>,
    pub history: Vec<HistoryRow>,
    pub inbox: BTreeMap<EventKey, InboxRow>,
    pub intents: BTreeMap<(Arc<str>, Arc<str>), Intent>,
    pub waiting: BTreeSet<Ref>,
    pub dead: BTreeMap<Ref, DeadRow>,
    pub conflicts: BTreeMap<Ref, ConflictRow>,
    pub outbox: Vec<OutboxRow>,
    pub timers: BTreeMap<(EntityId, Arc<str>), i64>,
    pub alarms: BTreeSet<(AlarmKind, String)>,
    pub audit: Vec<AuditRow>,
    pub counts: BTreeMap<(u32, Verdict), i64>,
}

pub struct Story {
    pub machine: &'static str,
    pub machines: Machines,
    pub world: World,
    pub writes: Writes,
    pub tables: Tables,
    /// Entities with events that are ready.
    pub ready: BTreeSet<EntityId>,
    /// What the last input came to, and what it asked for on the way.
    pub last: Decision,
    pub needs: Vec<Need>,
    pub now: i64,
    offset: u64,
}

impl Story {
    /// One machine, named after its ordering.
    pub fn new(ordering: Ordering) -> Self {
        Self::with(ordering, |_| {})
    }

    pub fn with(ordering: Ordering, change: impl FnOnce(&mut Setup)) -> Self {
        let mut setup = Setup { ordering, ..Setup::new(ordering.name()) };
        setup.ignore.insert("note".into());
        change(&mut setup);
        let mut machines = Machines::default();
        machines.insert(Machine::new(Arc::new(setup), Box::new(Toy::new(ordering.name(), 1, &[])), RULES));
        let nothing = Outcome { verdict: Verdict::Skipped, defer: None, code: None, message: None };
        Self {
            machine: ordering.name(),
            machines,
            world: World::new(),
            writes: Writes::default(),
            tables: Tables::default(),
            ready: BTreeSet::new(),
            last: crate::decide::arrive::bare(nothing, Writes::default()),
            needs: Vec::new(),
            now: 1_000,
            offset: 0,
        }
    }

    pub fn id(&self, key: &str) -> EntityId {
        EntityId::new(self.machine, key.as_bytes())
    }

    pub fn machine(&mut self) -> &mut Machine {
        self.machines.get_mut(self.machine).expect("it is configured")
    }

    /// Other rules are in force.
    pub fn activate(&mut self, toy: Toy) {
        let machine = self.machine();
        let (setup, release) = (machine.setup.clone(), machine.release);
        let in_force = RulesRef { activation: machine.in_force.activation + 1, ..RULES };
        let mut machine = Machine::new(setup, Box::new(toy), in_force);
        machine.release = release;
        self.machines.insert(machine);
    }

    /// `KEY[@VERSION[<PREVIOUS]] TYPE [id=…] [source=…] [intent=…] [after=…] [order=…] [time=…] [: PAYLOAD]`
    pub fn event(&self, line: &str) -> Arc<Event> {
        let (head, data) = line.split_once(" : ").unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        let word = |name: &str| words.iter().find_map(|w| w.strip_prefix(name));
        let (key, version) = words[0].split_once('@').map_or((words[0], None), |(key, v)| (key, Some(v)));
        let (version, previous) =
            version.map_or((None, None), |v| v.split_once('<').map_or((Some(v), None), |(v, p)| (Some(v), Some(p))));
        let number = |text: &str| text.parse().expect("a number");
        let entity = self.id(key);
        let content_type = if data.starts_with(['{', '[']) { "application/json" } else { "text/plain" };
        let version = version.map(number);
        let (digest, value_digest) =
            digest::of_content(&entity, words[1], version, Some(content_type), data.as_bytes());
        Arc::new(Event {
            key: EventKey {
                machine: self.machine.into(),
                source: word("source=").unwrap_or("/shop").into(),
                id: word("id=").map_or_else(|| format!("{} {}", words[0], words[1]), str::to_owned).into(),
            },
            entity,
            kind: words[1].into(),
            version,
            previous: previous.map(number),
            time: word("time=").map_or(500, |t| t.parse().expect("a time")),
            idempotency_key: word("intent=").map(Into::into),
            depends_on: word("after=").map_or(vec![], |text| depends::parse(text).expect("dependencies")),
            logical_time: word("order=").map(number),
            content_type: Some(content_type.into()),
            attributes: vec![("correlationid".into(), "corr".into())],
            data: data.as_bytes().into(),
            digest,
            value_digest,
        })
    }

    pub fn position(&self, offset: u64) -> Position {
        Position { source: "lines".into(), partition: 0, offset }
    }

    /// Delivers a line.
    pub fn deliver(&mut self, line: &str) -> &Decision {
        let position = self.position(self.offset);
        self.offset += 1;
        let input = Input::Event { event: self.event(line), position, redelivered: false };
        self.take(&input).unwrap_or_else(|e| panic!("{line}: {e:?}"))
    }

    pub fn deliver_all(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.deliver(&line);
        }
    }

    /// Delivers a line: `VERDICT[ REASON]`, and its entity afterwards as [`Story::shown`].
    #[track_caller]
    pub fn check(&mut self, line: &str, expect: &str) {
        let outcome = self.deliver(line).outcome.clone();
        let key = line.split(['@', ' ']).next().unwrap_or_default();
        let reason = outcome.reason().map_or(String::new(), |r| format!(" {r}"));
        assert_eq!(format!("{}{reason} {}", outcome.verdict, self.shown(key)), expect, "{line}");
    }

    /// An entity: `vVERSION rREVISION STATE`.
    pub fn shown(&self, key: &str) -> String {
        let Some(e) = self.world.get(&self.id(key)) else { return "unknown".into() };
        format!("v{} r{} {}", e.version, e.revision, e.state.as_deref().unwrap_or("-"))
    }

    pub fn entity(&self, key: &str) -> &Entity {
        self.world.get(&self.id(key)).expect("it was loaded")
    }

    /// The verdict of an event now, and what the last decision said of each event that it decided.
    pub fn decided(&self) -> Vec<String> {
        self.last.decided.iter().map(|(key, outcome)| format!("{}: {}", key.id, outcome.verdict)).collect()
    }

    /// Decides, twice (G8); loads what is asked for; and lets world and tables have it.
    pub fn take(&mut self, input: &Input) -> Result<&Decision, Undecided> {
        self.needs.clear();
        let mut decision = loop {
            match decide(&self.world, &mut self.machines, input, self.now) {
                Ok(decision) => break decision,
                Err(Undecided::Need(need)) => {
                    assert!(!self.world.knows(&need), "{need:?} is known");
                    self.load(&need);
                    self.needs.push(need);
                }
                Err(refused) => return Err(refused),
            }
        };
        let again = decide(&self.world, &mut self.machines, input, self.now);
        assert_eq!(again.as_ref(), Ok(&decision), "the same question, another answer");
        self.last = decision.clone();
        self.world.absorb(&mut decision);
        self.ready.extend(decision.ready);
        self.writes.merge(decision.writes);
        Ok(&self.last)
    }

    pub fn person(&mut self, action: Action) -> Result<&Decision, Undecided> {
        let by = Actor { name: "ada".into(), reason: "because".into() };
        self.take(&Input::Person { by, action })
    }

    /// The only open dead letter of an entity.
    pub fn letter(&self, key: &str) -> DeadTarget {
        let [entry] = &self.entity(key).dead[..] else { panic!("{:?}", self.entity(key).dead) };
        DeadTarget { id: entry.id, entity: Some(self.id(key)), envelope: None }
    }

    /// Releases what is ready, each entity in a transaction of its own.
    pub fn release(&mut self) {
        self.commit();
        while let Some(entity) = self.ready.pop_first() {
            self.take(&Input::Release(entity)).expect("a release is never refused");
            self.commit();
        }
    }

    fn load(&mut self, need: &Need) {
        match need {
            Need::Entity(id) => {
                let stored = self.tables.entities.get(id).cloned();
                self.world.put_entity(stored.unwrap_or_else(|| Entity::absent(id.clone())));
            }
            Need::Inbox(key) => {
                let row = self.tables.inbox.get(key).map(|row| InboxEntry {
                    entity: row.entity.clone(),
                    digest: row.digest,
                    value_digest: row.value_digest,
                    verdict: row.verdict,
                    first: row.first.clone(),
                });
                self.world.put_inbox(key.clone(), row);
                for (id, row) in self.tables.conflicts.iter().filter(|(_, row)| row.event.key == *key) {
                    let (digest, value_digest) = (row.event.digest, row.event.value_digest);
                    let entry = ConflictEntry { id: *id, digest, value_digest, open: row.dismissed.is_none() };
                    self.world.put_conflict(key.clone(), entry);
                }
            }
            Need::History(id, version) => {
                let row = self.tables.history.iter().find(|r| r.entity == *id && r.consumed == Some(*version));
                let content = row.and_then(|row| row.event.as_ref()).map(|event| Consumed {
                    digest: event.digest,
                    value_digest: event.value_digest,
                    source: event.key.source.clone(),
                });
                self.world.put_history(id.clone(), *version, content);
            }
            Need::Instance(why) => panic!("native rules are always there: {why}"),
            Need::Intent(machine, key) => {
                let row = self.tables.intents.get(&(machine.clone(), key.clone())).cloned();
                self.world.put_intent(machine.clone(), key.clone(), row);
            }
        }
    }

    /// Ends a batch: the rows go to the tables, and the next batch knows nothing. An event that waits for an entity of
    /// another batch is kept with that entity, so stories do not let one wait for what was never loaded.
    pub fn commit(&mut self) {
        let world = std::mem::take(&mut self.world);
        self.tables.entities.extend(world.entities().map(|e| (e.id.clone(), e.clone())));
        self.tables.apply(std::mem::take(&mut self.writes));
    }
}

impl Tables {
    fn apply(&mut self, writes: Writes) {
        self.history.extend(writes.history);
        for (key, write) in writes.inbox {
            match write {
                InboxWrite::Insert(row) => assert!(self.inbox.insert(key, row).is_none(), "it is inserted twice"),
                InboxWrite::Update { deliveries, last, verdict } => {
                    let row = self.inbox.get_mut(&key).expect("it was inserted");
                    row.deliveries += deliveries;
                    row.last = last.or(row.last.take());
                    if let Some((verdict, reason)) = verdict {
                        (row.verdict, row.reason) = (verdict, reason);
                    }
                }
            }
        }
        for (key, intent) in writes.intents {
            assert!(self.intents.insert(key, intent).is_none(), "an intent is taken twice");
        }
        for ((_, id), write) in writes.waiting {
            match write {
                WaitingWrite::Put { .. } => drop(self.waiting.insert(id)),
                WaitingWrite::Ready => assert!(self.waiting.contains(&id), "who does not wait is made ready"),
                WaitingWrite::Delete => drop(self.waiting.remove(&id)),
            }
        }
        for (id, write) in writes.dead {
            match write {
                DeadWrite::Put(row) => drop(self.dead.insert(id, row)),
                DeadWrite::Update(change) => {
                    let row = self.dead.get_mut(&id).expect("it was put");
                    row.status = change.status.unwrap_or(row.status);
                    row.attempts = change.attempts.unwrap_or(row.attempts);
                    row.by = change.by.or(row.by.take());
                    row.replaced_by = change.replaced_by.or(row.replaced_by.take());
                    if let Some((class, code, message)) = change.refusal {
                        (row.class, row.code, row.message) = (class, code, message);
                    }
                }
            }
        }
        for (id, write) in writes.conflicts {
            match write {
                ConflictWrite::Put(row) => drop(self.conflicts.insert(id, row)),
                ConflictWrite::Update { copies, dismissed, .. } => {
                    let row = self.conflicts.get_mut(&id).expect("it was put");
                    row.copies += copies;
                    row.dismissed = dismissed.or(row.dismissed.take());
                }
            }
        }
        self.outbox.extend(writes.outbox);
        for (key, write) in writes.timers {
            match write {
                TimerWrite::Put { due, .. } => drop(self.timers.insert(key, due)),
                TimerWrite::Close { .. } => drop(self.timers.remove(&key)),
            }
        }
        for (key, write) in writes.alarms {
            match write {
                AlarmWrite::Raise { .. } => drop(self.alarms.insert(key)),
                AlarmWrite::Clear { .. } => drop(self.alarms.remove(&key)),
            }
        }
        self.audit.extend(writes.audit);
        for ((_, partition, verdict), n) in writes.counts {
            *self.counts.entry((partition, verdict)).or_default() += n as i64;
        }
        for ((_, partition, from, to), n) in writes.moves {
            *self.counts.entry((partition, from)).or_default() -= n as i64;
            *self.counts.entry((partition, to)).or_default() += n as i64;
        }
        self.counts.retain(|_, n| *n != 0);
    }
}
