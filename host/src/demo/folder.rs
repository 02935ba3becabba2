//! The demo's own folder: temporary unless it is to be kept.

use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::DemoError;

/// A folder that nobody else uses. It is removed when it is dropped, unless it is kept.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// A new folder: `dir`, which must be empty or not there yet, or one of its own among the system's temporary files.
    pub fn make(dir: Option<&Path>, keep: bool) -> Result<Self, DemoError> {
        match dir {
            Some(dir) => Self::at(dir),
            None => Self::temporary(keep),
        }
    }

    fn at(dir: &Path) -> Result<Self, DemoError> {
        let failed = |source| DemoError::Folder { path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        if fs::read_dir(dir).map_err(failed)?.next().is_some() {
            return Err(DemoError::NotEmpty { path: dir.to_owned() });
        }
        Ok(Self { path: dir.canonicalize().map_err(failed)?, keep: true })
    }

    fn temporary(keep: bool) -> Result<Self, DemoError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let parent = std::env::temp_dir();
        loop {
            let n = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = parent.join(format!("seqgate-demo-{}-{n}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path, keep }),
                // Left by an earlier process of this number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(source) => return Err(DemoError::Folder { path, source }),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, DemoError> {
        let path = self.path.join(name);
        fs::write(&path, bytes).map_err(|source| DemoError::Folder { path: path.clone(), source })?;
        Ok(path)
    }

    /// Leaves it where it is.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Whether it will be there afterwards.
    pub fn is_kept(&self) -> bool {
        self.keep
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What is left of it lies among the system's temporary files.
            let _: Result<(), Error> = fs::remove_dir_all(&self.path);
        }
    }
}
