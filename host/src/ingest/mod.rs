//! Taking events into an embedded source's log: checked, routed to their partitions, on disk before anybody is answered.
//!
//! - [`binary`]: CloudEvents whose attributes are headers, as one JSON document
//! - `appender`: the one task that writes a source's log, many requests in one transaction

mod appender;
pub mod binary;

use std::sync::Arc;

use seqgate_decide::envelope::{Decoded, Directory, Limits, Received, decode};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::config::EmbeddedConfig;
use crate::source::{Budget, Room, partition_of};
use crate::store::log::{LogSize, NewEntry};
use crate::store::{Store, StoreError};

use appender::{Appender, Job};

/// How many bytes may wait to be written.
const QUEUED: usize = 16 << 20;
/// How many requests may.
const JOBS: usize = 1024;

/// Where an event stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Its id, where it could be read.
    pub id: Option<Arc<str>>,
    /// Its partition.
    pub partition: u32,
    /// Its offset there.
    pub offset: u64,
}

/// An event that is no event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Its place among those that came together, from 0.
    pub index: usize,
    /// What is wrong.
    pub code: String,
    /// In words.
    pub message: String,
}

/// Why nothing was taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// These cannot be read; nothing of what came with them was taken.
    #[error("{} of the events cannot be read", .0.len())]
    Invalid(Vec<Invalid>),
    /// More waits to be written than may.
    #[error("more than {} MiB wait to be written; send it again in a moment", QUEUED >> 20)]
    Busy,
    /// The log holds as much as it may.
    #[error(
        "the log of `{source_name}` holds {} events in {} bytes, and may hold {most}: what the host has not decided yet \
         stays. See whether it runs (`seqgate status`), or raise source.{source_name}.max_size", size.events, size.bytes
    )]
    Full {
        /// The source.
        source_name: Arc<str>,
        /// How much is there.
        size: LogSize,
        /// How much may be.
        most: u64,
    },
    /// The store failed. Whether the events are there is not known: sending them again is safe, since an event is known
    /// by its id.
    #[error("the store failed ({0}); send it again")]
    Store(String),
    /// The host stops.
    #[error("the host is stopping; send it again to the next one")]
    Stopping,
}

/// Takes events into one source's log. Cheap to clone.
#[derive(Clone)]
pub struct Ingest {
    config: Arc<EmbeddedConfig>,
    directory: Arc<dyn Directory + Send + Sync>,
    limits: Limits,
    clock: Clock,
    budget: Budget,
    jobs: mpsc::Sender<Job>,
    grown: watch::Receiver<u64>,
}

impl Ingest {
    /// Starts the task that writes; it ends when the last handle is gone. `prune`: it also removes what is decided and
    /// older than its retention.
    ///
    /// # Errors
    /// The source was set up with another number of partitions; the store's own.
    pub async fn start(
        config: EmbeddedConfig,
        store: Arc<dyn Store>,
        clock: Clock,
        directory: Arc<dyn Directory + Send + Sync>,
        limits: Limits,
        prune: bool,
    ) -> Result<(Self, JoinHandle<()>), StoreError> {
        store.fix_partitions(&config.name, config.partitions).await?;
        let (jobs, queue) = mpsc::channel(JOBS);
        let (sender, grown) = watch::channel(0);
        let config = Arc::new(config);
        let appender = Appender { store, clock: clock.clone(), config: config.clone(), queue, grown: sender, prune };
        let task = tokio::spawn(appender.run());
        Ok((Self { config, directory, limits, clock, budget: Budget::new(QUEUED), jobs, grown }, task))
    }

    /// The source.
    pub fn config(&self) -> &EmbeddedConfig {
        &self.config
    }

    /// Changes with each append of this process.
    pub fn grown(&self) -> watch::Receiver<u64> {
        self.grown.clone()
    }

    /// Takes all of these events, or none. They are on disk when the answer comes.
    pub async fn take(&self, events: Vec<Vec<u8>>) -> Result<Vec<Taken>, Refusal> {
        let (mut entries, mut ids, mut invalid) = (Vec::with_capacity(events.len()), Vec::new(), Vec::new());
        for (index, bytes) in events.into_iter().enumerate() {
            match self.decode(&bytes) {
                Decoded::Event(event) => {
                    let partition = partition_of(&event.entity, self.config.partitions);
                    ids.push(Some(event.key.id.clone()));
                    entries.push(NewEntry { partition, bytes });
                }
                Decoded::Malformed(malformed) => {
                    let (code, message) = (malformed.reason.code, malformed.reason.message);
                    invalid.push(Invalid { index, code, message });
                }
            }
        }
        if !invalid.is_empty() {
            return Err(Refusal::Invalid(invalid));
        }
        let room = self.budget.try_take(size(&entries)).ok_or(Refusal::Busy)?;
        self.append(entries, ids, room).await
    }

    /// Takes lines as they are. What cannot be read goes to partition 0, or to that of the entity that it names, and is
    /// refused there as malformed (R10). Waits for room.
    pub async fn take_lines(&self, lines: Vec<Vec<u8>>) -> Result<(Vec<Taken>, u64), Refusal> {
        let (mut entries, mut ids, mut unreadable) = (Vec::with_capacity(lines.len()), Vec::new(), 0);
        for bytes in lines {
            let (id, entity) = match self.decode(&bytes) {
                Decoded::Event(event) => (Some(event.key.id.clone()), Some(event.entity.clone())),
                Decoded::Malformed(malformed) => {
                    unreadable += 1;
                    (None, malformed.entity)
                }
            };
            let partition = entity.map_or(0, |entity| partition_of(&entity, self.config.partitions));
            ids.push(id);
            entries.push(NewEntry { partition, bytes });
        }
        let room = self.budget.take(size(&entries)).await;
        Ok((self.append(entries, ids, room).await?, unreadable))
    }

    fn decode(&self, bytes: &[u8]) -> Decoded {
        let machine = self.config.machine.as_deref();
        let received = Received { bytes, key: None, record_time: None, received_at: self.clock.now(), machine };
        decode(&received, &*self.directory, &self.limits)
    }

    async fn append(
        &self,
        entries: Vec<NewEntry>,
        ids: Vec<Option<Arc<str>>>,
        room: Room,
    ) -> Result<Vec<Taken>, Refusal> {
        let partitions: Vec<u32> = entries.iter().map(|entry| entry.partition).collect();
        let (answer, answered) = oneshot::channel();
        let job = Job { entries, answer, _room: room };
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refusal::Busy,
            mpsc::error::TrySendError::Closed(_) => Refusal::Stopping,
        })?;
        let offsets = answered.await.map_err(|_| Refusal::Stopping)??;
        let rows = ids.into_iter().zip(partitions).zip(offsets);
        Ok(rows.map(|((id, partition), offset)| Taken { id, partition, offset }).collect())
    }
}

fn size(entries: &[NewEntry]) -> usize {
    entries.iter().map(|entry| entry.bytes.len()).sum()
}
