//! Compiled code on disk, so that a start costs a read instead of a compilation.
//!
//! Format: one file for each (component, engine), named `DIGEST-ENGINE.cwasm`, where ENGINE is a hash of wasmtime's
//! version and settings: 8 bytes magic, 32 bytes SHA-256 of the rest, the artefact. Written to a temporary name and
//! renamed, without fsync: a file that a crash cut short fails its checksum. Whatever is missing, damaged, readable by
//! others or owned by another user is compiled again and replaced, never trusted. The cache is no way in: only a
//! [`Prepared`] component, whose bytes are at hand and checked, is looked up.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest as _, Sha256};
use wasmtime::component::Component;

use super::engine::Engine;
use super::error::HostError;
use super::prepare::Prepared;

const MAGIC: &[u8; 8] = b"seqgate1";
const HEADER: usize = MAGIC.len() + 32;
/// Larger than any artefact of a component within its own limit.
const MAX_FILE: u64 = 512 << 20;

/// A private folder of compiled components. Several processes may share one.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    owner: u32,
}

impl Cache {
    /// Opens the folder, or makes it with mode 0700.
    ///
    /// # Errors
    /// [`HostError::Cache`] where it cannot be made or written, belongs to another user, or lets others in.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, HostError> {
        let folder = folder.into();
        match Self::try_open(&folder) {
            Ok(owner) => Ok(Self { folder, owner }),
            Err(error) => Err(HostError::Cache { path: folder, detail: error.to_string() }),
        }
    }

    fn try_open(folder: &Path) -> io::Result<u32> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // The owner of a file made here and now is this process, whatever the platform calls it.
        let probe = temporary(folder, "probe");
        let owner = create(&probe)?.metadata()?.uid();
        fs::remove_file(&probe)?;
        let metadata = fs::symlink_metadata(folder)?;
        if !metadata.is_dir() {
            return Err(io::Error::other("it is not a folder itself; name the folder, not a link to it"));
        }
        if metadata.uid() != owner {
            return Err(io::Error::other("it belongs to another user; name a folder of your own"));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(io::Error::other("other users can enter it; run `chmod 700` on it"));
        }
        Ok(owner)
    }

    /// The code of a component as compiled by this very engine, if there is a sound copy.
    pub(super) fn get(&self, engine: &Engine, prepared: &Prepared) -> Option<Component> {
        let file = self.read(&self.path(engine, prepared)).ok()?;
        let (header, artefact) = file.split_at_checked(HEADER)?;
        if header[..MAGIC.len()] != *MAGIC || header[MAGIC.len()..] != *Sha256::digest(artefact) {
            return None;
        }
        load(engine, artefact)
    }

    /// Keeps the code. What goes wrong costs the next start a compilation, and is logged.
    pub(super) fn put(&self, engine: &Engine, prepared: &Prepared, component: &Component) {
        let path = self.path(engine, prepared);
        let written = component
            .serialize()
            .map_err(|error| io::Error::other(super::error::chain(&error)))
            .and_then(|artefact| self.write(&path, &artefact));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "compiled rules were not kept");
        }
    }

    fn path(&self, engine: &Engine, prepared: &Prepared) -> PathBuf {
        let mut settings = Settings(Sha256::new());
        engine.wasm().precompile_compatibility_hash().hash(&mut settings);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        self.folder.join(format!("{}-{}.cwasm", hex(&prepared.digest().0), hex(&settings.0.finalize()[..16])))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let named = fs::symlink_metadata(path)?;
        let file = File::open(path)?;
        let opened = file.metadata()?;
        let same = (named.dev(), named.ino()) == (opened.dev(), opened.ino());
        let private = opened.uid() == self.owner && opened.mode() & 0o077 == 0;
        if !(named.is_file() && same && private && opened.len() <= MAX_FILE) {
            return Err(io::Error::other("not a private file of this user"));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(opened.len()).unwrap_or(0));
        file.take(MAX_FILE).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, path: &Path, artefact: &[u8]) -> io::Result<()> {
        let temporary = temporary(&self.folder, "new");
        let written = create(&temporary).and_then(|mut file| {
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(artefact))?;
            file.write_all(artefact)
        });
        let moved = written.and_then(|()| fs::rename(&temporary, path));
        if moved.is_err() {
            // It may not be there at all; the error that counts is the first.
            let _ = fs::remove_file(&temporary);
        }
        moved
    }
}

/// The one place where bytes from a disk become code.
#[allow(unsafe_code, reason = "wasmtime cannot check that an artefact is one of its own")]
fn load(engine: &Engine, artefact: &[u8]) -> Option<Component> {
    // SAFETY: `deserialize` needs the unmodified output of `serialize`. The caller read these bytes from a file that
    // only this user can write, in a folder that only this user can enter, and verified their checksum on this very
    // copy; the file's name carries this engine's compatibility hash, which wasmtime checks again.
    unsafe { Component::deserialize(engine.wasm(), artefact) }.ok()
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A name in the folder that no other writer uses, in this process or another.
fn temporary(folder: &Path, what: &str) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let stamp = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    folder.join(format!(".{what}-{}-{}-{stamp}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Feeds what wasmtime hashes to SHA-256: std's hasher may change with the compiler.
struct Settings(Sha256);

impl Hasher for Settings {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let hash = self.0.clone().finalize();
        hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
    }
}
