//! Entities, and what is missing before them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use seqgate_decide::ids::{Digest, EntityId, Ref};

/// Which entities; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityFilter {
    /// Of this machine.
    pub machine: Option<Arc<str>>,
    /// In this state.
    pub state: Option<Arc<str>>,
    /// Only blocked ones.
    pub blocked: bool,
}

/// An entity in a list. Those that have only waiting events, open dead letters or open conflicts are listed too, with
/// revision 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntitySummary {
    /// Its address.
    pub id: EntityId,
    /// Position in its stream.
    pub version: u64,
    /// The host's count of changes.
    pub revision: u64,
    /// `None` while only skipped or ignored versions were consumed.
    pub state: Option<Arc<str>>,
    /// When it entered this state, in event time.
    pub entered: i64,
    /// The rules that decided its last change.
    pub rules: Option<Digest>,
    /// What holds it.
    pub blocked: Option<Blocked>,
    /// How many of its events wait.
    pub deferred: u64,
    /// How many open dead letters it has.
    pub dead_letters: u64,
}

/// What holds an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// What kind of thing.
    pub by: BlockedBy,
    /// Its name.
    pub id: Ref,
    /// At this version, where it has one.
    pub version: Option<u64>,
}

/// What kind of thing holds an entity; the first that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockedBy {
    /// An open dead letter.
    DeadLetter,
    /// Its data cannot be read by the rules in force, and an event waits for that.
    Schema,
    /// A quarantined event stands at the next version, and no other does (R5). It blocks nothing.
    Conflict,
}

impl BlockedBy {
    /// Its name in output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeadLetter => "dead-letter",
            Self::Schema => "schema",
            Self::Conflict => "conflict",
        }
    }
}

/// One entity, with what its row and timers hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityDetail {
    /// As in the list.
    pub summary: EntitySummary,
    /// The guard (R7).
    pub row_version: u64,
    /// Layout of `data`.
    pub schema: u32,
    /// The rules' data.
    pub data: Vec<u8>,
    /// Types that were applied.
    pub seen: BTreeSet<Arc<str>>,
    /// Only at or below it was history pruned.
    pub pruned_through: u64,
    /// A person had its contents erased.
    pub erased: bool,
    /// Messages sent under its own key, by topic.
    pub emitted: BTreeMap<Arc<str>, u64>,
    /// Pending timers by name, with due times.
    pub timers: BTreeMap<Arc<str>, i64>,
}

/// Versions of an entity that never came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Whose.
    pub entity: EntityId,
    /// Where it stands.
    pub version: u64,
    /// The first missing version.
    pub from: u64,
    /// The last one.
    pub to: u64,
    /// Since when the event behind them waits, in host time.
    pub since: i64,
}
