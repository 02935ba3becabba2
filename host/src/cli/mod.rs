//! The command line: noun, then verb. Standard output holds answers only (tables, or JSON with `--json`); everything else
//! goes to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 fenced or lost ownership.
//!
//! - `context`: what commands share; `output`, `show`: how answers look; `failure`: how errors do
//! - a file per noun (`operations` has three small ones, `configured` two); `run` with its `progress`; `explain`
//!   tells an entity's story; `decide` is what persons' decisions share, `attention` what `status` opens with

mod attention;
mod bench;
mod check;
mod configured;
mod conflict;
mod context;
mod dead_letter;
mod decide;
mod deferred;
mod demo;
mod entity;
mod event;
mod explain;
mod failure;
mod gap;
mod ingest;
mod new;
mod operations;
mod outbox;
mod output;
mod progress;
mod rules;
mod run;
mod show;
mod status;
mod story;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use self::context::Context;
use self::failure::Shown;
use crate::clock::Clock;
use crate::telemetry;

/// One consumer runtime for ordered events.
#[derive(Debug, Parser)]
#[command(name = "seqgate", bin_name = "seqgate", version, about, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    /// The configuration
    #[arg(long, global = true, value_name = "FILE", default_value = "seqgate.toml")]
    config: PathBuf,
    /// Answer in JSON
    #[arg(long, global = true)]
    json: bool,
    /// What to log to standard error: warn (default), info, debug, or seqgate::store=debug
    #[arg(long, global = true, value_name = "FILTER")]
    log: Option<String>,
    /// How log lines look
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t)]
    log_format: telemetry::Format,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Watch real rules handle a stream with duplicates, swaps, gaps, conflicts and refused events
    Demo(demo::Args),
    /// Write a new project: a machine, its scenarios, the SDK, a configuration
    New(new::New),
    /// Read the sources and decide their events
    Run(run::Run),
    /// Append events to an embedded source's log, a CloudEvent in JSON a line
    Ingest(ingest::Ingest),
    /// Look at the configuration and what it names; changes nothing
    Check,
    /// What needs a person, and the sums
    Status,
    /// One state machine's instance
    #[command(subcommand)]
    Entity(entity::Entity),
    /// What became of an event
    #[command(subcommand)]
    Event(event::Event),
    /// Events that wait
    #[command(subcommand)]
    Deferred(deferred::Deferred),
    /// Versions that never came
    #[command(subcommand)]
    Gap(gap::Gap),
    /// Events that contradict others
    #[command(subcommand)]
    Conflict(conflict::Conflict),
    /// Events that were refused
    #[command(subcommand)]
    DeadLetter(dead_letter::DeadLetter),
    /// Messages that transitions emitted
    #[command(subcommand)]
    Outbox(outbox::Outbox),
    /// Timers that are pending
    #[command(subcommand)]
    Timer(operations::Timer),
    /// Conditions that need a person
    #[command(subcommand)]
    Alarm(operations::Alarm),
    /// What people did
    #[command(subcommand)]
    Audit(operations::Audit),
    /// Machines that are configured
    #[command(subcommand)]
    Machine(configured::Machine),
    /// Sources that are configured
    #[command(subcommand)]
    Source(configured::Source),
    /// The machines' rules: build, check, ship
    #[command(subcommand)]
    Rules(rules::Rules),
    /// Measure throughput, latency and memory with your rules and events
    Bench(bench::Bench),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the program, and gives its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return misused(&error, arguments.iter().any(|a| a == "--json")),
    };
    let json = cli.json;
    match start(cli) {
        Ok(code) => code,
        Err(error) => {
            let shown = Shown::of(&error);
            if json {
                eprintln!("{}", shown.json())
            } else {
                eprintln!("error: {}", shown.message)
            }
            ExitCode::from(shown.exit)
        }
    }
}

/// Help and versions are answers; anything else is wrong usage.
fn misused(error: &clap::Error, json: bool) -> ExitCode {
    if json && error.use_stderr() {
        let message = error.render().to_string().trim_start_matches("error: ").trim_end().to_owned();
        eprintln!("{}", Shown { exit: failure::USAGE, code: "usage".to_owned(), message }.json());
    } else {
        // A closed stream leaves nobody to tell.
        let _ = error.print();
    }
    ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 })
}

fn start(cli: Cli) -> anyhow::Result<ExitCode> {
    // What the demo refuses on purpose is no news.
    let quiet = matches!(cli.command, Command::Demo(_)).then_some("error");
    telemetry::start(cli.log.as_deref().or(quiet), cli.log_format)?;
    let ctx = Context { json: cli.json, config: cli.config, clock: Clock::System };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(dispatch(&ctx, cli.command));
    // Whoever still reads a terminal or a slow disk does not keep the process.
    runtime.shutdown_background();
    ended
}

async fn dispatch(ctx: &Context, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Demo(demo) => return demo.run(ctx).await,
        Command::New(new) => new.run(ctx)?,
        Command::Run(run) => run.run(ctx).await?,
        Command::Ingest(ingest) => ingest.run(ctx).await?,
        Command::Check => return check::run(ctx).await,
        Command::Status => status::show(ctx).await?,
        Command::Entity(entity) => entity.run(ctx).await?,
        Command::Event(event) => event.run(ctx).await?,
        Command::Deferred(deferred) => deferred.run(ctx).await?,
        Command::Gap(gap) => gap.run(ctx).await?,
        Command::Conflict(conflict) => conflict.run(ctx).await?,
        Command::DeadLetter(dead) => dead.run(ctx).await?,
        Command::Outbox(outbox) => outbox.run(ctx).await?,
        Command::Timer(timer) => timer.run(ctx).await?,
        Command::Alarm(alarm) => alarm.run(ctx).await?,
        Command::Audit(audit) => audit.run(ctx).await?,
        Command::Machine(machine) => machine.run(ctx).await?,
        Command::Source(source) => source.run(ctx).await?,
        Command::Rules(rules) => return rules.run(ctx).await,
        Command::Bench(bench) => bench.run(ctx).await?,
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "seqgate", &mut std::io::stdout());
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_holds_together() {
        Cli::command().debug_assert();
    }
}
