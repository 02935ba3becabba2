//! Failures, split by what the caller does next.

use std::sync::Arc;

use seqgate_decide::ids::{Digest, EntityId};

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Nothing was written: try the same again, after a while with jitter.
    Retry,
    /// Nothing was written: load again and decide again.
    Redo,
    /// Nothing was written: load the rules in force, then decide again.
    Reload,
    /// Nothing was written, and the rows themselves are at fault: halve the batch (R5).
    Bisect,
    /// Nobody knows: ask [`super::Store::settle`].
    Settle,
    /// The partition has another owner: stop (exit 3).
    Fenced,
    /// A person has to act: stop (exit 2).
    Stop,
}

/// What went wrong, told apart by result codes and never by text.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process holds the database for longer than the time-out.
    #[error("the database is busy")]
    Busy(#[source] sqlx::Error),
    /// The disk, the connection or memory failed before anything was committed.
    #[error("the database cannot be reached or written")]
    Io(#[source] Cause),
    /// Another transaction was faster: a guard or a unique row has changed since it was read (R7).
    #[error("another transaction was faster ({0})")]
    Raced(Race),
    /// The partition's row is not as its owner left it (R7, G5).
    #[error("{source_name}/{partition} is no longer ours: expected epoch {} at offset {}, found {}", expected.0, expected.1, found_text(*found))]
    Fenced {
        /// The source.
        source_name: Arc<str>,
        /// The partition.
        partition: u32,
        /// Epoch and offset that the owner left.
        expected: (u64, u64),
        /// Epoch and offset that stand there; `None` for no row.
        found: Option<(u64, u64)>,
    },
    /// An activation came between the decision and its commit (R8).
    #[error("rules of {machine} have changed: activation {decided} decided, {active} is in force")]
    RulesChanged {
        /// The machine.
        machine: Arc<str>,
        /// The activation that decided; 0 for none.
        decided: u64,
        /// The activation in force; 0 for none.
        active: u64,
    },
    /// The rows themselves cannot be stored.
    #[error("the rows cannot be stored")]
    Data(#[source] Cause),
    /// COMMIT was sent and not answered.
    #[error("nobody knows whether the transaction was committed")]
    Unknown(#[source] Cause),
    /// An operation of this id was committed before.
    #[error("this operation was committed before")]
    AlreadyCommitted,
    /// A source was set up with another number of partitions (R10).
    #[error("{source_name} was set up with {stored} partitions, and is now configured with {configured}")]
    Partitions {
        /// The source.
        source_name: String,
        /// At its first use.
        stored: u32,
        /// Now.
        configured: u32,
    },
    /// No component of this digest is registered.
    #[error("{0} is not registered; `seqgate rules register FILE` does that")]
    NoSuchRules(Digest),
    /// The component is another machine's.
    #[error("{digest} is registered for machine {registered}, not for {machine}")]
    OtherMachine {
        /// The component.
        digest: Digest,
        /// Whose it is.
        registered: String,
        /// Whose it was to be.
        machine: String,
    },
    /// A cursor that no list gave.
    #[error("the cursor is not one that this list gave")]
    Cursor,
    /// A URL of no known store.
    #[error("`{url}` is no database URL; write sqlite:FILE")]
    Url {
        /// As given.
        url: String,
    },
    /// A newer Seqgate wrote this database.
    #[error(
        "the database has schema {found}, this Seqgate knows {known}: use the Seqgate that wrote it, or a newer one"
    )]
    Newer {
        /// Its schema.
        found: i64,
        /// The newest known.
        known: i64,
    },
    /// The schema cannot be brought up to date.
    #[error("the database's schema cannot be used")]
    Schema(#[source] Cause),
    /// The file holds something else.
    #[error("the file is a database, but none of Seqgate's")]
    Foreign,
    /// The file is damaged, or no database.
    #[error("the database is damaged, or no database")]
    Corrupt(#[source] Cause),
}

/// An error's source.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// What had changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Race {
    /// An entity's guard.
    Entity {
        /// Which one.
        entity: EntityId,
        /// Its `row_version` as loaded.
        expected: u64,
        /// And now.
        found: u64,
    },
    /// A row that was to be the first of its key, in this table.
    Row(&'static str),
}

impl std::fmt::Display for Race {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Entity { entity, expected, found } => {
                write!(f, "{entity} was read at row version {expected} and stands at {found}")
            }
            Self::Row(table) => write!(f, "a row of {table} exists"),
        }
    }
}

impl StoreError {
    /// What to do about it.
    pub fn next_step(&self) -> NextStep {
        match self {
            Self::Busy(_) | Self::Io(_) => NextStep::Retry,
            Self::Raced(_) => NextStep::Redo,
            Self::RulesChanged { .. } => NextStep::Reload,
            Self::Data(_) => NextStep::Bisect,
            Self::Unknown(_) => NextStep::Settle,
            Self::Fenced { .. } => NextStep::Fenced,
            Self::AlreadyCommitted
            | Self::Partitions { .. }
            | Self::NoSuchRules(_)
            | Self::OtherMachine { .. }
            | Self::Cursor
            | Self::Url { .. }
            | Self::Newer { .. }
            | Self::Schema(_)
            | Self::Foreign
            | Self::Corrupt(_) => NextStep::Stop,
        }
    }
}

fn found_text(found: Option<(u64, u64)>) -> String {
    found.map_or_else(|| "no row".to_owned(), |(epoch, offset)| format!("epoch {epoch} at offset {offset}"))
}
