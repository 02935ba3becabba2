//! Log lines: always on standard error, so that standard output holds nothing but answers. And measurements ([`metrics`]).

pub mod metrics;

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

pub use metrics::{Phase, Recorder};

/// Where the level is taken from when the command line names none.
pub const VARIABLE: &str = "SEQGATE_LOG";

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

/// A filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("`{filter}` is no log filter ({why}); write error, warn, info, debug or trace, or seqgate::store=debug")]
pub struct BadFilter {
    filter: String,
    why: String,
}

/// Starts logging. `filter` is a level or a list of `target=level`; then the environment's, then `warn`. A process that
/// logs already (a test's) keeps its own.
pub fn start(filter: Option<&str>, format: Format) -> Result<(), BadFilter> {
    let from_environment = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let text = filter.map(str::to_owned).or(from_environment).unwrap_or_else(|| "warn".to_owned());
    let filter = EnvFilter::try_new(&text).map_err(|e| BadFilter { filter: text, why: e.to_string() })?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // Someone else's subscriber is no reason not to work.
    let _ = match format {
        Format::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Format::Json => builder.json().flatten_event(true).try_init(),
    };
    Ok(())
}
