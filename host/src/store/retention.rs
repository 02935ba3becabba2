//! What may be forgotten, and what is kept instead (R2, R8).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use seqgate_decide::ids::EntityId;

use super::Pending;

/// What is old enough to go, of one machine. What is decided at or before these times may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Of revisions.
    pub history: i64,
    /// Of the inbox.
    pub inbox: i64,
    /// Of idempotency keys.
    pub intents: i64,
    /// The machine's terminal states: keys of entities in other ones stay.
    pub terminal: BTreeSet<Arc<str>>,
}

/// The horizons by machine. Nothing of a machine that is not here is removed.
pub type Horizons = BTreeMap<Arc<str>, Horizon>;

/// How far a round has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Behind this row of the history.
    History(i64),
    /// Behind this id, source and machine.
    Inbox(String, String, String),
    /// Behind this key and machine.
    Intents(String, String),
}

impl Place {
    /// Where each kind of row starts, in the order of a round.
    pub fn starts() -> [Self; 3] {
        let none = String::new;
        [Self::History(0), Self::Inbox(none(), none(), none()), Self::Intents(none(), none())]
    }

    /// The table's name.
    pub const fn table(&self) -> &'static str {
        match self {
            Self::History(_) => "history",
            Self::Inbox(..) => "inbox",
            Self::Intents(..) => "intents",
        }
    }
}

/// What one step did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Rows removed.
    pub removed: u64,
    /// Entities whose base was moved.
    pub bases: u64,
    /// Where the next one goes on; `None` at the end.
    pub next: Option<Place>,
}

/// Where an entity's kept history starts: what it was after a revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// The last revision that was pruned, or may be.
    pub revision: u64,
    /// The entity's version then.
    pub version: u64,
    /// Its state then.
    pub state: Option<Arc<str>>,
    /// When it had entered that state.
    pub entered: i64,
    /// Layout of `data`.
    pub schema: u32,
    /// The rules' data then.
    pub data: Vec<u8>,
    /// Timers pending then, with due times.
    pub timers: BTreeMap<Arc<str>, i64>,
    /// When the revision was decided.
    pub through: i64,
}

/// Removing what is older than its retention.
pub trait Retention {
    /// Looks at some rows behind `from`, and removes at most 500 in one transaction.
    ///
    /// A revision goes only once a base stands at it or behind it; the entity's `pruned_through` then rises with its
    /// guard. An event's inbox row stays while it waits, is an open dead letter or an open conflict; an idempotency key
    /// while its entity is not in a terminal state.
    fn prune<'a>(&'a self, horizons: &'a Horizons, from: &'a Place, now: i64) -> Pending<'a, Step>;

    /// Where an entity's kept history starts; `None` while nothing was pruned.
    fn base<'a>(&'a self, id: &'a EntityId) -> Pending<'a, Option<Base>>;
}
