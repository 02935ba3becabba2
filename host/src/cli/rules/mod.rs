//! `rules`: build, look at, test, and ship what decides.

mod attempt;
mod author;
mod dev;
mod ship;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::context::{By, Context, Paging, digest};
use seqgate_decide::ids::Digest;
pub use ship::differences;

/// The machines' rules: build, check, ship
#[derive(Debug, Subcommand)]
pub enum Rules {
    /// Compile a machine's folder to a component
    Build {
        /// The folder, with its Cargo.toml
        path: PathBuf,
        /// Where to write it (default: NAME.wasm here)
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// What rules declare: states, edges, deadlines, schema
    Inspect {
        /// A component's file, or the digest of a registered one
        #[arg(value_name = "FILE|DIGEST")]
        rules: String,
    },
    /// Draw the states and edges
    Graph {
        /// A component's file, or the digest of a registered one
        #[arg(value_name = "FILE|DIGEST")]
        rules: String,
        /// For which program
        #[arg(long, value_enum, default_value_t)]
        format: author::GraphFormat,
    },
    /// Tell a machine's scenarios (PATH/scenarios/*.json) to its component
    Test {
        /// The machine's folder
        path: PathBuf,
        /// A component to use instead of building the folder
        #[arg(long, value_name = "FILE")]
        component: Option<PathBuf>,
    },
    /// Ask rules about one event, without a store: the transition, its effects, the fuel
    Try(attempt::Try),
    /// Build a machine and tell its scenarios at every change of its files, until Ctrl-C
    Dev {
        /// The machine's folder
        #[arg(default_value = ".")]
        path: PathBuf,
        /// Once, then stop: exit 1 where something does not hold
        #[arg(long)]
        once: bool,
    },
    /// Check a component and keep it in the store; nothing changes for events
    Register {
        /// The component
        file: PathBuf,
        #[command(flatten)]
        by: By,
    },
    /// Registered components, the newest first
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Let a registered component decide from now on
    Activate {
        /// Its digest
        #[arg(value_parser = digest)]
        digest: Digest,
        #[command(flatten)]
        by: By,
    },
    /// Go back to the rules before the present ones
    Rollback {
        /// The machine
        machine: String,
        /// Go back to these instead
        #[arg(long, value_name = "DIGEST", value_parser = digest)]
        to: Option<Digest>,
        #[command(flatten)]
        by: By,
    },
}

impl Rules {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<ExitCode> {
        match self {
            Self::Build { path, output } => author::build(ctx, &path, output)?,
            Self::Inspect { rules } => author::inspect(ctx, &rules).await?,
            Self::Graph { rules, format } => author::graph(ctx, &rules, format).await?,
            Self::Test { path, component } => return author::test(ctx, &path, component.as_deref()),
            Self::Try(one) => return one.run(ctx),
            Self::Dev { path, once } => return dev::run(ctx, &path, once).await,
            Self::Register { file, by } => ship::register(ctx, &file, &by).await?,
            Self::List { machine, paging } => ship::list(ctx, machine.as_deref(), &paging).await?,
            Self::Activate { digest, by } => ship::activate(ctx, digest, &by).await?,
            Self::Rollback { machine, to, by } => ship::rollback(ctx, &machine, to, &by).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
