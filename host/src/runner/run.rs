//! Starts a task for each partition and those that tend, and stops them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use seqgate_decide::envelope::{Directory, Limits};
use seqgate_decide::machine::Machines;
use seqgate_decide::setup;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::engine::Engine;
use super::log::StoreLog;
use super::partition::{Progress, Task};
use super::{RunError, prune, tend};
use crate::config::{Config, EmbeddedConfig, JsonlConfig, SourceConfig, checked};
use crate::source::embedded::Embedded;
use crate::source::jsonl::{Identity, Jsonl};
use crate::source::{Queue, SourceError};
use crate::store::{NextStep, Ownership, SourceIdentity};

/// How often timers, deadlines and the sweep are looked at.
const TEND: Duration = Duration::from_secs(1);

/// How long to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Until told to stop.
    Follow,
    /// Until everything that the sources hold now is decided.
    UntilIdle {
        /// Then do what is due by the clock: timers, and deadlines of early events.
        timers: bool,
    },
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Deliveries decided.
    pub received: u64,
    /// Transactions of partitions.
    pub batches: u64,
    /// Of these, decided again after a lost race or a failure.
    pub redone: u64,
    /// Entities that the sweep found ready.
    pub swept: u64,
    /// Timers fired.
    pub timers: u64,
    /// From the first read to the last commit.
    pub elapsed: Duration,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Rules and partitions are being taken.
    #[default]
    Starting,
    /// Every source is read.
    Running,
    /// Batches in hand are finished.
    Stopping,
}

/// What a run shares with those beside it.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// By embedded source, what changes when this process has appended to its log.
    pub grown: BTreeMap<Arc<str>, watch::Receiver<u64>>,
    /// How far it has come.
    pub stage: watch::Sender<Stage>,
}

/// The orderings of the configured machines, for decoding.
struct Orderings(Vec<Arc<setup::Setup>>);

impl Directory for Orderings {
    fn ordering(&self, machine: &str) -> Option<setup::Ordering> {
        self.0.iter().find(|s| &*s.name == machine).map(|s| s.ordering)
    }
}

/// What can read envelopes for these machines.
pub fn directory(setups: &[Arc<setup::Setup>]) -> Arc<dyn Directory + Send + Sync> {
    Arc::new(Orderings(setups.to_vec()))
}

/// Runs the configured sources. When `stop` becomes true, batches in hand are finished and nothing new is begun.
///
/// # Errors
/// Whatever ends a task: a source that cannot go on, a store that a person has to look at, a lost partition.
pub async fn run(
    engine: &Engine,
    config: &Config,
    owner: &str,
    mode: Mode,
    stop: watch::Receiver<bool>,
) -> Result<Report, RunError> {
    run_live(engine, config, owner, mode, stop, &Live::default()).await
}

