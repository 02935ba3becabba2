//! The rows of what every event came to, and of those that wait or were refused: inbox, waiting, dead letters, conflicts.

use std::sync::Arc;

use super::rows::{Actor, RulesRef};
use crate::event::Event;
use crate::ids::{Digest, EntityId, EventKey, Position};
use crate::rules::Dependency;
use crate::verdict::Verdict;
use crate::world::{DeadKind, Waiting};

/// What a transaction does to an inbox row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxWrite {
    /// A row for an event that was never seen. Inserted plainly: a violation is a race.
    Insert(InboxRow),
    /// A row that exists.
    Update {
        /// More deliveries of it.
        deliveries: u64,
        /// The last one's position.
        last: Option<Position>,
        /// A new verdict, with its reason or code.
        verdict: Option<(Verdict, Option<String>)>,
    },
}

/// A new inbox row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// The entity that the event named.
    pub entity: EntityId,
    /// Its type.
    pub kind: Arc<str>,
    /// Its version.
    pub version: Option<u64>,
    /// Content by bytes.
    pub digest: Digest,
    /// Content by value.
    pub value_digest: Digest,
    /// The verdict.
    pub verdict: Verdict,
    /// Why: a deferral's reason, a refusal's code, a duplicate's note.
    pub reason: Option<String>,
    /// First delivery; `None` for an event that a person put in another's place.
    pub first: Option<Position>,
    /// Last delivery.
    pub last: Option<Position>,
    /// How often it was delivered.
    pub deliveries: u64,
    /// Host time of the first.
    pub received: i64,
}

/// What a transaction does to a waiting event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingWrite {
    /// Insert it, or overwrite its reason, names, deadline and mark.
    Put {
        /// The row.
        row: Waiting,
        /// The versions of other entities that it waits for.
        waits_for: Vec<Dependency>,
    },
    /// Mark it ready.
    Ready,
    /// It waits no longer.
    Delete,
}

/// How a dead letter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DeadStatus {
    /// Waits for a person or a rule change.
    Open,
    /// Passed over, by policy or by a person.
    Skipped,
    /// `compensate` dealt with it.
    Compensated,
    /// Sent through the rules again, which took it.
    Redriven,
    /// A corrected event was decided in its place.
    Replaced,
    /// A higher snapshot came.
    Superseded,
}

impl DeadStatus {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Skipped, Self::Compensated, Self::Redriven, Self::Replaced, Self::Superseded];

    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Skipped => "skipped",
            Self::Compensated => "compensated",
            Self::Redriven => "redriven",
            Self::Replaced => "replaced",
            Self::Superseded => "superseded",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// What a transaction does to a dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadWrite {
    /// A new one (one of that name that is closed is opened again).
    Put(DeadRow),
    /// One that exists.
    Update(DeadUpdate),
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadRow {
    /// What it is about.
    pub kind: DeadKind,
    /// Illegal, malformed or fault.
    pub class: Verdict,
    /// Stable code.
    pub code: String,
    /// For a person; at most 4 KiB.
    pub message: String,
    /// The entity, where it could be told.
    pub entity: Option<EntityId>,
    /// The event, where its envelope could be read.
    pub event: Option<Arc<Event>>,
    /// A malformed envelope's bytes, whole.
    pub raw: Option<Arc<[u8]>>,
    /// Where it was first received.
    pub position: Option<Position>,
    /// The timer, for that kind: name and due time.
    pub timer: Option<(Arc<str>, i64)>,
    /// Whether it holds its entity's later events.
    pub blocks: bool,
    /// How it stands.
    pub status: DeadStatus,
    /// How often it was decided.
    pub attempts: u32,
    /// Host time of the first refusal.
    pub since: i64,
    /// The rules that refused it.
    pub rules: Option<RulesRef>,
    /// Who closed it, where a person did.
    pub by: Option<Actor>,
    /// The event that took its place.
    pub replaced_by: Option<EventKey>,
}

/// Changes to a dead letter; `None` leaves as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadUpdate {
    /// New status.
    pub status: Option<DeadStatus>,
    /// Class, code and text of the last refusal.
    pub refusal: Option<(Verdict, String, String)>,
    /// How often it was decided now.
    pub attempts: Option<u32>,
    /// Who did it.
    pub by: Option<Actor>,
    /// The event that took its place.
    pub replaced_by: Option<EventKey>,
    /// Host time of the change.
    pub at: i64,
}

/// What a transaction does to a quarantined event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictWrite {
    /// A new one.
    Put(ConflictRow),
    /// One that exists.
    Update {
        /// More exact copies of it.
        copies: u64,
        /// A person closed it.
        dismissed: Option<Actor>,
        /// Host time.
        at: i64,
    },
}

/// A quarantined event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictRow {
    /// The event.
    pub event: Arc<Event>,
    /// `id`, `version`, `waiting`, `fork` or `intent`.
    pub code: &'static str,
    /// What it conflicts with, for a person; says so when two writers number the entity (R5).
    pub message: String,
    /// How often it came; from 1.
    pub copies: u64,
    /// Closed by a person.
    pub dismissed: Option<Actor>,
    /// Host time of the first.
    pub since: i64,
    /// Where it was first received.
    pub position: Option<Position>,
}
