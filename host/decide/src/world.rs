//! What the core knows while it decides: the rows that a batch touches, as they are after the batch's earlier decisions.
//!
//! The world is partial on purpose. What was not loaded is unknown, not absent; a question about it is answered by a
//! [`Need`], the runner loads it and asks again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::event::Event;
use crate::ids::{Digest, EntityId, EventKey, Position, Ref};
use crate::rules::{Dependency, Reason};
use crate::verdict::{DeferReason, Verdict};

/// One entity with all that stands around it. An absent one has `row_version` 0 and nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its address.
    pub id: EntityId,
    /// The store's guard, as loaded; 0 when there is no row (R7).
    pub row_version: u64,
    /// Position in its stream; 0 before the first.
    pub version: u64,
    /// The host's count of changes.
    pub revision: u64,
    /// `None` while only skipped or ignored versions were consumed.
    pub state: Option<Arc<str>>,
    /// When it entered this state, in event time.
    pub entered: i64,
    /// Layout of `data`.
    pub schema: u32,
    /// The rules' data.
    pub data: Arc<[u8]>,
    /// Types that were applied; they outlive history.
    pub seen: BTreeSet<Arc<str>>,
    /// Only at or below it does "no history row" mean pruned (R2).
    pub pruned_through: u64,
    /// A person had its contents erased: what comes later is skipped (R5).
    pub erased: bool,
    /// How many events of this entity were ever deferred; orders the waiting ones.
    pub arrivals: u64,
    /// Messages sent under its own key, by topic (R9's `entityversion`).
    pub emitted: BTreeMap<Arc<str>, u64>,
    /// The rules that decided its last change.
    pub rules: Option<Digest>,
    /// Pending timers by name, with due times.
    pub timers: BTreeMap<Arc<str>, i64>,
    /// Events that wait, by order of deferral.
    pub waiting: Vec<Waiting>,
    /// Open dead letters.
    pub dead: Vec<DeadEntry>,
    /// Other entities' events that wait for a version of this one.
    pub waiters: Vec<Waiter>,
}

impl Entity {
    /// An entity that has no row yet.
    pub fn absent(id: EntityId) -> Self {
        Self {
            id,
            row_version: 0,
            version: 0,
            revision: 0,
            state: None,
            entered: 0,
            schema: 0,
            data: Arc::from([]),
            seen: BTreeSet::new(),
            pruned_through: 0,
            erased: false,
            arrivals: 0,
            emitted: BTreeMap::new(),
            rules: None,
            timers: BTreeMap::new(),
            waiting: Vec::new(),
            dead: Vec::new(),
            waiters: Vec::new(),
        }
    }

    /// Whether an open dead letter holds its later events.
    pub fn blocked(&self) -> bool {
        self.dead.iter().any(|d| d.blocks)
    }

    /// Whether one of its waiting events was marked ready and is not decided yet.
    pub fn has_ready(&self) -> bool {
        self.waiting.iter().any(|w| w.ready)
    }
}

/// An event that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The event.
    pub event: Arc<Event>,
    /// Its place in the order of deferral.
    pub arrival: u64,
    /// Why, by its last decision.
    pub reason: DeferReason,
    /// What the rules' answers of `waiting` named so far.
    pub named: Vec<Dependency>,
    /// Since when, in host time.
    pub since: i64,
    /// When an `early` one is refused, in host time.
    pub deadline: Option<i64>,
    /// Another entity came far enough: to be decided in a transaction of its own.
    pub ready: bool,
    /// Where it was first received, for the counters.
    pub position: Position,
}

impl Waiting {
    /// The name by which people address it.
    pub fn id(&self) -> Ref {
        Ref::of_event(&self.event.key)
    }

    /// What it is to an entity that it waits for.
    pub fn waiter(&self, version: u64) -> Waiter {
        Waiter { entity: self.event.entity.clone(), event: self.id(), version }
    }
}

/// What a dead letter is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeadKind {
    /// An event or a malformed envelope.
    Event,
    /// A timer whose rules failed.
    Timer,
    /// A migration that failed.
    Migration,
}

impl DeadKind {
    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Timer => "timer",
            Self::Migration => "migration",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Event, Self::Timer, Self::Migration].into_iter().find(|k| k.name() == name)
    }
}

/// An open dead letter, as far as decisions need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadEntry {
    /// Its name.
    pub id: Ref,
    /// What it is about.
    pub kind: DeadKind,
    /// Whether it holds its entity's later events.
    pub blocks: bool,
    /// Illegal, malformed or fault.
    pub class: Verdict,
    /// Code and text of the last refusal.
    pub reason: Reason,
    /// The event, where the envelope could be read.
    pub event: Option<Arc<Event>>,
    /// Where it was first received.
    pub position: Option<Position>,
    /// How often it was decided.
    pub attempts: u32,
    /// The timer, for that kind: name and due time.
    pub timer: Option<(Arc<str>, i64)>,
}

