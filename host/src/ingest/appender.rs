//! The task that writes a source's log.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::Refusal;
use crate::clock::Clock;
use crate::config::EmbeddedConfig;
use crate::runner::engine::chain;
use crate::source::Room;
use crate::store::log::{Appended, NewEntry};
use crate::store::{NextStep, Store, StoreError};

/// About how many events and bytes one transaction takes.
const TOGETHER: (usize, usize) = (2_000, 4 << 20);
/// How long a store in trouble is waited for before a request is answered.
const PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the log is pruned.
const PRUNE: Duration = Duration::from_secs(5);

/// Events that go together, and who waits for them.
pub(super) struct Job {
    pub entries: Vec<NewEntry>,
    pub answer: oneshot::Sender<Result<Vec<u64>, Refusal>>,
    pub _room: Room,
}

pub(super) struct Appender {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub config: Arc<EmbeddedConfig>,
    pub queue: mpsc::Receiver<Job>,
    pub grown: watch::Sender<u64>,
    pub prune: bool,
}

impl Appender {
    /// Writes what comes, many jobs in one transaction, until nobody is left who could send one.
    pub async fn run(mut self) {
        let mut prune_at = Instant::now();
        loop {
            let first = tokio::select! {
                job = self.queue.recv() => match job {
                    Some(job) => job,
                    None => return,
                },
                () = tokio::time::sleep_until(prune_at), if self.prune => {
                    self.prune(self.full()).await;
                    prune_at = Instant::now() + PRUNE;
                    continue;
                }
            };
            let mut jobs = vec![first];
            let size = |job: &Job| job.entries.iter().map(|e| e.bytes.len()).sum::<usize>();
            let (mut events, mut bytes) = (jobs[0].entries.len(), size(&jobs[0]));
            while events < TOGETHER.0 && bytes < TOGETHER.1 {
                let Ok(job) = self.queue.try_recv() else { break };
                events += job.entries.len();
                bytes += size(&job);
                jobs.push(job);
            }
            self.write(jobs).await;
            if self.prune && prune_at < Instant::now() {
                self.prune(self.full()).await;
                prune_at = Instant::now() + PRUNE;
            }
        }
    }

    /// All of them together; each alone where they do not fit together.
    async fn write(&self, mut jobs: Vec<Job>) {
        if let [job] = jobs.as_slice() {
            let outcome = self.append(&job.entries).await;
            return jobs.into_iter().for_each(|job| answer(job, outcome.clone()));
        }
        let lengths: Vec<usize> = jobs.iter().map(|job| job.entries.len()).collect();
        let mut all: Vec<NewEntry> = jobs.iter_mut().flat_map(|job| std::mem::take(&mut job.entries)).collect();
        match self.append(&all).await {
            Ok(mut offsets) => {
                for (job, n) in jobs.into_iter().zip(lengths) {
                    let rest = offsets.split_off(n);
                    answer(job, Ok(std::mem::replace(&mut offsets, rest)));
                }
            }
            Err(Refusal::Full { .. }) => {
                for (job, n) in jobs.into_iter().zip(lengths) {
                    let rest = all.split_off(n);
                    let outcome = self.append(&std::mem::replace(&mut all, rest)).await;
                    answer(job, outcome);
                }
            }
            Err(refusal) => jobs.into_iter().for_each(|job| answer(job, Err(refusal.clone()))),
        }
    }

    async fn append(&self, entries: &[NewEntry]) -> Result<Vec<u64>, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        let (mut pruned, source) = (false, &self.config.name);
        loop {
            let appended = self.store.append(source, entries, self.clock.now(), self.config.max_size).await;
            match appended {
                Ok(Appended::Durable(offsets)) => {
                    self.grown.send_modify(|n| *n = n.wrapping_add(1));
                    return Ok(offsets);
                }
                Ok(Appended::Full(_)) if self.prune && !std::mem::replace(&mut pruned, true) => {
                    // What is decided makes room for these, whatever its age.
                    let wanted = entries.iter().map(NewEntry::size).sum();
                    self.prune(self.config.max_size.saturating_sub(wanted)).await;
                }
                Ok(Appended::Full(size)) => {
                    return Err(Refusal::Full { source_name: source.clone(), size, most: self.config.max_size });
                }
                Err(error) if error.next_step() == NextStep::Retry && Instant::now() < deadline => {
                    tracing::warn!(source = &**source, error = %chain(&error), "the log cannot be written; trying again");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    tracing::error!(source = &**source, error = %chain(&error), "events were not taken");
                    return Err(Refusal::Store(chain(&error)));
                }
            }
        }
    }

    /// Removes what may go, in short transactions; whatever its age while the log holds more than `most` bytes.
    async fn prune(&self, most: u64) {
        let retention = i64::try_from(self.config.retention.as_millis()).unwrap_or(i64::MAX);
        let before = self.clock.now().saturating_sub(retention);
        let mut gone = 0;
        loop {
            match self.store.prune_log(&self.config.name, before, most).await {
                Ok(0) => break,
                Ok(n) => gone += n,
                Err(error) => return self.not_pruned(&error),
            }
        }
        if gone > 0 {
            tracing::info!(source = &*self.config.name, events = gone, "pruned from the log");
        }
    }

    /// Nine tenths of what the log may hold: from there on, what is decided goes whatever its age.
    fn full(&self) -> u64 {
        self.config.max_size - self.config.max_size / 10
    }

    fn not_pruned(&self, error: &StoreError) {
        tracing::warn!(source = &*self.config.name, error = %chain(error), "the log was not pruned; trying again later");
    }
}

fn answer(job: Job, outcome: Result<Vec<u64>, Refusal>) {
    // Whoever asked may have gone; the events are in the log all the same.
    let _ = job.answer.send(outcome);
}
