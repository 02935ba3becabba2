//! Measures the program from outside: it is run as users run it, in a process of its own, with components as rules and its
//! default durability, and is known here by its command line and its tables only.
//!
//! In the same run the same rows are written by two baselines: [`Style::PerEvent`], a careful consumer with one transaction
//! for each delivery, and [`Style::Bulk`], the limit of what the store does. Both take the rows from what the program wrote,
//! so neither pays for deciding anything; a difference in rows or bytes of any table fails the measurement.
//!
//! - [`workload`] makes the stream, [`lines`] reads one; [`program`] runs a process and counts what it uses
//! - [`plan`](mod@plan) cuts the rows in transactions; [`store`] is what a store has to offer, [`sqlite`] the first
//! - [`arrivals`] takes latencies; [`report`] holds the figures

pub mod arrivals;
pub mod folder;
pub mod lines;
pub mod options;
pub mod plan;
pub mod program;
pub mod report;
pub mod sqlite;
pub mod store;
pub mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;

use crate::arrivals::Latencies;
use crate::folder::Folder;
use crate::lines::Delivery;
use crate::options::{Options, Orders};
use crate::program::Program;
use crate::report::{Report, Round};
use crate::sqlite::Sqlite;
use crate::store::{Style, TableSize, Yardstick};
use crate::workload::Workload;

/// What is measured: a program with rules.
pub struct Subject {
    /// The program.
    pub program: Program,
    /// The `[[machine]]` sections of its configuration, with absolute paths.
    pub machines: String,
    /// The machine of events that name none.
    pub machine: Option<String>,
    /// What it is given.
    pub events: Events,
}

/// Where events come from.
pub enum Events {
    /// They are made.
    Orders(Orders),
    /// JSON lines.
    File(PathBuf),
}

/// What `run --until-idle --json` answers.
#[derive(Deserialize)]
struct Answer {
    received: u64,
    elapsed_ms: u64,
    batches: u64,
}

struct Stream {
    path: PathBuf,
    deliveries: Vec<Delivery>,
    events: u64,
}

/// Measures, telling `say` what is under way.
///
/// # Errors
/// Something cannot be run, or a baseline wrote other rows than the program.
pub fn measure(subject: &Subject, options: &Options, say: &dyn Fn(&str)) -> anyhow::Result<Report> {
    let options = options.clone().settled();
    let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = Folder::make(&parent, options.keep)?;
    let bench = Bench { subject, options: &options, folder: folder.path(), say };
    say("making the stream");
    let stream = bench.stream()?;
    let mut rounds = Vec::new();
    let (mut sizes, mut stored) = (Vec::new(), 0);
    for round in 1..=options.repeat {
        say(&format!("round {round} of {}", options.repeat));
        let (done, held, bytes) = bench.round(&stream)?;
        rounds.push(done);
        (sizes, stored) = (held, bytes);
    }
    let mut report = bench.report(&stream, sizes, stored);
    report.take(&rounds, None);
    if options.latency_seconds > 0 {
        let rate = report.events_per_s * report.deliveries as f64 / report.events as f64 / 2.0;
        let latencies = bench.latencies(&stream, rate)?;
        report.take(&rounds, Some(latencies));
    }
    Ok(report)
}

struct Bench<'a> {
    subject: &'a Subject,
    options: &'a Options,
    folder: &'a Path,
    say: &'a dyn Fn(&str),
}

