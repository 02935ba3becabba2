//! The command line: noun, then verb. Standard output holds answers only (tables, or JSON with `--json`); everything else
//! goes to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 fenced or lost ownership.
//!
//! - [`context`]: what commands share; [`output`], [`show`]: how answers look; [`failure`]: how errors do
//! - a file per noun; [`run`] with its `progress`; [`explain`] tells an entity's story

mod attention;
mod context;
mod demo;
mod entity;
mod explain;
mod failure;
mod outbox;
mod output;
mod progress;
mod rules;
mod run;
mod show;
mod status;

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
#[command(name = "seqgate", version, about, max_term_width = 100, disable_help_subcommand = true)]
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
    /// Read the sources and decide their events
    Run(run::Run),
    /// What needs a person, and the sums
    Status,
    /// One state machine's instance
    #[command(subcommand)]
    Entity(entity::Entity),
    /// Messages that transitions emitted
    #[command(subcommand)]
    Outbox(outbox::Outbox),
    /// The machines' rules: build, check, ship
    #[command(subcommand)]
    Rules(rules::Rules),
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
        Command::Run(run) => run.run(ctx).await?,
        Command::Status => status::show(ctx).await?,
        Command::Entity(entity) => entity.run(ctx).await?,
        Command::Outbox(outbox) => outbox.run(ctx).await?,
        Command::Rules(rules) => return rules.run(ctx).await,
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
