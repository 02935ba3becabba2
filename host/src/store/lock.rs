//! R7: one `run` at a time on an embedded database.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

/// Held while `run` works on a database file; the operating system releases it when the process ends, however it does.
#[derive(Debug)]
pub struct RunLock {
    file: File,
}

/// Why it cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it (exit 3).
    #[error("another process runs on this database: {holder} (lock file {})", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who, as it wrote itself down.
        holder: Holder,
    },
    /// The lock file cannot be opened or written.
    #[error("the lock file {} cannot be used", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Who holds the lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// Its host.
    pub host: String,
    /// When it started, in milliseconds since the epoch.
    pub started: i64,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.pid == 0 {
            return f.write_str("it has not written its name yet");
        }
        let Self { pid, host, started } = self;
        write!(f, "process {pid} on {host}, started {started}")
    }
}

impl RunLock {
    /// Where the lock of a database file lies: beside it.
    pub fn path_for(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push(".lock");
        name.into()
    }

    /// Takes the lock or says who holds it; never waits.
    pub fn acquire(database: &Path, me: &Holder) -> Result<Self, LockError> {
        let path = Self::path_for(database);
        let io = |source| LockError::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { holder: read(&mut file), path }),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        write(&mut file, me).map_err(io)?;
        Ok(Self { file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // The name goes first: whoever sees the lock free sees no stale holder.
        let _ = self.file.set_len(0);
        let _ = self.file.unlock();
    }
}

fn write(file: &mut File, me: &Holder) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{}\n{}\n{}\n", me.pid, me.host.replace('\n', " "), me.started)?;
    file.flush()
}

fn read(file: &mut File) -> Holder {
    let mut text = String::new();
    // What cannot be read is not known: the lock is held all the same.
    let _ = file.read_to_string(&mut text);
    let mut lines = text.lines();
    let pid = lines.next().and_then(|l| l.parse().ok()).unwrap_or_default();
    let host = lines.next().unwrap_or_default().to_owned();
    Holder { pid, host, started: lines.next().and_then(|l| l.parse().ok()).unwrap_or_default() }
}
