//! The deliveries of a file: where each lies, which partition it goes to, and which event it is.

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

/// A line of a file of events.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The position of its first byte.
    pub offset: u64,
    /// The position behind it.
    pub next: u64,
    /// Its partition (R10.1).
    pub partition: u32,
    /// `source`, `id` and machine; `None` where the line is no event.
    pub event: Option<EventKey>,
}

/// What names an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKey {
    /// CloudEvents `id`.
    pub id: String,
    /// CloudEvents `source`.
    pub source: String,
    /// The machine.
    pub machine: String,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    source: Cow<'a, str>,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    #[serde(borrow)]
    machine: Option<Cow<'a, str>>,
}

/// Reads a file's deliveries.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path, partitions: u32, machine: Option<&str>) -> std::io::Result<Vec<Delivery>> {
    let bytes = std::fs::read(path)?;
    let mut offset = 0;
    let lines = bytes.split_inclusive(|b| *b == b'\n').map(|line| {
        let next = offset + line.len() as u64;
        let head = serde_json::from_slice::<Head<'_>>(line).ok();
        let named = head.and_then(|h| Some((h.machine.as_deref().or(machine)?.to_owned(), h)));
        let partition = named.as_ref().map_or(0, |(machine, head)| partition_of(machine, &head.subject, partitions));
        let event = named.map(|(machine, head)| EventKey {
            id: head.id.into_owned(),
            source: head.source.into_owned(),
            machine,
        });
        let delivery = Delivery { offset, next, partition, event };
        offset = next;
        delivery
    });
    Ok(lines.collect())
}

/// R10.1.
fn partition_of(machine: &str, key: &str, n: u32) -> u32 {
    let mut hash = Sha256::new();
    hash.update(machine.as_bytes());
    hash.update([0]);
    hash.update(key.as_bytes());
    let bytes: [u8; 32] = hash.finalize().into();
    let head = bytes[..8].iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
    u32::try_from(head % u64::from(n)).unwrap_or_default()
}