impl Bench<'_> {
    fn stream(&self) -> anyhow::Result<Stream> {
        let path = match &self.subject.events {
            Events::File(path) => path.clone(),
            Events::Orders(orders) => {
                let path = self.folder.join("events.jsonl");
                let part = if self.options.quick { 10 } else { 1 };
                self.workload(orders, orders.events / part, (orders.entities / part).max(1))?.write(&path)?;
                path
            }
        };
        let deliveries = lines::read(&path, self.options.partitions, self.subject.machine.as_deref())
            .with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::ensure!(!deliveries.is_empty(), "there are no events in {}", path.display());
        let mut keys: Vec<_> = deliveries.iter().filter_map(|d| d.event.as_ref()).collect();
        keys.sort_unstable();
        keys.dedup();
        let events = keys.len().max(1) as u64;
        Ok(Stream { path, deliveries, events })
    }

    fn workload(&self, orders: &Orders, events: usize, entities: usize) -> anyhow::Result<Workload> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        Ok(Workload {
            events,
            entities,
            payload: orders.payload,
            duplicates: 0.05,
            swaps: 0.02,
            seed: orders.seed,
            begins: i64::try_from(now.as_millis())?,
        })
    }

    fn round(&self, stream: &Stream) -> anyhow::Result<(Round, Vec<TableSize>, u64)> {
        let folder = Folder::make(self.folder, self.options.keep)?;
        let store = Sqlite::new(folder.path());
        let config = self.configure(folder.path(), &store, &stream.path)?;
        (self.say)("  the program");
        let (answer, usage) = self.subject.program.run(&config, &["--json", "run", "--until-idle"])?;
        let answer: Answer = serde_json::from_str(&answer).context("the program's answer cannot be read")?;
        anyhow::ensure!(
            answer.received == stream.deliveries.len() as u64,
            "the program took {} of {} deliveries",
            answer.received,
            stream.deliveries.len()
        );
        let sizes = store.sizes()?;
        let mut round = Round {
            engine: Duration::from_millis(answer.elapsed_ms),
            batches: answer.batches,
            cpu: usage.cpu,
            peak_rss: usage.peak_rss,
            per_event: None,
            bulk: None,
        };
        if !self.options.engine_only {
            round.bulk = Some(self.baseline(&store, Style::Bulk, stream, &sizes)?);
            round.per_event = Some(self.baseline(&store, Style::PerEvent, stream, &sizes)?);
        }
        Ok((round, sizes, store.stored_bytes()?))
    }

    fn baseline(
        &self,
        store: &dyn Yardstick,
        style: Style,
        stream: &Stream,
        sizes: &[TableSize],
    ) -> anyhow::Result<Duration> {
        (self.say)(&format!("  the same rows, {}", style.name()));
        let replayed = store.replay(style, &stream.deliveries, &stream.path, self.options.batch as usize)?;
        for (ours, theirs) in sizes.iter().zip(&replayed.sizes) {
            anyhow::ensure!(
                ours == theirs,
                "the {} baseline wrote other rows than the program: {ours:?} against {theirs:?}",
                style.name()
            );
        }
        anyhow::ensure!(sizes.len() == replayed.sizes.len(), "the {} baseline has other tables", style.name());
        Ok(replayed.elapsed)
    }

    fn latencies(&self, stream: &Stream, rate: f64) -> anyhow::Result<Latencies> {
        (self.say)(&format!("latencies at {rate:.0} arrivals/s"));
        let folder = Folder::make(self.folder, self.options.keep)?;
        let store = Sqlite::new(folder.path());
        let source = folder.path().join("arrivals.jsonl");
        let config = self.configure(folder.path(), &store, &source)?;
        let wanted = (rate * f64::from(self.options.latency_seconds)).max(1.0) as usize;
        let mut lines = stream.path.clone();
        let mut deliveries = stream.deliveries.clone();
        if let Events::Orders(orders) = &self.subject.events {
            lines = folder.path().join("events.jsonl");
            let per_entity = orders.events.div_ceil(orders.entities).max(1);
            self.workload(orders, wanted, wanted.div_ceil(per_entity))?.write(&lines)?;
            deliveries = lines::read(&lines, self.options.partitions, self.subject.machine.as_deref())?;
        }
        deliveries.truncate(wanted);
        arrivals::measure(&self.subject.program, &config, &store, (&lines, &deliveries), &source, rate)
    }

    /// Writes a configuration; paths within it are absolute.
    fn configure(&self, folder: &Path, store: &dyn Yardstick, source: &Path) -> anyhow::Result<PathBuf> {
        let machine = self.subject.machine.as_ref().map(|m| format!("machine = {}\n", quoted(m))).unwrap_or_default();
        let source = std::path::absolute(source)?;
        let path = source.to_str().context("a path is no text")?;
        let text = format!(
            "{}\n[store]\nurl = {}\n[run]\nbatch = {}\n[[source]]\nname = \"bench\"\nkind = \"jsonl\"\npath = {}\n\
             partitions = {}\n{machine}",
            self.subject.machines,
            quoted(&store.url()),
            self.options.batch,
            quoted(path),
            self.options.partitions,
        );
        let config = folder.join("seqgate.toml");
        std::fs::write(&config, text)?;
        Ok(config)
    }

    fn report(&self, stream: &Stream, sizes: Vec<TableSize>, stored: u64) -> Report {
        let entities = sizes.iter().find(|s| s.name == "entities").map_or(0, |s| s.rows);
        Report {
            store: "sqlite".into(),
            source: "jsonl".into(),
            events: stream.events,
            deliveries: stream.deliveries.len() as u64,
            entities,
            partitions: self.options.partitions,
            batch: self.options.batch,
            rounds: 0,
            events_per_s: 0.0,
            per_event_events_per_s: None,
            bulk_events_per_s: None,
            ratio_per_event: None,
            ratio_bulk: None,
            cpu_us_per_event: 0.0,
            batches: 0,
            p50_ms: None,
            p99_ms: None,
            max_ms: None,
            arrivals_per_s: None,
            peak_rss_mib: 0.0,
            bytes_per_event: report::rounded(stored as f64 / stream.events as f64),
            tables: sizes.into_iter().map(Into::into).collect(),
        }
    }
}

/// As a TOML string; what JSON escapes, TOML does too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