/// Another entity's event that waits for a version of this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Waiter {
    /// The waiting event's entity.
    pub entity: EntityId,
    /// The waiting event.
    pub event: Ref,
    /// The version of this entity that it needs.
    pub version: u64,
}

/// What the inbox says of an event (R2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxEntry {
    /// The key of the entity that it named.
    pub entity: EntityId,
    /// Its content, by bytes.
    pub digest: Digest,
    /// Its content, by value.
    pub value_digest: Digest,
    /// Its verdict now.
    pub verdict: Verdict,
    /// Where it was first received; `None` for an event that a person put in another's place.
    pub first: Option<Position>,
}

/// The content of the history row that consumed a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumed {
    /// By bytes.
    pub digest: Digest,
    /// By value.
    pub value_digest: Digest,
    /// The CloudEvents source that wrote it.
    pub source: Arc<str>,
}

/// Who took an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The entity whose event was applied under it.
    pub entity: EntityId,
    /// That event's type.
    pub kind: Arc<str>,
    /// That event's data alone, by value.
    pub data_digest: Digest,
}

/// A quarantined event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictEntry {
    /// Its name.
    pub id: Ref,
    /// Its content, by bytes.
    pub digest: Digest,
    /// Its content, by value.
    pub value_digest: Digest,
    /// No person has dismissed it.
    pub open: bool,
}

/// Something that the core has to know and the runner has not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Need {
    /// An entity with all that stands around it.
    Entity(EntityId),
    /// An event's inbox row, and what is quarantined under its key.
    Inbox(EventKey),
    /// The history row that consumed a version.
    History(EntityId, u64),
    /// Who took a machine's idempotency key.
    Intent(Arc<str>, Arc<str>),
    /// Nothing to load: the host had no memory for an instance of the rules, as this text says. Ask again later.
    Instance(Arc<str>),
}

/// The rows that a batch knows.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub(crate) entities: HashMap<EntityId, Entity>,
    pub(crate) inbox: HashMap<EventKey, Option<InboxEntry>>,
    pub(crate) conflicts: HashMap<EventKey, Vec<ConflictEntry>>,
    pub(crate) history: HashMap<(EntityId, u64), Option<Consumed>>,
    pub(crate) intents: HashMap<(Arc<str>, Arc<str>), Option<Intent>>,
    /// Who waits no longer, by a decision that is not committed: an entity that is loaded later still lists them.
    pub(crate) gone: Vec<(EntityId, Waiter)>,
}

impl World {
    /// Knows nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// An entity was loaded, or found absent ([`Entity::absent`]).
    pub fn put_entity(&mut self, mut entity: Entity) {
        let gone = &self.gone;
        entity.waiters.retain(|w| !gone.iter().any(|(id, waiter)| *id == entity.id && waiter == w));
        self.entities.insert(entity.id.clone(), entity);
    }

    /// An inbox row was loaded, or found absent. What is quarantined under its key follows by [`World::put_conflict`].
    pub fn put_inbox(&mut self, key: EventKey, row: Option<InboxEntry>) {
        self.conflicts.insert(key.clone(), Vec::new());
        self.inbox.insert(key, row);
    }

    /// A quarantined event was loaded.
    pub fn put_conflict(&mut self, key: EventKey, row: ConflictEntry) {
        self.conflicts.entry(key).or_default().push(row);
    }

    /// The history row that consumed a version was loaded, or found absent.
    pub fn put_history(&mut self, entity: EntityId, version: u64, row: Option<Consumed>) {
        self.history.insert((entity, version), row);
    }

    /// An idempotency key was loaded, or found free.
    pub fn put_intent(&mut self, machine: Arc<str>, key: Arc<str>, row: Option<Intent>) {
        self.intents.insert((machine, key), row);
    }

    /// Every entity that was loaded, with its guard.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.entities.values()
    }

    /// An entity, if it was loaded.
    pub fn get(&self, id: &EntityId) -> Option<&Entity> {
        self.entities.get(id)
    }

    /// Whether what `need` names is known.
    pub fn knows(&self, need: &Need) -> bool {
        match need {
            Need::Entity(id) => self.entities.contains_key(id),
            Need::Inbox(key) => self.inbox.contains_key(key),
            Need::History(id, version) => self.history.contains_key(&(id.clone(), *version)),
            Need::Intent(machine, key) => self.intents.contains_key(&(machine.clone(), key.clone())),
            Need::Instance(_) => false,
        }
    }

    pub(crate) fn entity(&self, id: &EntityId) -> Result<&Entity, Need> {
        self.entities.get(id).ok_or_else(|| Need::Entity(id.clone()))
    }

    pub(crate) fn inbox(&self, key: &EventKey) -> Result<Option<&InboxEntry>, Need> {
        self.inbox.get(key).map(Option::as_ref).ok_or_else(|| Need::Inbox(key.clone()))
    }

    pub(crate) fn conflicts(&self, key: &EventKey) -> &[ConflictEntry] {
        self.conflicts.get(key).map_or(&[], Vec::as_slice)
    }
}
