//! Reads for people: plain structs, a file per noun. Lists are paged by a limit and an opaque cursor.

mod entities;
mod events;
mod operations;
mod refusals;

use std::sync::Arc;

use seqgate_decide::ids::{EntityId, Ref};
use seqgate_decide::verdict::DeferReason;
use seqgate_decide::world::Waiting;
use seqgate_decide::writes::HistoryRow;

pub use entities::{Blocked, BlockedBy, EntityDetail, EntityFilter, EntitySummary, Gap};
pub use events::{EventItem, Standing};
pub use operations::{
    AlarmItem, AuditItem, OutboxFilter, OutboxItem, OutboxStatus, PartitionItem, Stand, Status, TimerItem,
};
pub use refusals::{ConflictDetail, ConflictItem, DeadDetail, DeadFilter, DeadItem};

use super::Pending;

/// Which part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most this many items.
    pub limit: u32,
    /// Where the last part ended: its [`Listing::next`].
    pub cursor: Option<String>,
}

impl Page {
    /// The first part.
    pub fn first(limit: u32) -> Self {
        Self { limit, cursor: None }
    }

    /// The part that follows.
    pub fn after(limit: u32, cursor: impl Into<String>) -> Self {
        Self { limit, cursor: Some(cursor.into()) }
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing<T> {
    /// The items.
    pub items: Vec<T>,
    /// For the next part; `None` at the end.
    pub next: Option<String>,
}

/// Which waiting events; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeferredFilter {
    /// Of this machine.
    pub machine: Option<Arc<str>>,
    /// Of this entity; replaces `machine`.
    pub entity: Option<EntityId>,
    /// For this reason.
    pub reason: Option<DeferReason>,
}

/// The reading part of a store.
pub trait Views {
    /// Entities by address.
    fn entities<'a>(&'a self, filter: &'a EntityFilter, page: &'a Page) -> Pending<'a, Listing<EntitySummary>>;

    /// One entity. A row that only guards something that waits for it counts as absent.
    fn entity<'a>(&'a self, id: &'a EntityId) -> Pending<'a, Option<EntityDetail>>;

    /// An entity's revisions, in order.
    fn history<'a>(&'a self, id: &'a EntityId, page: &'a Page) -> Pending<'a, Listing<HistoryRow>>;

    /// Every event of this CloudEvents id, across machines and sources, with where its content stands (G6).
    fn events<'a>(&'a self, id: &'a str) -> Pending<'a, Vec<EventItem>>;

    /// Waiting events: an entity's by version, others by reason and age.
    fn deferred<'a>(&'a self, filter: &'a DeferredFilter, page: &'a Page) -> Pending<'a, Listing<Waiting>>;

    /// One waiting event.
    fn deferred_one(&self, id: Ref) -> Pending<'_, Option<Waiting>>;

    /// Missing versions: neither consumed nor waiting nor dead letters (R3.5), by address.
    fn gaps<'a>(&'a self, machine: Option<&'a str>, page: &'a Page) -> Pending<'a, Listing<Gap>>;

    /// Dead letters, the oldest first.
    fn dead_letters<'a>(&'a self, filter: &'a DeadFilter, page: &'a Page) -> Pending<'a, Listing<DeadItem>>;

    /// One dead letter with its event or bytes.
    fn dead_letter(&self, id: Ref) -> Pending<'_, Option<DeadDetail>>;

    /// Quarantined events, the oldest first; `open` leaves out what a person closed.
    fn conflicts<'a>(
        &'a self,
        machine: Option<&'a str>,
        open: bool,
        page: &'a Page,
    ) -> Pending<'a, Listing<ConflictItem>>;

    /// One quarantined event.
    fn conflict(&self, id: Ref) -> Pending<'_, Option<ConflictDetail>>;

    /// Messages, in the order in which they were written.
    fn outbox<'a>(&'a self, filter: &'a OutboxFilter, page: &'a Page) -> Pending<'a, Listing<OutboxItem>>;

    /// Pending timers, the earliest first.
    fn timers<'a>(&'a self, machine: Option<&'a str>, page: &'a Page) -> Pending<'a, Listing<TimerItem>>;

    /// Alarms, the oldest first; `standing` leaves out what was cleared.
    fn alarms<'a>(&'a self, standing: bool, page: &'a Page) -> Pending<'a, Listing<AlarmItem>>;

    /// What people did, the newest first.
    fn audit<'a>(&'a self, page: &'a Page) -> Pending<'a, Listing<AuditItem>>;

    /// Every partition, with its counters as they stand after all moves.
    fn partitions(&self) -> Pending<'_, Vec<PartitionItem>>;

    /// The sums.
    fn status(&self) -> Pending<'_, Status>;
}
