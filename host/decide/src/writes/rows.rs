//! The rows of what happened: history, messages, timers, alarms, what people did.

use std::sync::Arc;

use crate::event::Event;
use crate::ids::{Digest, EntityId, EventKey};

/// Why a history row was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// An event was applied.
    Event,
    /// A timer fired.
    Timer,
    /// `compensate` decided a refused event.
    Compensation,
    /// A refused event was skipped, by policy or by a person.
    Skip,
    /// A configured type consumed its version.
    Ignored,
    /// An intent that was known consumed its version.
    IntentDuplicate,
    /// The data was rewritten to a newer layout.
    Migration,
    /// A person dismissed a conflict at the next version.
    Dismiss,
    /// Another system handed it over.
    Import,
    /// A person had its contents erased.
    Erase,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Event,
        Self::Timer,
        Self::Compensation,
        Self::Skip,
        Self::Ignored,
        Self::IntentDuplicate,
        Self::Migration,
        Self::Dismiss,
        Self::Import,
        Self::Erase,
    ];

    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Timer => "timer",
            Self::Compensation => "compensation",
            Self::Skip => "skip",
            Self::Ignored => "ignored",
            Self::IntentDuplicate => "intent-duplicate",
            Self::Migration => "migration",
            Self::Dismiss => "dismiss",
            Self::Import => "import",
            Self::Erase => "erase",
        }
    }

    /// The cause of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

/// One revision of an entity (R8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRow {
    /// Whose.
    pub entity: EntityId,
    /// The revision it made.
    pub revision: u64,
    /// The entity's version afterwards.
    pub version: u64,
    /// The version it consumed or numbered, if any: unique per entity.
    pub consumed: Option<u64>,
    /// Why.
    pub cause: Cause,
    /// The event, with its payload; absent for timers and migrations.
    pub event: Option<Arc<Event>>,
    /// The timer's name, for those.
    pub timer: Option<Arc<str>>,
    /// The deciding time: the event's, or the timer's due time.
    pub time: i64,
    /// Host time of the decision.
    pub decided_at: i64,
    /// State before.
    pub previous_state: Option<Arc<str>>,
    /// State after.
    pub next_state: Option<Arc<str>>,
    /// SHA-256 of the entity's data afterwards.
    pub data_digest: Digest,
    /// SHA-256 over the effects, in order.
    pub effects_digest: Digest,
    /// Layout of the data afterwards.
    pub schema: u32,
    /// The activation in force, and the rules' digest.
    pub rules: RulesRef,
    /// The code and text of a refusal, or a remark such as `differs`.
    pub code: Option<String>,
    /// The rules' log lines.
    pub notes: Vec<String>,
    /// Who asked for it, and why, where a person did.
    pub by: Option<Actor>,
}

/// The rules in force: the activation's number and the component's digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RulesRef {
    /// Rises with every activation of the machine.
    pub activation: u64,
    /// The component.
    pub digest: Digest,
}

/// A person and their reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The login name, or what `--actor` says.
    pub name: String,
    /// What `--reason` says.
    pub reason: String,
}

/// A message of the outbox (R9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Who sent it.
    pub entity: EntityId,
    /// The revision that sent it.
    pub revision: u64,
    /// Its place in that revision's effects, from 0.
    pub index: u32,
    /// Where it goes.
    pub topic: String,
    /// Its CloudEvents type.
    pub kind: String,
    /// Its key, where it is not the entity's own.
    pub key: Option<Vec<u8>>,
    /// Media type of `data`.
    pub content_type: String,
    /// Extension attributes.
    pub attributes: Vec<(String, String)>,
    /// The payload.
    pub data: Vec<u8>,
    /// Under the entity's own key: consecutive per entity and topic.
    pub entity_version: Option<u64>,
    /// The deciding event, for `causationid`.
    pub cause: Option<EventKey>,
    /// Carried from the deciding event.
    pub correlation_id: Option<String>,
    /// Host time.
    pub created: i64,
}

/// What a transaction does to a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimerWrite {
    /// Start it, or replace the one of that name.
    Put {
        /// When it is due.
        due: i64,
        /// The revision that started it.
        revision: u64,
    },
    /// It is no longer pending.
    Close {
        /// `fired`, `cancelled`, `dropped` (terminal state), `ignored` (the rules refused it) or `fault`.
        outcome: &'static str,
        /// The refusal's code.
        code: Option<String>,
        /// Host time.
        at: i64,
    },
}

/// The kinds of alarm of R12 that decisions raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AlarmKind {
    /// A refused event holds its entity.
    Parked,
    /// An event is quarantined.
    Conflict,
    /// An intent came again with other data.
    IntentDiffers,
    /// An event came at a version that a person had skipped.
    SkippedCame,
}

impl AlarmKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Parked, Self::Conflict, Self::IntentDiffers, Self::SkippedCame];

    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parked => "refused event parked",
            Self::Conflict => "conflict",
            Self::IntentDiffers => "intent differs",
            Self::SkippedCame => "skipped version came",
        }
    }
}

/// What a transaction does to an alarm. Raising one that stands changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlarmWrite {
    /// Raise it.
    Raise {
        /// For a person.
        message: String,
        /// Host time.
        at: i64,
    },
    /// Its condition is gone.
    Clear {
        /// Host time.
        at: i64,
    },
}

/// What a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Host time.
    pub at: i64,
    /// Who and why.
    pub by: Actor,
    /// `dead-letter redrive`, …
    pub action: String,
    /// What it was done to.
    pub subject: String,
    /// What came of it.
    pub outcome: String,
}
