//! An event as the core decides it, and its stored form.

use std::sync::Arc;

use crate::envelope::depends::{self, DependsOn};
use crate::ids::{Digest, EntityId, EventKey};
use crate::rules::Reason;

/// A readable event: the envelope of R1, decoded, with its digests (R2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Machine, CloudEvents source and id.
    pub key: EventKey,
    /// Whom it happened to.
    pub entity: EntityId,
    /// The CloudEvents `type`.
    pub kind: Arc<str>,
    /// Its position in the entity's stream; `None` where the machine's ordering uses none.
    pub version: Option<u64>,
    /// The version it follows, where the stream is filtered.
    pub previous: Option<u64>,
    /// Milliseconds since the epoch: the envelope's, else the record's, else the receipt's.
    pub time: i64,
    /// The business intent.
    pub idempotency_key: Option<Arc<str>>,
    /// What must have happened before.
    pub depends_on: Vec<DependsOn>,
    /// Orders what becomes free at the same time, in causal machines.
    pub logical_time: Option<u64>,
    /// Media type of `data`.
    pub content_type: Option<Arc<str>>,
    /// Every other attribute, by name, as text: `correlationid`, `causationid`, `traceparent`, extensions.
    pub attributes: Vec<(String, String)>,
    /// The payload's exact bytes.
    pub data: Arc<[u8]>,
    /// SHA-256 over machine, key, type, version and data bytes.
    pub digest: Digest,
    /// The same over the data's value, where it is JSON; equal to `digest` otherwise.
    pub value_digest: Digest,
}

impl Event {
    /// Whether both events say the same: equal bytes, or JSON of equal value (R2).
    pub fn same_content(&self, digest: &Digest, value_digest: &Digest) -> bool {
        self.digest == *digest || self.value_digest == *value_digest
    }

    /// The version that this one follows; 0 is "follows nothing".
    pub fn predecessor(&self) -> u64 {
        self.previous.unwrap_or_else(|| self.version.unwrap_or(1).saturating_sub(1))
    }

    /// An attribute's text.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// `dependson` as it was written, for the store.
    pub fn depends_on_text(&self) -> Option<String> {
        depends::to_text(&self.depends_on)
    }

    /// Reads back `dependson` as [`Event::depends_on_text`] wrote it.
    pub fn parse_depends_on(text: &str) -> Result<Vec<DependsOn>, Reason> {
        depends::parse(text)
    }
}
