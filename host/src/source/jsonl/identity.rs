//! Which file a source is: device, inode and the digest of its beginning (R10).

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use seqgate_decide::digest;
use seqgate_decide::ids::Digest;

/// How much of a file's beginning is compared, in bytes.
pub const HEAD: u64 = 4096;

/// A file's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// SHA-256 of the first `head` bytes.
    pub digest: Digest,
    /// How many bytes `digest` covers: [`HEAD`], or all of a shorter file.
    pub head: u64,
}

impl Identity {
    /// The identity of an open file. Leaves its position anywhere.
    pub fn of(file: &mut File) -> std::io::Result<Self> {
        let metadata = file.metadata()?;
        let head = beginning(file, HEAD)?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            digest: digest::of_bytes(&head),
            head: head.len() as u64,
        })
    }
}

/// Whether an open file is the one that was stored, perhaps grown since.
pub(super) fn continues(stored: &Identity, now: &Identity, file: &mut File) -> std::io::Result<bool> {
    if (stored.device, stored.inode) != (now.device, now.inode) {
        return Ok(false);
    }
    let head = beginning(file, stored.head)?;
    Ok(head.len() as u64 == stored.head && digest::of_bytes(&head) == stored.digest)
}

fn beginning(file: &mut File, bytes: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(bytes).read_to_end(&mut head)?;
    Ok(head)
}
