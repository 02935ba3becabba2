//! Everything that a decision writes, as rows. Whoever interprets them (the stores) decides nothing.
//!
//! Decisions of one batch are merged: later ones see and amend the rows of earlier ones, so that a batch writes each row
//! once. Keys are kept sorted, which is the order in which rows are locked (R7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::Event;
use crate::ids::{Digest, EntityId, EventKey, Position, Ref};
use crate::verdict::{DeferReason, Verdict};
use crate::world::{DeadKind, Entity, Intent, Waiter, Waiting};

/// The rows of one or more decisions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes {
    /// Entities as they are to be afterwards. `row_version` is the guard: the one that was loaded.
    pub entities: BTreeMap<EntityId, Entity>,
    /// Entities that something concerns without changing them (a waiter on them, a mark): only their guard rises.
    /// Where there is no row, an empty one is written.
    pub touched: BTreeSet<EntityId>,
    /// New history rows, in order per entity.
    pub history: Vec<HistoryRow>,
    /// Inbox rows, new or amended.
    pub inbox: BTreeMap<EventKey, InboxWrite>,
    /// Idempotency keys taken, by machine and key. Inserted plainly: a violation is a race.
    pub intents: BTreeMap<(Arc<str>, Arc<str>), Intent>,
    /// Waiting events put, amended or taken out.
    pub waiting: BTreeMap<(EntityId, Ref), WaitingWrite>,
    /// Dead letters, new or amended.
    pub dead: BTreeMap<Ref, DeadWrite>,
    /// Quarantined events, new or amended.
    pub conflicts: BTreeMap<Ref, ConflictWrite>,
    /// Messages, in order per entity.
    pub outbox: Vec<OutboxRow>,
    /// Timers put or taken out, by entity and name.
    pub timers: BTreeMap<(EntityId, Arc<str>), TimerWrite>,
    /// Alarms raised or cleared, by kind and subject.
    pub alarms: BTreeMap<(AlarmKind, String), AlarmWrite>,
    /// What people did.
    pub audit: Vec<AuditRow>,
    /// First verdicts of deliveries, by source, partition and verdict.
    pub counts: BTreeMap<(Arc<str>, u32, Verdict), u64>,
    /// Later changes: source and partition of the first delivery, from, to.
    pub moves: BTreeMap<(Arc<str>, u32, Verdict, Verdict), u64>,
}

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
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Event,
        Self::Timer,
        Self::Compensation,
        Self::Skip,
        Self::Ignored,
        Self::IntentDuplicate,
        Self::Migration,
        Self::Dismiss,
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
        waits_for: Vec<crate::rules::Dependency>,
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

impl Writes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the rows of a later decision in: where both write a row, one row that does both is left.
    pub fn merge(&mut self, later: Self) {
        for (id, entity) in later.entities {
            self.touched.remove(&id);
            self.entities.insert(id, entity);
        }
        for id in later.touched {
            if !self.entities.contains_key(&id) {
                self.touched.insert(id);
            }
        }
        self.history.extend(later.history);
        for (key, write) in later.inbox {
            merge_into(&mut self.inbox, key, write, merge_inbox);
        }
        self.intents.extend(later.intents);
        for (key, write) in later.waiting {
            merge_into(&mut self.waiting, key, write, merge_waiting);
        }
        for (id, write) in later.dead {
            merge_into(&mut self.dead, id, write, merge_dead);
        }
        for (id, write) in later.conflicts {
            merge_into(&mut self.conflicts, id, write, merge_conflict);
        }
        self.outbox.extend(later.outbox);
        self.timers.extend(later.timers);
        self.alarms.extend(later.alarms);
        self.audit.extend(later.audit);
        for (key, n) in later.counts {
            *self.counts.entry(key).or_default() += n;
        }
        for (key, n) in later.moves {
            *self.moves.entry(key).or_default() += n;
        }
    }
}

fn merge_into<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, later: V, merge: fn(&mut V, V)) {
    use std::collections::btree_map::Entry;
    match map.entry(key) {
        Entry::Vacant(free) => {
            free.insert(later);
        }
        Entry::Occupied(mut row) => merge(row.get_mut(), later),
    }
}

fn merge_inbox(earlier: &mut InboxWrite, later: InboxWrite) {
    match (earlier, later) {
        (InboxWrite::Insert(row), InboxWrite::Update { deliveries, last, verdict }) => {
            row.deliveries += deliveries;
            row.last = last.or_else(|| row.last.take());
            if let Some((verdict, reason)) = verdict {
                row.verdict = verdict;
                row.reason = reason;
            }
        }
        (
            InboxWrite::Update { deliveries, last, verdict },
            InboxWrite::Update { deliveries: more, last: newer, verdict: newest },
        ) => {
            *deliveries += more;
            *last = newer.or_else(|| last.take());
            *verdict = newest.or_else(|| verdict.take());
        }
        (earlier, later @ InboxWrite::Insert(_)) => {
            debug_assert!(false, "an inbox row is inserted once");
            *earlier = later;
        }
    }
}

fn merge_waiting(earlier: &mut WaitingWrite, later: WaitingWrite) {
    match (earlier, later) {
        (WaitingWrite::Put { row, .. }, WaitingWrite::Ready) => row.ready = true,
        (WaitingWrite::Delete, WaitingWrite::Ready) => debug_assert!(false, "what is gone is not made ready"),
        (earlier, later) => *earlier = later,
    }
}

fn merge_dead(earlier: &mut DeadWrite, later: DeadWrite) {
    match (earlier, later) {
        (DeadWrite::Put(row), DeadWrite::Update(change)) => {
            if let Some(status) = change.status {
                row.status = status;
            }
            if let Some((class, code, message)) = change.refusal {
                (row.class, row.code, row.message) = (class, code, message);
            }
            row.attempts = change.attempts.unwrap_or(row.attempts);
            row.by = change.by.or_else(|| row.by.take());
            row.replaced_by = change.replaced_by.or_else(|| row.replaced_by.take());
        }
        (DeadWrite::Update(earlier), DeadWrite::Update(change)) => {
            earlier.status = change.status.or(earlier.status);
            earlier.refusal = change.refusal.or_else(|| earlier.refusal.take());
            earlier.attempts = change.attempts.or(earlier.attempts);
            earlier.by = change.by.or_else(|| earlier.by.take());
            earlier.replaced_by = change.replaced_by.or_else(|| earlier.replaced_by.take());
            earlier.at = change.at;
        }
        (earlier, later) => *earlier = later,
    }
}

fn merge_conflict(earlier: &mut ConflictWrite, later: ConflictWrite) {
    match (earlier, later) {
        (ConflictWrite::Put(row), ConflictWrite::Update { copies, dismissed, .. }) => {
            row.copies += copies;
            row.dismissed = dismissed.or_else(|| row.dismissed.take());
        }
        (
            ConflictWrite::Update { copies, dismissed, at },
            ConflictWrite::Update { copies: more, dismissed: newer, at: newest },
        ) => {
            *copies += more;
            *dismissed = newer.or_else(|| dismissed.take());
            *at = newest;
        }
        (earlier, later) => *earlier = later,
    }
}

impl Writes {
    /// The waiters that a waiting event's row stands for, as seen from the entities that it waits for.
    pub fn waiter(row: &Waiting, version: u64) -> Waiter {
        Waiter { entity: row.event.entity.clone(), event: row.id(), version }
    }

    /// A deferral's reason as the inbox shows it.
    pub fn reason_text(reason: DeferReason) -> Option<String> {
        Some(reason.name().to_owned())
    }
}
