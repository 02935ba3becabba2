//! Configuration: read as written ([`raw`]), then checked into what the parts need ([`checked`]).

pub mod checked;
mod environment;
pub mod raw;
pub mod units;

use std::path::{Path, PathBuf};

pub use checked::{Config, EmbeddedConfig, JsonlConfig, MachineConfig, RetentionConfig, SourceConfig};

/// Why a configuration cannot be used. Every text says what to change.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}; name another with --config")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is no TOML, or has keys or values that mean nothing.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// What and where.
        message: String,
    },
    /// It reads well and cannot work.
    #[error("{path}: {message}")]
    Check {
        /// The file.
        path: PathBuf,
        /// What to change.
        message: String,
    },
}

/// Loads and checks a configuration file. `SEQGATE_SECTION__KEY` in `environment` overrides what the file says; paths are
/// relative to the file's folder.
pub fn load(path: &Path, environment: impl Iterator<Item = (String, String)>) -> Result<Config, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parse(&text, path, folder, environment)
}

/// The same from a text; `path` is only named in errors.
pub fn parse(
    text: &str,
    path: &Path,
    folder: &Path,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    let refused = |message: String| ConfigError::Parse { path: path.to_owned(), message };
    let mut table: toml::Table = text.parse().map_err(|e: toml::de::Error| refused(e.to_string()))?;
    environment::overlay(&mut table, environment).map_err(refused)?;
    // Once more from text, so that errors name their line; the overlay has none.
    let raw: Result<raw::Raw, _> = match table == text.parse::<toml::Table>().unwrap_or_default() {
        true => toml::from_str(text),
        false => table.try_into(),
    };
    let raw = raw.map_err(|e| refused(raw::with_nearest_name(&e.to_string())))?;
    checked::check(raw, folder).map_err(|message| ConfigError::Check { path: path.to_owned(), message })
}
