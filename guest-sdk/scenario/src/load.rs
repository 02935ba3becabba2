//! Reading stories.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::story::Story;

/// A story cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The folder or a file in it cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is no story.
    #[error("{}: {source}", file.display())]
    Story {
        /// Which.
        file: PathBuf,
        /// What is wrong with it, and in which line.
        source: serde_json::Error,
    },
    /// There is no `*.json` in the folder.
    #[error("no scenario (*.json) in {}", .0.display())]
    Empty(PathBuf),
}

/// The stories in a folder: every `*.json` directly in it, in the order of their names. At least one.
pub fn load(folder: &Path) -> Result<Vec<Story>, LoadError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LoadError::Read { path, source }
    };
    let entries = fs::read_dir(folder).map_err(failed(folder))?;
    let mut files =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(failed(folder))?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    if files.is_empty() {
        return Err(LoadError::Empty(folder.to_owned()));
    }
    let read = |file: &PathBuf| parse(file, &fs::read(file).map_err(failed(file))?);
    files.iter().map(read).collect()
}

/// The story in a file's bytes; `file` is only its name.
pub fn parse(file: &Path, bytes: &[u8]) -> Result<Story, LoadError> {
    let mut story: Story =
        serde_json::from_slice(bytes).map_err(|source| LoadError::Story { file: file.to_owned(), source })?;
    story.file = file.to_owned();
    Ok(story)
}
