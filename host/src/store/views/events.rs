//! An event by its id.

use std::sync::Arc;

use seqgate_decide::ids::{Digest, EntityId, EventKey, Position, Ref};
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::writes::{Cause, DeadStatus};

/// An inbox row, and where its content stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventItem {
    /// Machine, source and id.
    pub key: EventKey,
    /// The entity that it named.
    pub entity: EntityId,
    /// Its type.
    pub kind: Arc<str>,
    /// Its version.
    pub version: Option<u64>,
    /// Its content, by bytes.
    pub digest: Digest,
    /// Its verdict now.
    pub verdict: Verdict,
    /// Why.
    pub reason: Option<String>,
    /// First delivery; `None` for one that a person put in another's place.
    pub first: Option<Position>,
    /// Last delivery.
    pub last: Option<Position>,
    /// How often it was delivered.
    pub deliveries: u64,
    /// Host time of the first.
    pub received: i64,
    /// Where its content stands; a duplicate's stands nowhere.
    pub standing: Vec<Standing>,
}

/// A row that holds an event's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A revision of its entity.
    History {
        /// Which one.
        revision: u64,
        /// The entity's version afterwards.
        version: u64,
        /// Why it was written.
        cause: Cause,
        /// Who decided.
        rules: Digest,
    },
    /// It waits.
    Waiting {
        /// Its name.
        id: Ref,
        /// Why.
        reason: DeferReason,
        /// Since when.
        since: i64,
    },
    /// A dead letter.
    DeadLetter {
        /// Its name.
        id: Ref,
        /// How it stands.
        status: DeadStatus,
        /// Why it was refused.
        code: String,
    },
    /// Quarantined.
    Conflict {
        /// Its name.
        id: Ref,
        /// Why.
        code: String,
    },
}
