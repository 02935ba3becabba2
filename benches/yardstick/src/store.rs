//! What a store lets a benchmark do. The workload, the measuring and the figures know no more of it.

use std::path::Path;
use std::time::Duration;

use crate::lines::Delivery;

/// A way to write the same rows without Seqgate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A careful hand-written consumer: one transaction for each delivery.
    PerEvent,
    /// The limit: bulk statements, sorted, in batches of the same size, and no logic.
    Bulk,
}

impl Style {
    /// A word for files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::PerEvent => "per-event",
            Self::Bulk => "bulk",
        }
    }
}

/// What a table holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// Its name.
    pub name: String,
    /// How many rows.
    pub rows: u64,
    /// The bytes of all their values.
    pub bytes: u64,
}

/// What writing the rows again gave.
#[derive(Debug)]
pub struct Replayed {
    /// From the first statement to the last commit.
    pub elapsed: Duration,
    /// What it left.
    pub sizes: Vec<TableSize>,
    /// How many there were.
    pub transactions: usize,
}

/// A throw-away database of the program's.
pub trait Yardstick {
    /// `[store] url`, for a configuration in the benchmark's folder.
    fn url(&self) -> String;

    /// Watches how far the partitions are.
    ///
    /// # Errors
    /// There is no database.
    fn watch(&self) -> anyhow::Result<Box<dyn Offsets>>;

    /// What every table holds.
    ///
    /// # Errors
    /// It cannot be read.
    fn sizes(&self) -> anyhow::Result<Vec<TableSize>>;

    /// Bytes that the database takes, indexes and free space included.
    ///
    /// # Errors
    /// It cannot be read.
    fn stored_bytes(&self) -> anyhow::Result<u64>;

    /// Writes the same rows to a new database of the same schema and durability.
    ///
    /// # Errors
    /// A database cannot be read or written.
    fn replay(&self, style: Style, deliveries: &[Delivery], lines: &Path, batch: usize) -> anyhow::Result<Replayed>;
}

/// How far the partitions are.
pub trait Offsets {
    /// Partitions of source `bench`, each with the offset before which everything is committed.
    ///
    /// # Errors
    /// It cannot be read.
    fn offsets(&mut self) -> anyhow::Result<Vec<(u32, u64)>>;
}
