//! `run`: one host on one database, until it is told to stop or has nothing more to do.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use seqgate_decide::envelope::Limits;
use seqgate_decide::verdict::Verdict;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::context::{Context, Site, database, login};
use super::failure::{failed, fenced};
use super::output::Object;
use super::progress::Progress;
use super::{rules, show, status};
use crate::config::SourceConfig;
use crate::config::checked::fed_by_many;
use crate::http;
use crate::ingest::Ingest;
use crate::rules::EngineOptions;
use crate::runner::run::directory;
use crate::runner::{self, Live, Mode, Report, RunError, Stage};
use crate::store::lock::{Holder, LockError, RunLock};
use crate::store::views::Status;
use crate::store::{self, Faults, Point, Settings};
use crate::telemetry::Recorder;

/// How long requests under way may take at the end.
const CLOSING: Duration = Duration::from_secs(2);

/// Read the sources and decide their events
#[derive(Args, Debug)]
pub struct Run {
    /// Decide all that the sources hold now, then stop
    #[arg(long)]
    until_idle: bool,
    /// With --until-idle: fire the timers that are due then
    #[arg(long, requires = "until_idle")]
    timers: bool,
    /// Abort the process when a commit comes to this point for the N-th time
    #[arg(long, hide = true, value_name = "POINT:N")]
    fail_at: Option<FailAt>,
}

/// Where a test kills the process.
#[derive(Clone, Copy, Debug)]
struct FailAt {
    point: Point,
    count: u64,
}

impl FromStr for FailAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (point, count) = text.split_once(':').unwrap_or((text, "1"));
        let point = Point::from_name(point).ok_or_else(|| {
            let names: Vec<&str> = Point::ALL.iter().map(|p| p.name()).collect();
            format!("`{point}` is no point; there are {}", names.join(", "))
        })?;
        let count = count.parse().ok().filter(|n| *n > 0).ok_or("N counts from 1")?;
        Ok(Self { point, count })
    }
}

impl FailAt {
    fn faults(self) -> Faults {
        let left = AtomicU64::new(self.count);
        Faults::new(move |point| {
            if point == self.point && left.fetch_sub(1, Ordering::SeqCst) == 1 {
                std::process::abort();
            }
            false
        })
    }
}

impl Run {
    /// Runs, and says what was done.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let config = ctx.load()?;
        if let Some(machine) = fed_by_many(&config).into_iter().next() {
            return Err(RunError::ManySources(machine).into());
        }
        let holder = Holder { pid: std::process::id(), host: host(), started: ctx.clock.now() };
        let owner = format!("{}:{}", holder.host, holder.pid);
        let _lock = RunLock::acquire(&database(&config)?, &holder).map_err(held)?;
        let faults = self.fail_at.map_or_else(Faults::none, FailAt::faults);
        let store = store::open(&config.store_url, Settings { faults, ..Settings::default() })
            .await
            .with_context(|| format!("cannot open {}", config.store_url))?;
        let site = Site { config, store };
        let components = site.components(EngineOptions::default().allocation)?;
        for machine in &site.config.machines {
            components.ensure_active(machine, &login(), ctx.clock.now()).await?;
        }
        for difference in rules::differences(ctx, &site).await? {
            tracing::warn!("{difference}");
        }
        let progress = Progress::start(&site.config, self.until_idle, ctx.json);
        let engine = runner::Engine {
            store: site.store.clone(),
            clock: ctx.clock.clone(),
            rules: Arc::new(components),
            setups: Arc::new(site.config.machines.iter().map(|m| m.setup.clone()).collect()),
            observer: progress.as_ref().map(Progress::observer),
        };
        let mode = if self.until_idle { Mode::UntilIdle { timers: self.timers } } else { Mode::Follow };
        let report = match mode {
            Mode::UntilIdle { .. } => work(&engine, &site, &owner, mode, &Live::default()).await?,
            Mode::Follow => follow(ctx, &engine, &site, &owner).await?,
        };
        drop(progress);
        let status = site.store.status().await?;
        site.store.close().await?;
        ctx.answer(|| json(&report, &status), || sentence(ctx, &report, &status))
    }
}

