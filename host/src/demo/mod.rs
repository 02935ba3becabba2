//! `seqgate demo`: real rules, in this binary, against a stream with everything that goes wrong between systems.
//!
//! The stream comes with its truth ([`stream`]): while it is made, every delivery and every entity is given what must
//! become of it. It then takes the ordinary way (a file, four partitions, the embedded store with its default durability),
//! and what the store holds afterwards is held against the truth ([`check`]). [`folder`] is where it happens, [`guests`]
//! are the rules, [`report`] tells of it.

pub mod check;
pub mod folder;
pub mod guests;
pub mod report;
pub mod stream;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::clock::Clock;
use crate::config::{self, Config, ConfigError};
use crate::rules::{self, EngineOptions, HostError};
use crate::runner::rules::Components;
use crate::runner::{Act, Engine, Mode, Observer, Report, RunError, run};
use crate::store::lock::{Holder, LockError, RunLock};
use crate::store::{self, Settings, Store, StoreError};

use check::Found;
use folder::Folder;
use report::Told;
use stream::Stream;

/// The configuration that the demo runs with.
const CONFIG: &str = include_str!("seqgate.toml");
/// Who activates the rules.
const ACTOR: &str = "demo";

/// What to demonstrate.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many events; at least [`stream::FEWEST`].
    pub events: usize,
    /// What the stream is made from.
    pub seed: u64,
    /// Where; a temporary folder otherwise.
    pub dir: Option<PathBuf>,
    /// Leave the temporary folder.
    pub keep: bool,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// How many events.
    pub events: usize,
    /// The seed.
    pub seed: u64,
    /// Making the rules ready: compiling them, above all.
    pub ready: Duration,
    /// What the runner did, and how long.
    pub report: Report,
    /// What the store holds.
    pub found: Found,
    /// How many entities the truth knows.
    pub entities: usize,
    /// An example for each verdict.
    pub examples: Vec<Told>,
    /// Where it happened; removed with this value, unless it is kept.
    pub folder: Folder,
}

impl Outcome {
    /// Whether everything is as it was meant to be.
    pub fn is_right(&self) -> bool {
        self.found.differences.is_empty()
    }

    /// Events for each second of the run.
    pub fn per_second(&self) -> f64 {
        self.events as f64 / self.report.elapsed.as_secs_f64().max(1e-6)
    }
}

/// Why there was no demonstration.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The folder cannot be made or written.
    #[error("cannot write {path}: {source}; name a folder with --dir", path = path.display())]
    Folder {
        /// The folder, or a file in it.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The folder holds something.
    #[error("{path} is not empty; name a new folder with --dir", path = path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// The demo's own configuration is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No engine for rules could be made.
    #[error(transparent)]
    Engine(#[from] HostError),
    /// Somebody runs in this folder.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The run failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It was stopped before its end.
    #[error("stopped after {received} of {events} events")]
    Stopped {
        /// Events decided.
        received: u64,
        /// Of how many.
        events: usize,
    },
}

/// Makes the stream, runs it, and compares. `progress` is told how many more events were decided, from any thread.
///
/// # Errors
/// [`DemoError`]. Differences are none: they are in the [`Outcome`], and the folder is kept then.
pub async fn demonstrate(
    options: &Options,
    progress: impl Fn(u64) + Send + Sync + 'static,
    stop: watch::Receiver<bool>,
) -> Result<Outcome, DemoError> {
    let stream = stream::generate(options.events, options.seed);
    let mut folder = Folder::make(options.dir.as_deref(), options.keep)?;
    let config = furnish(&folder, &stream)?;
    let store = store::open(&config.store_url, Settings::default()).await?;
    let result = deliver(store.clone(), &config, &stream, folder.path(), progress, stop).await;
    store.close().await?;
    let (ready, report, found, examples) = result?;
    if !found.differences.is_empty() {
        folder.keep();
    }
    let (events, entities) = (stream.lines.len(), stream.truth.entities.len());
    Ok(Outcome { events, seed: options.seed, ready, report, found, entities, examples, folder })
}

/// Puts everything that a run needs into the folder.
fn furnish(folder: &Folder, stream: &Stream) -> Result<Config, DemoError> {
    for (machine, module) in guests::GUESTS {
        folder.write(&format!("{machine}.wasm"), module)?;
    }
    folder.write("events.jsonl", &stream.bytes())?;
    let path = folder.write("seqgate.toml", CONFIG.as_bytes())?;
    // What the environment sets is meant for other configurations.
    Ok(config::load(&path, std::iter::empty())?)
}

async fn deliver(
    store: Arc<dyn Store>,
    config: &Config,
    stream: &Stream,
    folder: &Path,
    progress: impl Fn(u64) + Send + Sync + 'static,
    stop: watch::Receiver<bool>,
) -> Result<(Duration, Report, Found, Vec<Told>), DemoError> {
    let (clock, begun) = (Clock::System, Instant::now());
    let me = Holder { pid: std::process::id(), host: "this host".into(), started: clock.now() };
    let _lock = RunLock::acquire(&folder.join("seqgate.db"), &me)?;
    let engine = rules::Engine::new(&EngineOptions::default())?;
    let rules = Components::new(store.clone(), engine, None, &config.machines);
    for machine in &config.machines {
        rules.ensure_active(machine, ACTOR, clock.now()).await?;
    }
    let ready = begun.elapsed();
    let observer = move |acts: &[Act]| {
        progress(acts.iter().filter(|act| matches!(act, Act::Delivered(_))).count() as u64);
    };
    let engine = Engine {
        store: store.clone(),
        clock,
        rules: Arc::new(rules),
        setups: Arc::new(config.machines.iter().map(|m| m.setup.clone()).collect()),
        observer: Some(Arc::new(Observer::new(observer))),
    };
    let report = run(&engine, config, ACTOR, Mode::UntilIdle { timers: false }, stop).await?;
    if report.received < stream.lines.len() as u64 {
        return Err(DemoError::Stopped { received: report.received, events: stream.lines.len() });
    }
    let found = check::check(&*store, &stream.truth).await?;
    let examples = report::tell(&*store, &stream.examples).await?;
    Ok((ready, report, found, examples))
}
