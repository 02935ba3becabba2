//! The embedded store: one SQLite file in WAL mode, every commit on disk before it is answered (synchronous=FULL).
//!
//! One connection writes, in immediate transactions; a few others read snapshots meanwhile. Other processes (the command
//! line) may write too; they wait for each other for the busy time-out.
//!
//! - `open`, `probe`, `transaction`: connections, schema, the writer; `batch`, `codec`: many rows in one statement, and how
//!   values are kept; `failures`: result codes
//! - `load`, `load_entities`: a batch's world; `commit`, `write_*`: its rows
//! - `partitions`, `rules`, `due`: the rest of the trait; `list_*`: reads for people

mod batch;
mod codec;
mod commit;
mod cursor;
mod due;
mod erase;
mod failures;
mod list_entities;
mod list_events;
mod list_operations;
mod list_refusals;
mod load;
mod load_entities;
mod log;
mod open;
mod partitions;
pub(super) mod probe;
mod prune;
mod rules;
mod status;
#[cfg(test)]
mod tests;
mod transaction;
mod write_effects;
mod write_entities;
mod write_refusals;

use std::sync::atomic::AtomicU64;

use seqgate_decide::ids::{Digest, EntityId, Ref};
use seqgate_decide::world::{Waiting, World};
use seqgate_decide::writes::HistoryRow;
use sqlx::SqliteConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use tokio::sync::Mutex;

use super::log::{Appended, Log, LogEntry, LogSize, NewEntry};
use super::registry::{Activation, Registry, RulesRecord, Switch};
use super::retention::{Base, Horizons, Place, Retention, Step};
use super::views::*;
use super::{
    Commit, DueTimer, EarlyDue, Faults, Ownership, Pending, Settled, SourceIdentity, Store, Transaction, Wants,
};

pub(super) use open::database_file;

/// A store in a file.
pub(super) struct SqliteStore {
    options: SqliteConnectOptions,
    /// The writer's connection while no transaction is under way; `None` after one broke, until the next connects.
    /// The lock is the queue of transactions, and is meant to be held over one.
    writer: Mutex<Option<SqliteConnection>>,
    readers: SqlitePool,
    faults: Faults,
    statements: AtomicU64,
}

impl Store for SqliteStore {
    fn load<'a>(&'a self, wants: &'a Wants, world: &'a mut World) -> Pending<'a, ()> {
        Box::pin(self.load_world(wants, world))
    }

    fn commit<'a>(&'a self, commit: &'a Commit<'a>) -> Pending<'a, ()> {
        Box::pin(self.write_commit(commit))
    }

    fn settle<'a>(&'a self, transaction: &'a Transaction) -> Pending<'a, Settled> {
        Box::pin(self.settle_transaction(transaction))
    }

    fn acquire<'a>(&'a self, source: &'a str, partition: u32, owner: &'a str) -> Pending<'a, Ownership> {
        Box::pin(self.acquire_partition(source, partition, owner))
    }

    fn fix_partitions<'a>(&'a self, source: &'a str, partitions: u32) -> Pending<'a, ()> {
        Box::pin(self.fix_source_partitions(source, partitions))
    }

    fn source_identity<'a>(&'a self, source: &'a str) -> Pending<'a, Option<SourceIdentity>> {
        Box::pin(self.read_identity(source))
    }

    fn put_source_identity<'a>(&'a self, source: &'a str, identity: &'a SourceIdentity) -> Pending<'a, ()> {
        Box::pin(self.write_identity(source, identity))
    }

    fn data_version(&self) -> Pending<'_, i64> {
        Box::pin(self.read_data_version())
    }

    fn due_timers(&self, now: i64, limit: u32) -> Pending<'_, Vec<DueTimer>> {
        Box::pin(self.read_due_timers(now, limit))
    }

    fn ready_entities(&self, limit: u32) -> Pending<'_, Vec<EntityId>> {
        Box::pin(self.read_ready(limit))
    }

    fn overdue_early(&self, now: i64, limit: u32) -> Pending<'_, Vec<EarlyDue>> {
        Box::pin(self.read_overdue_early(now, limit))
    }

    fn raise_alarm<'a>(&'a self, kind: &'a str, subject: &'a str, message: &'a str, at: i64) -> Pending<'a, bool> {
        Box::pin(self.write_alarm(kind, subject, Some(message), at))
    }

    fn clear_alarm<'a>(&'a self, kind: &'a str, subject: &'a str, at: i64) -> Pending<'a, bool> {
        Box::pin(self.write_alarm(kind, subject, None, at))
    }

    fn compact_moves(&self) -> Pending<'_, ()> {
        Box::pin(self.fold_moves())
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(self.close_all())
    }
}

impl Log for SqliteStore {
    fn append<'a>(&'a self, source: &'a str, entries: &'a [NewEntry], at: i64, most: u64) -> Pending<'a, Appended> {
        Box::pin(self.append_log(source, entries, at, most))
    }

    fn read_log<'a>(&'a self, source: &'a str, partition: u32, from: u64, bytes: u64) -> Pending<'a, Vec<LogEntry>> {
        Box::pin(self.read_log_entries(source, partition, from, bytes))
    }

    fn log_size<'a>(&'a self, source: &'a str) -> Pending<'a, LogSize> {
        Box::pin(self.read_log_size(source))
    }

    fn prune_log<'a>(&'a self, source: &'a str, before: i64, most: u64) -> Pending<'a, u64> {
        Box::pin(self.prune_log_entries(source, before, most))
    }
}

