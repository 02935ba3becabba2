//! `demo`: real rules against a stream with everything that goes wrong between systems.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::sync::watch;

use super::context::Context;
use super::failure::{failed, usage};
use super::output;
use crate::demo::{DemoError, Options, demonstrate, report, stream};

/// The columns of a text that goes to no terminal.
const WIDTH: usize = 110;

/// Watch real rules handle a stream with duplicates, swaps, gaps, conflicts and refused events
#[derive(clap::Args, Debug)]
pub struct Args {
    /// How many events
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(stream::FEWEST as u64..=10_000_000))]
    events: u64,
    /// What the stream is made from: the same seed, the same stream
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where to leave everything: a new or empty folder
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Leave the temporary folder
    #[arg(long)]
    keep: bool,
}

impl Args {
    /// Demonstrates, and tells; exit code 1 where something did not end as it was meant to.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<ExitCode> {
        let events = usize::try_from(self.events).unwrap_or(usize::MAX);
        let options = Options { events, seed: self.seed, dir: self.dir, keep: self.keep };
        let bar = bar(self.events, ctx.json);
        let (stop, stopped) = watch::channel(false);
        let interrupted = tokio::spawn(async move {
            // Without signals there is nothing to wait for.
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.send_replace(true);
            }
            stop.closed().await;
        });
        let moving = bar.clone();
        let outcome = demonstrate(&options, move |n| moving.inc(n), stopped).await;
        interrupted.abort();
        bar.finish_and_clear();
        let outcome = outcome.map_err(shown)?;
        if ctx.json {
            output::print(serde_json::to_string(&report::summary(&outcome))?)?;
        } else {
            output::print(report::text(&outcome, &program(), output::width().unwrap_or(WIDTH)))?;
        }
        Ok(if outcome.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn bar(events: u64, json: bool) -> ProgressBar {
    if json || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(events);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {human_pos} events, {per_sec}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// How this program was called, so that what is shown can be typed.
fn program() -> String {
    std::env::args().next().filter(|name| !name.contains(char::is_whitespace)).unwrap_or_else(|| "seqgate".to_owned())
}

fn shown(error: DemoError) -> anyhow::Error {
    match error {
        DemoError::NotEmpty { .. } => usage("not-empty", error.to_string()),
        DemoError::Folder { .. } | DemoError::Stopped { .. } => failed("demo", error.to_string()),
        DemoError::Config(error) => error.into(),
        DemoError::Engine(error) => error.into(),
        DemoError::Lock(error) => error.into(),
        DemoError::Store(error) => error.into(),
        DemoError::Run(error) => error.into(),
    }
}