/// The same beside an HTTP listener, say.
///
/// # Errors
/// As [`run`].
pub async fn run_live(
    engine: &Engine,
    config: &Config,
    owner: &str,
    mode: Mode,
    stop: watch::Receiver<bool>,
    live: &Live,
) -> Result<Report, RunError> {
    if let Some(machine) = checked::fed_by_many(config).into_iter().next() {
        return Err(RunError::ManySources(machine));
    }
    let started = Instant::now();
    // Whoever fails stops the others: half a host is no host.
    let (halt, halted) = watch::channel(*stop.borrow());
    let halt = Arc::new(halt);
    let mut machines = engine.machines().await?;
    let mut report = Report { swept: tend::sweep(engine, &mut machines).await?, ..Report::default() };
    tend::unreadable(engine, &mut machines).await?;
    let mut tasks: JoinSet<Result<(), RunError>> = JoinSet::new();
    let mut progress = Vec::new();
    let mut starting =
        Starting { engine, config, owner, mode, live, halted: &halted, tasks: &mut tasks, progress: &mut progress };
    for source in &config.sources {
        match source {
            SourceConfig::Jsonl(jsonl) => starting.jsonl(jsonl).await?,
            SourceConfig::Embedded(embedded) => starting.embedded(embedded).await?,
        }
    }
    live.stage.send_replace(Stage::Running);
    let forward = tokio::spawn(forward(stop, halt.clone()));
    let tending = match mode {
        Mode::Follow => Some(tokio::spawn(tend_on(engine.clone(), progress.clone(), halted.clone(), halt.clone()))),
        Mode::UntilIdle { .. } => None,
    };
    let pruning = match mode {
        Mode::Follow => {
            Some(tokio::spawn(prune::prune_on(engine.clone(), config.clone(), halted.clone(), halt.clone())))
        }
        Mode::UntilIdle { .. } => None,
    };
    let mut failed = None;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended.map_err(RunError::from).and_then(|r| r) {
            halt.send_replace(true);
            failed.get_or_insert(error);
        }
    }
    forward.abort();
    if let Some(tending) = tending {
        halt.send_replace(true);
        match tending.await? {
            Ok((swept, timers)) => (report.swept, report.timers) = (report.swept + swept, timers),
            Err(error) => drop(failed.get_or_insert(error)),
        }
    }
    if let Some(pruning) = pruning {
        halt.send_replace(true);
        if let Err(error) = pruning.await? {
            failed.get_or_insert(error);
        }
    }
    if let Some(error) = failed {
        return Err(error);
    }
    if let Mode::UntilIdle { timers } = mode {
        report.swept += tend::sweep(engine, &mut machines).await?;
        if timers {
            tend::deadlines(engine, &mut machines).await?;
            report.timers = tend::timers(engine, &mut machines, &progress).await?;
        }
    }
    for p in &progress {
        report.received += p.received.load(Ordering::Relaxed);
        report.batches += p.batches.load(Ordering::Relaxed);
        report.redone += p.redone.load(Ordering::Relaxed);
    }
    engine.patiently("compact", || engine.store.compact_moves()).await?;
    report.elapsed = started.elapsed();
    if mode != Mode::Follow {
        prune::prune_at_end(engine, config, &machines).await?;
    }
    Ok(report)
}

/// Starts one source after the other.
struct Starting<'r> {
    engine: &'r Engine,
    config: &'r Config,
    owner: &'r str,
    mode: Mode,
    live: &'r Live,
    halted: &'r watch::Receiver<bool>,
    tasks: &'r mut JoinSet<Result<(), RunError>>,
    progress: &'r mut Vec<Arc<Progress>>,
}

impl Starting<'_> {
    async fn jsonl(&mut self, jsonl: &JsonlConfig) -> Result<(), RunError> {
        let (engine, store) = (self.engine, &self.engine.store);
        let owned = self.acquire(&jsonl.name, jsonl.partitions).await?;
        let starts: Vec<u64> = owned.iter().map(|o| o.offset).collect();
        let stored = engine.patiently("read", || store.source_identity(&jsonl.name)).await?.map(from_store);
        let source = Jsonl {
            name: jsonl.name.clone(),
            path: jsonl.path.clone(),
            machine: jsonl.machine.clone(),
            partitions: jsonl.partitions,
            follow: self.mode == Mode::Follow,
            limits: Limits { data: self.config.data_limit },
            queue: self.config.batch * 2,
        };
        let (clock, directory) = (engine.clock.clone(), directory(&engine.setups));
        let reading = source.start(&starts, stored.as_ref(), directory, clock, self.halted.clone())?;
        if let Some(identity) = reading.identity {
            let identity = to_store(identity);
            engine.patiently("store identity", || store.put_source_identity(&jsonl.name, &identity)).await?;
        }
        self.partitions(&jsonl.name, reading.queues, owned);
        // A read from standard input ends when its writer lets it: a stop leaves it behind.
        let (mut halted, left_behind) = (self.halted.clone(), jsonl.path.is_none());
        self.tasks.spawn(async move {
            tokio::select! {
                ended = reading.task => ended?.map_err(|e: SourceError| e.into()),
                _ = halted.wait_for(|stop| *stop), if left_behind => Ok(()),
            }
        });
        Ok(())
    }

    async fn embedded(&mut self, embedded: &EmbeddedConfig) -> Result<(), RunError> {
        let owned = self.acquire(&embedded.name, embedded.partitions).await?;
        let starts: Vec<u64> = owned.iter().map(|o| o.offset).collect();
        let nobody = || watch::channel(0).1;
        let source = Embedded {
            name: embedded.name.clone(),
            machine: embedded.machine.clone(),
            follow: self.mode == Mode::Follow,
            limits: Limits { data: self.config.data_limit },
            queue: self.config.batch * 2,
            log: Arc::new(StoreLog { engine: self.engine.clone(), source: embedded.name.clone() }),
            grown: self.live.grown.get(&embedded.name).cloned().unwrap_or_else(nobody),
        };
        let directory = directory(&self.engine.setups);
        let (queues, mut readers) = source.start(&starts, &directory, &self.engine.clock, self.halted);
        self.partitions(&embedded.name, queues, owned);
        self.tasks.spawn(async move {
            while let Some(ended) = readers.join_next().await {
                ended??;
            }
            Ok(())
        });
        Ok(())
    }

    /// Takes a source's partitions over.
    async fn acquire(&self, source: &str, partitions: u32) -> Result<Vec<Ownership>, RunError> {
        let (engine, store) = (self.engine, &self.engine.store);
        engine.patiently("fix partitions", || store.fix_partitions(source, partitions)).await?;
        let mut owned = Vec::new();
        for partition in 0..partitions {
            owned.push(engine.patiently("acquire", || store.acquire(source, partition, self.owner)).await?);
        }
        Ok(owned)
    }

    /// A task for each of a source's queues.
    fn partitions(&mut self, source: &Arc<str>, queues: Vec<Queue>, owned: Vec<Ownership>) {
        for (partition, (queue, owned)) in (0..).zip(queues.into_iter().zip(owned)) {
            let shared = Arc::new(Progress::new());
            self.progress.push(shared.clone());
            let task = Task {
                engine: self.engine.clone(),
                source: source.clone(),
                partition,
                epoch: owned.epoch,
                offset: owned.offset,
                queue,
                batch: self.config.batch,
                stop: self.halted.clone(),
                progress: shared,
            };
            self.tasks.spawn(task.run());
        }
    }
}