/// Runs beside what fills the embedded sources: their appenders, and the listener.
async fn follow(ctx: &Context, engine: &runner::Engine, site: &Site, owner: &str) -> anyhow::Result<Report> {
    let (config, mut live, mut ingests) = (&site.config, Live::default(), Vec::new());
    let listener = match config.http {
        Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
            failed(
                "listen",
                format!("cannot listen on {address}: {error}; change http.listen, or stop who listens there"),
            )
        })?),
        None => None,
    };
    for source in &config.sources {
        let SourceConfig::Embedded(embedded) = source else { continue };
        let (clock, directory) = (ctx.clock.clone(), directory(&engine.setups));
        let limits = Limits { data: config.data_limit };
        let (ingest, _) = Ingest::start(embedded.clone(), site.store.clone(), clock, directory, limits, true).await?;
        live.grown.insert(embedded.name.clone(), ingest.grown());
        ingests.push(ingest);
    }
    let (quit, told) = watch::channel(false);
    let serving = match listener {
        Some(listener) => {
            // Whoever started it with port 0 wants to know.
            eprintln!("listening on http://{}", listener.local_addr()?);
            let metrics = http::Metrics::new(Recorder::start()?);
            let host = http::Host { ingests: ingests.clone(), live: live.clone(), store: site.store.clone(), metrics };
            Some(tokio::spawn(http::serve(listener, host, told)))
        }
        None => None,
    };
    let report = work(engine, site, owner, Mode::Follow, &live).await;
    quit.send_replace(true);
    drop(ingests);
    if let Some(serving) = serving {
        // A client that holds its connection open does not keep the host.
        match tokio::time::timeout(CLOSING, serving).await {
            Ok(ended) => ended??,
            Err(_) => tracing::warn!("connections were still open"),
        }
    }
    report
}

/// Runs until the end, or until the time that a stop may take is over.
async fn work(engine: &runner::Engine, site: &Site, owner: &str, mode: Mode, live: &Live) -> anyhow::Result<Report> {
    let (stop, stopped) = watch::channel(false);
    let within = site.config.stop_within;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let told = async {
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        tracing::info!(?within, "told to stop; the batch in hand is finished first");
        stop.send_replace(true);
        live.stage.send_replace(Stage::Stopping);
        // A second signal does not wait.
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {}, () = tokio::time::sleep(within) => {} }
    };
    tokio::select! {
        report = runner::run_live(engine, &site.config, owner, mode, stopped, live) => Ok(report?),
        () = told => Err(failed("late", format!(
            "the batch in hand did not end within {within:?} (run.stop_within); what is committed is safe, start it again"
        ))),
    }
}

/// Who runs already, and since when.
fn held(error: LockError) -> anyhow::Error {
    let LockError::Held { holder, path } = error else { return error.into() };
    let since = if holder.started > 0 { format!(", since {}", show::seconds(holder.started)) } else { String::new() };
    let who = match holder.pid {
        0 => "another process".to_owned(),
        pid => format!("process {pid} on {}{since}", holder.host),
    };
    let message = format!(
        "{who} runs on this database (lock file {}); stop it first, every other command works beside it",
        path.display()
    );
    fenced("held", message)
}

fn json(report: &Report, status: &Status) -> Object {
    Object::new()
        .put("received", report.received)
        .put("events_per_second", rate(report).round())
        .put("elapsed_ms", u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX))
        .put("batches", report.batches)
        .put("redone", report.redone)
        .put("swept", report.swept)
        .put("timers", report.timers)
        .put("verdicts", status::verdicts(&status.verdicts))
}

fn rate(report: &Report) -> f64 {
    report.received as f64 / report.elapsed.as_secs_f64().max(0.001)
}

fn sentence(ctx: &Context, report: &Report, status: &Status) -> String {
    let (received, seconds) = (report.received, report.elapsed.as_secs_f64());
    let events = if received == 1 { "event" } else { "events" };
    let mut text = format!("{received} {events} in {seconds:.2} s ({:.0}/s)", rate(report));
    if report.timers > 0 {
        text.push_str(&format!(", {} timers fired", report.timers));
    }
    text.push_str(&format!("; in all: {}", in_words(&status.verdicts)));
    if status.dead_letters.count + status.conflicts.count + status.alarms.count > 0 {
        text.push_str(&format!(". Some need you: {}", ctx.command("status")));
    }
    text
}

/// `4 applied, 1 deferred`
pub fn in_words(verdicts: &BTreeMap<Verdict, u64>) -> String {
    let some: Vec<String> = verdicts.iter().filter(|(_, n)| **n > 0).map(|(v, n)| format!("{n} {v}")).collect();
    if some.is_empty() { "nothing".to_owned() } else { some.join(", ") }
}

/// This machine's name.
fn host() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let named = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    let named = named.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "this host".to_owned())
}
