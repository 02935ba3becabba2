//! Everything that a decision writes, as rows. Whoever interprets them (the stores) decides nothing.
//!
//! Decisions of one batch are merged: later ones see and amend the rows of earlier ones, so that a batch writes each row
//! once. Keys are kept sorted, which is the order in which rows are locked (R7).

mod merge;
mod refusals;
mod rows;

pub use refusals::{
    ConflictRow, ConflictWrite, DeadRow, DeadStatus, DeadUpdate, DeadWrite, InboxRow, InboxWrite, WaitingWrite,
};
pub use rows::{Actor, AlarmKind, AlarmWrite, AuditRow, Cause, HistoryRow, OutboxRow, RulesRef, TimerWrite};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ids::{EntityId, EventKey, Ref};
use crate::verdict::Verdict;
use crate::world::{Entity, Intent};

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
    /// Entities whose payloads, texts and data are to be blanked in every row that is kept, after the other rows.
    pub erased: BTreeSet<EntityId>,
    /// What people did.
    pub audit: Vec<AuditRow>,
    /// First verdicts of deliveries, by source, partition and verdict.
    pub counts: BTreeMap<(Arc<str>, u32, Verdict), u64>,
    /// Later changes: source and partition of the first delivery, from, to.
    pub moves: BTreeMap<(Arc<str>, u32, Verdict, Verdict), u64>,
}
