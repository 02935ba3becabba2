//! Outbox, timers, alarms, audit, partitions and the sums.

use std::collections::BTreeMap;
use std::sync::Arc;

use seqgate_decide::ids::EntityId;
use seqgate_decide::verdict::Verdict;
use seqgate_decide::writes::{AuditRow, OutboxRow};

/// How a message stands (R9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutboxStatus {
    /// To be sent.
    Pending,
    /// The sink has acknowledged it.
    Sent,
    /// Given up; holds back what is behind it.
    Failed,
}

impl OutboxStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Sent, Self::Failed];

    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Sent => "SENT",
            Self::Failed => "FAILED",
        }
    }

    /// The status of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// Which messages; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxFilter {
    /// Of this machine.
    pub machine: Option<Arc<str>>,
    /// That stand so.
    pub status: Option<OutboxStatus>,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxItem {
    /// Rises in the order of writing.
    pub id: u64,
    /// The message.
    pub row: OutboxRow,
    /// How it stands.
    pub status: OutboxStatus,
    /// How often it was sent.
    pub attempts: u64,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// Host time of the last change.
    pub changed: i64,
}

/// A pending timer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerItem {
    /// Whose.
    pub entity: EntityId,
    /// Its name.
    pub name: Arc<str>,
    /// When it is due.
    pub due: i64,
    /// The revision that started it.
    pub revision: u64,
}

/// An alarm (R12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlarmItem {
    /// Its kind.
    pub kind: String,
    /// What it is about.
    pub subject: String,
    /// For a person.
    pub message: String,
    /// When it was raised.
    pub since: i64,
    /// When it was cleared.
    pub cleared: Option<i64>,
}

/// What a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditItem {
    /// Rises in the order of writing.
    pub id: u64,
    /// What.
    pub row: AuditRow,
}

/// A partition with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionItem {
    /// The source, or `repair:MACHINE`.
    pub source: Arc<str>,
    /// The partition.
    pub partition: u32,
    /// Of its owner; 0 for one that nobody owned yet.
    pub epoch: u64,
    /// The next offset to read.
    pub offset: u64,
    /// Its last owner.
    pub owner: Option<String>,
    /// Deliveries.
    pub received: u64,
    /// Deliveries by their present verdict; absent means 0.
    pub verdicts: BTreeMap<Verdict, u64>,
}

/// How many, and since when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// How many.
    pub count: u64,
    /// Since when the oldest stands, in host time.
    pub oldest: Option<i64>,
}

/// The sums over everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Deliveries by their present verdict; absent means 0 (G6).
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Deliveries.
    pub received: u64,
    /// Entities with at least one revision.
    pub entities: u64,
    /// Entities that have only waiting events (R5).
    pub ghosts: u64,
    /// Entities that something holds, as `entity list --blocked` shows them.
    pub blocked: u64,
    /// Waiting events.
    pub deferred: Stand,
    /// Open dead letters.
    pub dead_letters: Stand,
    /// Messages that were not sent yet.
    pub outbox: Stand,
    /// Quarantined events that no person closed.
    pub conflicts: Stand,
    /// Alarms that stand.
    pub alarms: Stand,
    /// Pending timers; `oldest` is the earliest due time.
    pub timers: Stand,
}
