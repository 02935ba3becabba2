//! The names by which events and entities are known.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::envelope::is_control;

/// The largest key of an entity, in bytes (R1).
pub const MAX_KEY: usize = 512;
/// The largest id, type or idempotency key, in bytes (R1).
pub const MAX_NAME: usize = 256;

/// One entity: a machine's name and the entity's key, which is opaque bytes (1 to [`MAX_KEY`]).
///
/// Cloning is cheap; the order is by machine, then by key bytes, which is the order in which the stores lock rows.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityId {
    /// The machine's configured name.
    pub machine: Arc<str>,
    /// The key, never normalised: the same visible text in NFC and NFD is two entities.
    pub key: Arc<[u8]>,
}

impl EntityId {
    /// An entity's address. The caller has checked the limits (R1 does, for events).
    pub fn new(machine: impl Into<Arc<str>>, key: impl Into<Arc<[u8]>>) -> Self {
        Self { machine: machine.into(), key: key.into() }
    }
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/", self.machine)?;
        // As text where it is text. What is not, or would not be seen, is percent-encoded, and so is `%`: alarms are kept
        // by this form, and two keys never share one.
        for chunk in self.key.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c == '%' || is_control(c) {
                    let mut bytes = [0; 4];
                    percent(f, c.encode_utf8(&mut bytes).as_bytes())?;
                } else {
                    fmt::Write::write_char(f, c)?;
                }
            }
            percent(f, chunk.invalid())?;
        }
        Ok(())
    }
}

fn percent(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|b| write!(f, "%{b:02X}"))
}

impl fmt::Debug for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The identity of an event: CloudEvents `source` and `id` within a machine. The inbox is keyed by it (R2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKey {
    /// The machine the event is for.
    pub machine: Arc<str>,
    /// The CloudEvents `source`.
    pub source: Arc<str>,
    /// The CloudEvents `id`.
    pub id: Arc<str>,
}

/// SHA-256 of an event's content or of a component's bytes; written `sha256:…`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Digest {
    type Err = BadDigest;

    fn from_str(text: &str) -> Result<Self, BadDigest> {
        let hex = text.strip_prefix("sha256:").ok_or(BadDigest)?.as_bytes();
        if hex.len() != 64 {
            return Err(BadDigest);
        }
        let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8).ok_or(BadDigest);
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

/// A text that is not `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest is written sha256: and 64 hexadecimal digits")]
pub struct BadDigest;

/// The short name, in 16 hexadecimal digits, by which a person addresses a waiting event, a dead letter or a conflict.
/// It is derived from what the row is about, so that deciding the same thing twice names the same row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ref(pub u64);

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Ref> for String {
    fn from(value: Ref) -> Self {
        value.to_string()
    }
}

impl TryFrom<String> for Ref {
    type Error = BadRef;

    fn try_from(text: String) -> Result<Self, BadRef> {
        text.parse()
    }
}

impl std::str::FromStr for Ref {
    type Err = BadRef;

    fn from_str(text: &str) -> Result<Self, BadRef> {
        if text.len() != 16 {
            return Err(BadRef);
        }
        u64::from_str_radix(text, 16).map(Self).map_err(|_| BadRef)
    }
}

/// A text that is not 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is 16 hexadecimal digits, as the lists show it")]
pub struct BadRef;

/// Where an event was received: a configured source, one of its partitions, and the position in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The source's configured name, or `repair:MACHINE` (R7).
    pub source: Arc<str>,
    /// The partition.
    pub partition: u32,
    /// The offset: for files the byte position of the line (R10).
    pub offset: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.source, self.partition, self.offset)
    }
}