impl Registry for SqliteStore {
    fn put_rules<'a>(&'a self, record: &'a RulesRecord, bytes: &'a [u8]) -> Pending<'a, bool> {
        Box::pin(self.write_rules(record, bytes))
    }

    fn rules(&self, digest: Digest) -> Pending<'_, Option<(RulesRecord, Vec<u8>)>> {
        Box::pin(self.read_rules(digest))
    }

    fn list_rules<'a>(&'a self, machine: Option<&'a str>, page: &'a Page) -> Pending<'a, Listing<RulesRecord>> {
        Box::pin(self.read_rules_list(machine, page))
    }

    fn activate<'a>(
        &'a self,
        machine: &'a str,
        digest: Digest,
        actor: &'a str,
        reason: &'a str,
        at: i64,
    ) -> Pending<'a, u64> {
        Box::pin(self.write_activation(machine, digest, actor, reason, at))
    }

    fn active<'a>(&'a self, machine: &'a str) -> Pending<'a, Option<(u64, Digest)>> {
        Box::pin(self.read_active(machine))
    }

    fn activations<'a>(&'a self, machine: &'a str) -> Pending<'a, Vec<Activation>> {
        Box::pin(self.read_activations(machine))
    }

    fn switches<'a>(&'a self, machine: &'a str) -> Pending<'a, Vec<Switch>> {
        Box::pin(self.read_switches(machine))
    }
}

impl Retention for SqliteStore {
    fn prune<'a>(&'a self, horizons: &'a Horizons, from: &'a Place, now: i64) -> Pending<'a, Step> {
        Box::pin(self.prune_step(horizons, from, now))
    }

    fn base<'a>(&'a self, id: &'a EntityId) -> Pending<'a, Option<Base>> {
        Box::pin(self.read_base(id))
    }
}

impl Views for SqliteStore {
    fn entities<'a>(&'a self, filter: &'a EntityFilter, page: &'a Page) -> Pending<'a, Listing<EntitySummary>> {
        Box::pin(self.list_entities(filter, page))
    }

    fn entity<'a>(&'a self, id: &'a EntityId) -> Pending<'a, Option<EntityDetail>> {
        Box::pin(self.read_entity(id))
    }

    fn history<'a>(&'a self, id: &'a EntityId, page: &'a Page) -> Pending<'a, Listing<HistoryRow>> {
        Box::pin(self.list_history(id, page))
    }

    fn events<'a>(&'a self, id: &'a str) -> Pending<'a, Vec<EventItem>> {
        Box::pin(self.read_events(id))
    }

    fn deferred<'a>(&'a self, filter: &'a DeferredFilter, page: &'a Page) -> Pending<'a, Listing<Waiting>> {
        Box::pin(self.list_deferred(filter, page))
    }

    fn deferred_one(&self, id: Ref) -> Pending<'_, Option<Waiting>> {
        Box::pin(self.read_deferred(id))
    }

    fn gaps<'a>(&'a self, machine: Option<&'a str>, page: &'a Page) -> Pending<'a, Listing<Gap>> {
        Box::pin(self.list_gaps(machine, page))
    }

    fn dead_letters<'a>(&'a self, filter: &'a DeadFilter, page: &'a Page) -> Pending<'a, Listing<DeadItem>> {
        Box::pin(self.list_dead_letters(filter, page))
    }

    fn dead_letter(&self, id: Ref) -> Pending<'_, Option<DeadDetail>> {
        Box::pin(self.read_dead_letter(id))
    }

    fn conflicts<'a>(
        &'a self,
        machine: Option<&'a str>,
        open: bool,
        page: &'a Page,
    ) -> Pending<'a, Listing<ConflictItem>> {
        Box::pin(self.list_conflicts(machine, open, page))
    }

    fn conflict(&self, id: Ref) -> Pending<'_, Option<ConflictDetail>> {
        Box::pin(self.read_conflict(id))
    }

    fn outbox<'a>(&'a self, filter: &'a OutboxFilter, page: &'a Page) -> Pending<'a, Listing<OutboxItem>> {
        Box::pin(self.list_outbox(filter, page))
    }

    fn timers<'a>(&'a self, machine: Option<&'a str>, page: &'a Page) -> Pending<'a, Listing<TimerItem>> {
        Box::pin(self.list_timers(machine, page))
    }

    fn alarms<'a>(&'a self, standing: bool, page: &'a Page) -> Pending<'a, Listing<AlarmItem>> {
        Box::pin(self.list_alarms(standing, page))
    }

    fn audit<'a>(&'a self, page: &'a Page) -> Pending<'a, Listing<AuditItem>> {
        Box::pin(self.list_audit(page))
    }

    fn partitions(&self) -> Pending<'_, Vec<PartitionItem>> {
        Box::pin(self.read_partitions())
    }

    fn status(&self) -> Pending<'_, Status> {
        Box::pin(self.read_status())
    }
}
