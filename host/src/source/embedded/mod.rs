//! The host's own log, which `POST /v1/events` and `seqgate ingest` fill.
//!
//! The log lives with the store; this reads it through [`Log`], which whoever wires them provides. An offset counts the
//! events of a partition, from 0. Partitions are read apart from each other.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seqgate_decide::envelope::{Directory, Limits};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::{Budget, Item, Queue, Record, SourceError, decoded};
use crate::clock::Clock;

/// How often the log is looked at for what other processes appended.
const POLL: Duration = Duration::from_millis(100);
/// About how many bytes one read takes.
const READ: u64 = 512 << 10;

/// Why a log cannot be read.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Entries to come.
pub type Entries<'a> = Pin<Box<dyn Future<Output = Result<Vec<Entry>, Cause>> + Send + 'a>>;

/// What is read.
pub trait Log: Send + Sync {
    /// Entries of a partition from an offset on, in order: none only at the end, and about `bytes` at most.
    fn read(&self, partition: u32, from: u64, bytes: u64) -> Entries<'_>;
}

/// One event of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its offset.
    pub offset: u64,
    /// Host time at which it was taken.
    pub at: i64,
    /// As it was taken.
    pub bytes: Vec<u8>,
}

/// A log to read.
pub struct Embedded {
    /// The source's configured name.
    pub name: Arc<str>,
    /// The machine of events that name none.
    pub machine: Option<Arc<str>>,
    /// Wait for more at the end.
    pub follow: bool,
    /// Limits of envelopes.
    pub limits: Limits,
    /// Events that a partition's queue holds.
    pub queue: usize,
    /// Where the events are.
    pub log: Arc<dyn Log>,
    /// Changes when this process has appended.
    pub grown: watch::Receiver<u64>,
}

impl Embedded {
    /// Starts reading, each partition from its offset in `starts`.
    pub fn start(
        self,
        starts: &[u64],
        directory: &Arc<dyn Directory + Send + Sync>,
        clock: &Clock,
        stop: &watch::Receiver<bool>,
    ) -> (Vec<Queue>, JoinSet<Result<(), SourceError>>) {
        let (source, mut queues, mut tasks) = (Arc::new(self), Vec::new(), JoinSet::new());
        for (partition, at) in (0..).zip(starts) {
            let (sender, queue) = mpsc::channel(source.queue.max(1));
            queues.push(queue);
            let reader = Reader {
                partition,
                at: *at,
                sender,
                budget: Budget::of(starts.len() as u32),
                directory: directory.clone(),
                clock: clock.clone(),
                grown: source.grown.clone(),
                source: source.clone(),
            };
            tasks.spawn(reader.run(stop.clone()));
        }
        (queues, tasks)
    }
}

struct Reader {
    source: Arc<Embedded>,
    partition: u32,
    at: u64,
    sender: mpsc::Sender<Item>,
    budget: Budget,
    directory: Arc<dyn Directory + Send + Sync>,
    clock: Clock,
    grown: watch::Receiver<u64>,
}

impl Reader {
    async fn run(mut self, mut stop: watch::Receiver<bool>) -> Result<(), SourceError> {
        let taker = self.sender.clone();
        tokio::select! {
            ended = self.read() => ended,
            _ = stop.wait_for(|stop| *stop) => Ok(()),
            () = taker.closed() => Ok(()),
        }
    }

    /// Reads to the end, and on from there as it grows.
    async fn read(&mut self) -> Result<(), SourceError> {
        loop {
            self.grown.borrow_and_update();
            let seen = self.clock.now();
            let entries = self.source.log.read(self.partition, self.at, READ).await;
            let entries = entries.map_err(|source| SourceError::Log { name: self.source.name.clone(), source })?;
            if entries.is_empty() {
                let item = Item::Reached { next: self.at, at: seen };
                if !self.source.follow {
                    // The task behind the queue has ended before: then there is nobody to tell.
                    let _ = self.sender.send(item).await;
                    return Ok(());
                }
                // A queue that is full has not come this far; the next time tells it.
                let _ = self.sender.try_send(item);
                if let Ok(Err(_)) = tokio::time::timeout(POLL, self.grown.changed()).await {
                    // This process appends nothing.
                    tokio::time::sleep(POLL).await;
                }
                continue;
            }
            for entry in entries {
                if !self.deliver(entry).await {
                    return Ok(());
                }
            }
        }
    }

    /// Decodes an entry and hands it to its partition; `false` when nobody takes it any more.
    async fn deliver(&mut self, entry: Entry) -> bool {
        let room = self.budget.take(entry.bytes.len()).await;
        let machine = self.source.machine.as_deref();
        let (decoded, took) = decoded(&entry.bytes, entry.at, machine, &*self.directory, &self.source.limits);
        self.at = entry.offset + 1;
        let record = Record::new(entry.offset, self.at, decoded, &entry.bytes, took, room);
        self.sender.send(Item::Record(record)).await.is_ok()
    }
}
