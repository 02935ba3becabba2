//! The log of embedded sources, which lives in the store's database.

use super::Pending;

/// What one event takes besides its bytes: its row's other columns and its place in an index.
pub const OVERHEAD: u64 = 64;

/// One event to append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    /// Its partition.
    pub partition: u32,
    /// A CloudEvent in JSON, or bytes that cannot be read as one.
    pub bytes: Vec<u8>,
}

impl NewEntry {
    /// What it takes of the log.
    pub fn size(&self) -> u64 {
        self.bytes.len() as u64 + OVERHEAD
    }
}

/// One event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its offset in its partition: counts from 0, without holes.
    pub offset: u64,
    /// Host time at which it was taken.
    pub at: i64,
    /// As it was appended.
    pub bytes: Vec<u8>,
}

/// How much a source's log holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogSize {
    /// Events, decided ones among them until they are pruned.
    pub events: u64,
    /// Bytes, with [`OVERHEAD`] for each event.
    pub bytes: u64,
}

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    /// All of it is on disk: the offsets, in the order of the entries.
    Durable(Vec<u64>),
    /// Nothing of it is: the log would hold more than it may.
    Full(LogSize),
}

/// The log's part of a store.
pub trait Log {
    /// Appends all of these, or nothing: [`Appended::Full`] where the source's log would pass `most` bytes.
    fn append<'a>(&'a self, source: &'a str, entries: &'a [NewEntry], at: i64, most: u64) -> Pending<'a, Appended>;

    /// Entries of a partition from an offset on: at least one where there is one, and about `bytes` at most.
    fn read_log<'a>(&'a self, source: &'a str, partition: u32, from: u64, bytes: u64) -> Pending<'a, Vec<LogEntry>>;

    /// How much the log holds.
    fn log_size<'a>(&'a self, source: &'a str) -> Pending<'a, LogSize>;

    /// Removes entries that their partition's owner has passed and that are older than `before`, or of any age while the
    /// log holds more than `most` bytes. One short transaction; gives how many went, and 0 when there are none left.
    fn prune_log<'a>(&'a self, source: &'a str, before: i64, most: u64) -> Pending<'a, u64>;
}
