//! What outlives the process: every row that a decision wrote, and where each partition stands.
//!
//! A store decides nothing. It fills a [`World`] with what the core asked for ([`Wants`]), and writes what the core
//! decided ([`Commit`]) in one transaction, or nothing of it (G2). This module alone knows the databases.
//!
//! - [`types`]: what goes in and out of a decision's transaction; [`error`]: failures, by what the caller does next
//! - [`registry`]: components and activations (R8); [`retention`]: what may be forgotten; [`views`]: reads for people, a file per noun
//! - [`log`]: the log of embedded sources
//! - [`lock`]: the lock of `run` beside an embedded database (R7); [`faults`]: where tests make it fail
//! - `sqlite`: the embedded store

pub mod error;
pub mod faults;
pub mod lock;
pub mod log;
pub mod registry;
pub mod retention;
mod sqlite;
pub mod types;
pub mod views;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seqgate_decide::ids::EntityId;
use seqgate_decide::world::World;

pub use error::{NextStep, StoreError};
pub use faults::{Faults, Point};
pub use log::Log;
pub use registry::Registry;
pub use retention::Retention;
pub use types::{
    Commit, DueTimer, EarlyDue, Fence, OperationId, Ownership, Settled, SourceIdentity, Transaction, Wants,
};
pub use views::Views;

/// What a store's operation gives.
pub type Result<T> = std::result::Result<T, StoreError>;

/// An operation under way. Dropping it before its end rolls back what it began.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a transaction waits for another process's before it is [`StoreError::Busy`].
    pub busy_timeout: Duration,
    /// Connections that read while the one writer commits.
    pub readers: u32,
    /// Where tests make it fail; [`Faults::none`] otherwise.
    pub faults: Faults,
}

impl Default for Settings {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(5), readers: 3, faults: Faults::none() }
    }
}

/// Opens the database that `url` names, makes it when it is missing, and brings its schema up to date under a lock.
///
/// Refused: a database that a newer Seqgate wrote ([`StoreError::Newer`]), a file that is something else
/// ([`StoreError::Foreign`]) or damaged ([`StoreError::Corrupt`]).
pub async fn open(url: &str, settings: Settings) -> Result<Arc<dyn Store>> {
    match url.split_once(':') {
        Some(("sqlite", _)) => Ok(Arc::new(sqlite::SqliteStore::open(url, settings).await?)),
        _ => Err(StoreError::Url { url: url.to_owned() }),
    }
}

/// The file of an embedded database, beside which [`lock::RunLock`] lies; `None` for a server's.
pub fn database_file(url: &str) -> Result<Option<PathBuf>> {
    match url.split_once(':') {
        Some(("sqlite", _)) => sqlite::database_file(url).map(Some),
        _ => Ok(None),
    }
}

/// What stands where a database is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// Nothing yet: [`open`] would make it.
    Missing,
    /// An older Seqgate's; [`open`] would bring its schema up to date.
    Older {
        /// Its schema.
        found: i64,
        /// The newest known.
        known: i64,
    },
    /// Ready to be used.
    Ready,
}

/// Looks at a database without making or changing anything. Refused are the same ones as by [`open`].
pub async fn probe(url: &str) -> Result<Probe> {
    match url.split_once(':') {
        Some(("sqlite", _)) => sqlite::probe::probe(url).await,
        _ => Err(StoreError::Url { url: url.to_owned() }),
    }
}

/// The rows of one deployment. Times are milliseconds since the epoch and come from the caller.
pub trait Store: Registry + Views + Log + Retention + Send + Sync {
    /// Puts everything that `wants` names into `world`, as one snapshot; what is not there is put as absent.
    ///
    /// An entity comes with its timers, waiting events by order of deferral, open dead letters and waiters; an inbox key
    /// with what is quarantined under it. The number of statements does not depend on how much is wanted.
    fn load<'a>(&'a self, wants: &'a Wants, world: &'a mut World) -> Pending<'a, ()>;

    /// Writes a decision, whole or not at all, in one transaction of a fixed number of statements (G2).
    ///
    /// In this order: the fence (R7, G5), the activations (R8), the guards (R7), the rows.
    fn commit<'a>(&'a self, commit: &'a Commit<'a>) -> Pending<'a, ()>;

    /// Says whether a commit that ended in [`StoreError::Unknown`] took place (R7). [`StoreError::Fenced`] when the
    /// partition has a new owner since, so that its row cannot tell any more.
    fn settle<'a>(&'a self, transaction: &'a Transaction) -> Pending<'a, Settled>;

    /// Takes a partition over: its epoch rises, so that nothing of an earlier owner commits any more (G5).
    fn acquire<'a>(&'a self, source: &'a str, partition: u32, owner: &'a str) -> Pending<'a, Ownership>;

    /// Fixes the number of partitions of a source at its first use; [`StoreError::Partitions`] for another number (R10).
    fn fix_partitions<'a>(&'a self, source: &'a str, partitions: u32) -> Pending<'a, ()>;

    /// The file that a source was read from, as stored (R10).
    fn source_identity<'a>(&'a self, source: &'a str) -> Pending<'a, Option<SourceIdentity>>;

    /// Stores which file a source is read from.
    fn put_source_identity<'a>(&'a self, source: &'a str, identity: &'a SourceIdentity) -> Pending<'a, ()>;

    /// Changes whenever another process has written since the last call; own commits do not change it (R7). It may
    /// change for no reason: after a connection broke.
    fn data_version(&self) -> Pending<'_, i64>;

    /// Pending timers due at `now`, the earliest first, of entities that neither wait nor are blocked (R6).
    fn due_timers(&self, now: i64, limit: u32) -> Pending<'_, Vec<DueTimer>>;

    /// Entities with waiting events that are marked ready (R7's sweep).
    fn ready_entities(&self, limit: u32) -> Pending<'_, Vec<EntityId>>;

    /// Early events whose deadline has passed at `now` (R4).
    fn overdue_early(&self, now: i64, limit: u32) -> Pending<'_, Vec<EarlyDue>>;

    /// Raises an alarm that no decision raises (R12); one that stands stays as it is. Says whether it is new.
    fn raise_alarm<'a>(&'a self, kind: &'a str, subject: &'a str, message: &'a str, at: i64) -> Pending<'a, bool>;

    /// Clears an alarm; says whether it stood.
    fn clear_alarm<'a>(&'a self, kind: &'a str, subject: &'a str, at: i64) -> Pending<'a, bool>;

    /// Folds the appended moves of verdicts to one row per partition and move; totals stay as they are (R7).
    fn compact_moves(&self) -> Pending<'_, ()>;

    /// Ends all connections; an operation begun afterwards fails.
    fn close(&self) -> Pending<'_, ()>;
}
