//! The benchmark's own folder.

use std::path::{Path, PathBuf};

/// Removed when it is dropped, unless it is kept.
pub struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    /// A new folder within `parent`.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(parent: &Path, keep: bool) -> anyhow::Result<Self> {
        let mut n = 0;
        loop {
            let path = parent.join(format!("seqgate-bench-{}-{n}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, keep }),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => n += 1,
                Err(error) => anyhow::bail!("cannot make {}: {error}; name another place with --dir", path.display()),
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What is left of it lies where the user sees it.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