/// Passes a stop from outside on.
async fn forward(mut stop: watch::Receiver<bool>, halt: Arc<watch::Sender<bool>>) {
    if stop.wait_for(|s| *s).await.is_ok() {
        halt.send_replace(true);
    }
}

/// Tends until told to stop; a failure stops the others.
async fn tend_on(
    engine: Engine,
    progress: Vec<Arc<Progress>>,
    mut halted: watch::Receiver<bool>,
    halt: Arc<watch::Sender<bool>>,
) -> Result<(u64, u64), RunError> {
    let work = async {
        let mut machines = engine.machines().await?;
        let (mut swept, mut fired, mut seen) = (0, 0, engine.store.data_version().await?);
        while tokio::time::timeout(TEND, halted.wait_for(|s| *s)).await.is_err() {
            match tend_once(&engine, &mut machines, &progress, &mut seen).await {
                Ok((ready, timers)) => (swept, fired) = (swept + ready, fired + timers),
                // The store is in trouble, not we: the next round tries again.
                Err(RunError::Store(error)) if error.next_step() == NextStep::Retry => {
                    tracing::warn!(error = %super::engine::chain(&error), "timers and deadlines have to wait");
                }
                Err(error) => return Err(error),
            }
        }
        Ok((swept, fired))
    };
    let ended: Result<_, RunError> = work.await;
    if ended.is_err() {
        halt.send_replace(true);
    }
    ended
}

async fn tend_once(
    engine: &Engine,
    machines: &mut Machines,
    progress: &[Arc<Progress>],
    seen: &mut i64,
) -> Result<(u64, u64), RunError> {
    // Somebody else wrote: an activation, or a person's decision.
    let now = engine.store.data_version().await?;
    if std::mem::replace(seen, now) != now {
        *machines = engine.machines().await?;
        tend::unreadable(engine, machines).await?;
    }
    let swept = tend::sweep(engine, machines).await?;
    tend::deadlines(engine, machines).await?;
    Ok((swept, tend::timers(engine, machines, progress).await?))
}

fn from_store(stored: SourceIdentity) -> Identity {
    Identity { device: stored.device, inode: stored.inode, digest: stored.digest, head: stored.head }
}

fn to_store(identity: Identity) -> SourceIdentity {
    SourceIdentity { device: identity.device, inode: identity.inode, digest: identity.digest, head: identity.head }
}
