//! A history: what reaches the engine, and in which order a run took it.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Setup, Value};

/// An entity's address: (machine, key).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId {
    /// The machine's name.
    pub machine: String,
    /// The key. Generated keys are text, because they travel as a JSON `subject`.
    pub key: String,
}

/// What the inbox is keyed by (R2): (machine, CloudEvents source, id).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    /// The machine's name.
    pub machine: String,
    /// The CloudEvents `source`, which is not the name of the configured source.
    pub source: String,
    /// The CloudEvents `id`.
    pub id: String,
}

/// `machine/key@version`: met once that entity's version is at least this (R3 step 9).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The entity waited for.
    pub entity: EntityId,
    /// The version it has to reach.
    pub version: u64,
}

/// One item of `dependson`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dependency {
    /// A type that must have been applied to the event's own entity.
    Type(String),
    /// A version of an entity, the event's own included.
    Version(Target),
}

/// A readable event: what R1 makes of the bytes.
///
/// # Markers
/// Under [`Setup::markers`] the test rules wrap the real ones and first look into the data where that is a JSON object:
/// * `"__fault": true`: `apply` and `compensate` trap.
/// * `"__wait": ["machine/key@n", …]`: `apply` answers `waiting` with all items that are not in the event's `met`; where
///   all are, the real rules decide. An empty list always answers `waiting` with nothing, which is a fault, and so are
///   more than 16 items (R3 step 10).
/// * `"__each": ["machine/key@n", …]`: the same, but names only the first item that is not in `met`.
///
/// Items are written as in `dependson`, keys percent-encoded. `compensate` looks at `__fault` only. Order: `__fault`,
/// `__wait`, `__each`, the real rules. What the host checks itself (unknown types, dependencies) comes before.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The machine.
    pub machine: String,
    /// The CloudEvents `source`.
    pub source: String,
    /// The CloudEvents `id`.
    pub id: String,
    /// The CloudEvents `type`.
    pub kind: String,
    /// The subject.
    pub key: String,
    /// `entityversion`, where given.
    pub version: Option<u64>,
    /// `previousversion`, where given.
    pub previous: Option<u64>,
    /// The envelope's time in milliseconds since the epoch, else the delivery's time counts.
    pub time: Option<i64>,
    /// `idempotencykey`.
    pub idempotency_key: Option<String>,
    /// `dependson`, blanks dropped, in order.
    pub depends_on: Vec<Dependency>,
    /// `logicaltime` (causal).
    pub logical_time: Option<u64>,
    /// `datacontenttype`.
    pub content_type: Option<String>,
    /// The data's bytes, exactly as R1 extracts them.
    pub data: Vec<u8>,
    /// The data by value, where it is JSON by R2 (content type absent or JSON, and it reads as JSON).
    pub value: Option<Value>,
}

impl Event {
    /// The entity it concerns.
    pub fn entity(&self) -> EntityId {
        EntityId { machine: self.machine.clone(), key: self.key.clone() }
    }

    /// Its inbox key.
    pub fn event_id(&self) -> EventId {
        EventId { machine: self.machine.clone(), source: self.source.clone(), id: self.id.clone() }
    }
}

/// What a line means by R1.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// It is read as this event.
    Event(Box<Event>),
    /// It is `malformed`.
    Malformed {
        /// The entity that it still concerns in causal and arrival machines (R5): a JSON object within the nesting limit,
        /// without repeated members, with valid machine and subject.
        entity: Option<EntityId>,
        /// Why, for people.
        why: &'static str,
    },
}

/// One line that reaches the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The configured source's name.
    pub source: String,
    /// The partition it lies in: its entity's (see [`SourceSetup`](crate::SourceSetup)), of a malformed line without one 0.
    pub partition: u32,
    /// Its offset: the byte position of the line in the source's file, were all lines that are no replays written to one.
    pub position: u64,
    /// When it is received, milliseconds since the epoch.
    pub received: i64,
    /// The raw line, without its line end.
    pub bytes: Vec<u8>,
    /// What the bytes mean.
    pub meaning: Meaning,
    /// The position was delivered before and comes again (a broker that repeats); it counts as a duplicate.
    pub replay: bool,
}

/// Names a dead letter without any engine's internal id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LetterSubject {
    /// A readable event's (kind event).
    Event(EventId),
    /// A malformed envelope's, by source position (kind event).
    Envelope {
        /// The configured source.
        source: String,
        /// The partition.
        partition: u32,
        /// The position.
        position: u64,
    },
    /// A timer's (kind timer).
    Timer {
        /// The entity.
        entity: EntityId,
        /// The timer's name.
        name: String,
    },
    /// An entity's migration (kind migration).
    Migration(EntityId),
}

/// A dead letter: its subject, and which of the subject's letters, from 0 in the order they were written.
/// Only an event that was redriven into waiting has more than one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterId {
    /// Whose letter.
    pub subject: LetterSubject,
    /// Which one, from 0.
    pub nth: u32,
}

