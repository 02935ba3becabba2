//! Where events come from: ordered logs, split in partitions (R10).
//!
//! A source reads, decodes and routes; it decides nothing and stores nothing. Where to start comes from outside, and what it
//! read goes into one bounded queue for each partition: a partition that is slow holds its own source up, never memory.

pub mod budget;
pub mod embedded;
pub mod jsonl;

use std::sync::Arc;
use std::time::{Duration, Instant};

use seqgate_decide::envelope::{Decoded, Directory, Limits, Received, decode};
use seqgate_decide::ids::EntityId;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

pub use budget::{Budget, Room};

/// What a partition's queue brings, in order.
#[derive(Debug)]
pub enum Item {
    /// One line or record.
    Record(Record),
    /// Everything of this partition before `next` was delivered; the log's end was seen at host time `at` (R6).
    Reached {
        /// The offset behind the log's end.
        next: u64,
        /// When the end was seen.
        at: i64,
    },
}

/// One line or record, decoded.
#[derive(Debug)]
pub struct Record {
    /// Its position.
    pub offset: u64,
    /// The position behind it.
    pub next: u64,
    /// What it turned out to be.
    pub decoded: Decoded,
    /// Its bytes; kept only where they could not be read.
    pub raw: Option<Arc<[u8]>>,
    /// How long decoding took.
    pub took: Duration,
    /// What it takes of its queue's room, until it is decided.
    _room: Room,
}

impl Record {
    /// A record with its share of the queue's room.
    pub fn new(offset: u64, next: u64, decoded: Decoded, bytes: &[u8], took: Duration, room: Room) -> Self {
        let raw = matches!(decoded, Decoded::Malformed(_)).then(|| bytes.into());
        Self { offset, next, decoded, raw, took, _room: room }
    }
}

/// Decodes a line or entry, and says how long that took.
fn decoded(
    bytes: &[u8],
    received_at: i64,
    machine: Option<&str>,
    directory: &dyn Directory,
    limits: &Limits,
) -> (Decoded, Duration) {
    let begun = Instant::now();
    let received = Received { bytes, key: None, record_time: None, received_at, machine };
    (decode(&received, directory, limits), begun.elapsed())
}

/// A partition's queue. It ends when the source has nothing more to give.
pub type Queue = mpsc::Receiver<Item>;

/// The partition of an entity among `n`: by the first 8 bytes of SHA-256(machine, 0, key) (R10).
pub fn partition_of(entity: &EntityId, n: u32) -> u32 {
    let mut hash = Sha256::new();
    hash.update(entity.machine.as_bytes());
    hash.update([0]);
    hash.update(&entity.key);
    let bytes: [u8; 32] = hash.finalize().into();
    let mut head = [0; 8];
    head.copy_from_slice(&bytes[..8]);
    // The remainder is below n, which is a u32.
    (u64::from_be_bytes(head) % u64::from(n)) as u32
}

/// Why a source stopped. Each says what a person can do.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be read.
    #[error("source `{name}`: cannot read {what}: {source}")]
    Io {
        /// The source.
        name: Arc<str>,
        /// The file.
        what: String,
        /// Why.
        source: std::io::Error,
    },
    /// The file is shorter than what was read of it (R10).
    #[error(
        "source `{name}`: {what} was truncated: it ends at {length}, and was read up to {stored}; restore the file, or name \
         a new source for the new one"
    )]
    Truncated {
        /// The source.
        name: Arc<str>,
        /// The file.
        what: String,
        /// Where it ends now.
        length: u64,
        /// Up to where it was read.
        stored: u64,
    },
    /// The file is another one than the one that was read (R10).
    #[error(
        "source `{name}`: {what} was replaced: another file stands there, and the old one was read up to {stored}; restore \
         the file, or name a new source for the new one"
    )]
    Replaced {
        /// The source.
        name: Arc<str>,
        /// The file.
        what: String,
        /// Up to where the old one was read.
        stored: u64,
    },
    /// The host's own log cannot be read.
    #[error("source `{name}`: cannot read its log")]
    Log {
        /// The source.
        name: Arc<str>,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A line is longer than anything that could be an event.
    #[error("source `{name}`: the line at {offset} is longer than {limit} bytes; this cannot be a log of events")]
    LineTooLong {
        /// The source.
        name: Arc<str>,
        /// Where it begins.
        offset: u64,
        /// The limit.
        limit: usize,
    },
}
