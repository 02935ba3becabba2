//! The task that owns a partition: it takes what is there, decides and commits it, and goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::RunError;
use super::batch::Owned;
use super::engine::Engine;
use crate::source::{Item, Queue, Record};
use crate::telemetry::Phase;

/// How long a batch waits for company, once it has a first event.
const LINGER: Duration = Duration::from_millis(2);
/// How often the offset of a partition moves that gets no events of its own.
const ADVANCE: Duration = Duration::from_secs(1);

/// What a partition's task tells the others.
#[derive(Debug)]
pub(super) struct Progress {
    /// Host time at which the log's end was seen, all before it being committed; `i64::MIN` before the first time (R6).
    pub caught_up: AtomicI64,
    /// Deliveries decided.
    pub received: AtomicU64,
    /// Transactions.
    pub batches: AtomicU64,
    /// Transactions that were decided again.
    pub redone: AtomicU64,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            caught_up: AtomicI64::new(i64::MIN),
            received: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            redone: AtomicU64::new(0),
        }
    }
}

/// A partition's task.
pub(super) struct Task {
    pub engine: Engine,
    pub source: Arc<str>,
    pub partition: u32,
    pub epoch: u64,
    pub offset: u64,
    pub queue: Queue,
    pub batch: usize,
    pub stop: watch::Receiver<bool>,
    pub progress: Arc<Progress>,
}

impl Task {
    /// Runs until the source ends, or until it is told to stop: then the batch in hand is finished first.
    pub async fn run(mut self) -> Result<(), RunError> {
        let mut machines = self.engine.machines().await?;
        let mut owned = Owned {
            source: self.source.clone(),
            partition: self.partition,
            epoch: self.epoch,
            offset: self.offset,
            switched: BTreeMap::new(),
        };
        let mut advanced = Instant::now();
        let mut records = Vec::with_capacity(self.batch);
        while !*self.stop.borrow() {
            let waiting = Instant::now();
            let Some(gathered) = self.gather(&mut records).await else { break };
            if !records.is_empty() {
                Phase::Fetch.took(waiting.elapsed());
                Phase::Decode.took(records.iter().map(|record| record.took).sum());
            }
            let mut begin = 0;
            while begin < records.len() && !*self.stop.borrow() {
                let done = owned.batch(&self.engine, &mut machines, &records[begin..]).await?;
                begin += done.taken;
                self.progress.received.fetch_add(done.taken as u64, Ordering::Relaxed);
                self.progress.batches.fetch_add(1, Ordering::Relaxed);
                self.progress.redone.fetch_add(done.redone, Ordering::Relaxed);
                metrics::counter!("seqgate_batches_total").increment(1);
                metrics::counter!("seqgate_batches_redone_total").increment(done.redone);
            }
            if begin < records.len() {
                break;
            }
            records.clear();
            if let Some((next, at)) = gathered {
                if advanced.elapsed() > ADVANCE || self.queue.is_closed() {
                    owned.advance(&self.engine, next).await?;
                    advanced = Instant::now();
                }
                self.progress.caught_up.store(at, Ordering::SeqCst);
            }
        }
        Ok(())
    }

    /// Takes what is there, up to a batch. `None`: the source has ended, or it is time to stop. The answer holds the log's
    /// end, where it was reached behind these records.
    async fn gather(&mut self, records: &mut Vec<Record>) -> Option<Option<(u64, i64)>> {
        let first = tokio::select! {
            biased;
            _ = self.stop.changed() => return None,
            item = self.queue.recv() => item?,
        };
        match first {
            Item::Reached { next, at } => return Some(Some((next, at))),
            Item::Record(record) => records.push(record),
        }
        let until = tokio::time::Instant::now() + LINGER;
        while records.len() < self.batch {
            let item = match self.queue.try_recv() {
                Ok(item) => item,
                Err(_) => match tokio::time::timeout_at(until, self.queue.recv()).await {
                    Ok(Some(item)) => item,
                    Ok(None) | Err(_) => break,
                },
            };
            match item {
                Item::Record(record) => records.push(record),
                Item::Reached { next, at } => return Some(Some((next, at))),
            }
        }
        Some(None)
    }
}