/// A quarantined conflict: the event's id, and which of that id's conflicts, from 0 in the order they were quarantined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConflictId {
    /// The event's inbox key.
    pub event: EventId,
    /// Which one, from 0: an id may come back with several contents.
    pub nth: u32,
}

/// A person's decision.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// `dead-letter redrive`.
    Redrive(LetterId),
    /// `dead-letter skip`.
    Skip(LetterId),
    /// `dead-letter compensate`.
    Compensate(LetterId),
    /// `dead-letter replace --with`: the corrected line and what it means (always readable).
    Replace(LetterId, Vec<u8>, Box<Event>),
    /// `deferred dismiss`.
    DismissDeferred(EventId),
    /// `conflict dismiss`.
    DismissConflict(ConflictId),
    /// `entity erase`, and whether also while it is live.
    Erase(EntityId, bool),
}

/// An entity that another system hands over (R5's import).
#[derive(Clone, Debug, PartialEq)]
pub struct ImportStep {
    /// The entity.
    pub entity: EntityId,
    /// The last version that the other system took into account.
    pub version: u64,
    /// Its state.
    pub state: String,
    /// Layout of `data`.
    pub schema: u32,
    /// Its data, as the rules write it.
    pub data: Vec<u8>,
    /// Types that it has seen.
    pub seen: Vec<String>,
    /// Pending timers, with due times.
    pub timers: BTreeMap<String, i64>,
    /// When, milliseconds since the epoch.
    pub now: i64,
}

/// A person's decision with its record.
#[derive(Clone, Debug, PartialEq)]
pub struct PersonStep {
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When, milliseconds since the epoch.
    pub now: i64,
    /// What.
    pub decision: Decision,
}

/// How test rules answer to timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerRules {
    /// As the real rules do.
    Real,
    /// Every timer is refused as illegal.
    Refuse,
    /// Every timer traps.
    Fault,
}

/// One thing that happens to the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A line arrives.
    Deliver(Delivery),
    /// Repair fetched this event from the authoritative log; counted in source `repair:MACHINE`, partition 0.
    /// The delivery's own source, partition and position mean nothing.
    Repair(Delivery),
    /// A timer is due and R6's conditions on the partition hold; the entity's own conditions are the engine's to check.
    Timer {
        /// The entity.
        entity: EntityId,
        /// The timer.
        name: String,
        /// The clock.
        now: i64,
    },
    /// A person decides.
    Person(PersonStep),
    /// An entity comes from another system.
    Import(ImportStep),
    /// The rules in force become test rules with this schema (R8); only under [`Setup::markers`]. States, edges and data
    /// stay as they are; `migrate` returns state and data unchanged, or refuses.
    Rules {
        /// The machine.
        machine: String,
        /// The layout that they write; before any such step it is 1.
        schema: u32,
        /// Older layouts that they read.
        reads: Vec<u32>,
        /// `migrate` refuses every entity.
        refuses: bool,
        /// What they answer to timers; before any such step the real rules do.
        timers: TimerRules,
    },
    /// The entity is to be migrated to the rules in force.
    Migrate {
        /// The entity.
        entity: EntityId,
    },
    /// The clock stands here: early events that waited longer than `early_after` are at their deadline (R4).
    Deadline {
        /// The clock.
        now: i64,
    },
    /// A batch ends here.
    Cut,
    /// Memory is lost; the engine starts from its store.
    Restart,
    /// Another owner takes the partition.
    HandOver {
        /// The source.
        source: String,
        /// The partition.
        partition: u32,
    },
}

/// A seeded history.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Its seed; the same seed and size give the same history.
    pub seed: u64,
    /// The configuration.
    pub setup: Setup,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// One thing that an engine committed. Numbers are indices into [`History::steps`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// A [`Step::Deliver`].
    Deliver(usize),
    /// A [`Step::Repair`].
    Repair(usize),
    /// A [`Step::Timer`].
    Timer(usize),
    /// A [`Step::Person`].
    Person(usize),
    /// A [`Step::Rules`].
    Rules(usize),
    /// A [`Step::Migrate`].
    Migrate(usize),
    /// A [`Step::Import`].
    Import(usize),
    /// A [`Step::Deadline`]: this waiting event was asked, or with `None` all that are due, by entity and order of deferral.
    Deadline(usize, Option<EventId>),
    /// A release pass over an entity that another entity's change had marked ready (R3).
    Ready(EntityId),
}

/// The acts of a run in the order of their commits. [`Step::Cut`], [`Step::Restart`] and [`Step::HandOver`] are no acts.
pub type Recorded = Vec<Act>;

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.machine, self.key)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.machine, self.source, self.id)
    }
}

impl fmt::Display for LetterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            LetterSubject::Event(id) => write!(f, "{id}")?,
            LetterSubject::Envelope { source, partition, position } => write!(f, "{source}[{partition}]@{position}")?,
            LetterSubject::Timer { entity, name } => write!(f, "{entity} timer {name}")?,
            LetterSubject::Migration(entity) => write!(f, "{entity} migration")?,
        }
        write!(f, " #{}", self.nth)
    }
}

impl fmt::Display for ConflictId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{}", self.event, self.nth)
    }
}
