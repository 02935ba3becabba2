//! What goes in and out of a decision's transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use seqgate_decide::ids::{Digest, EntityId, EventKey, Ref};
use seqgate_decide::world::Need;
use seqgate_decide::writes::Writes;

/// What a batch has to know. Sets, because keys are loaded once and in the order in which rows are locked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// Entities with all that stands around them.
    pub entities: BTreeSet<EntityId>,
    /// Inbox rows, and what is quarantined under their keys.
    pub inbox: BTreeSet<EventKey>,
    /// History rows by the version that they consumed.
    pub history: BTreeSet<(EntityId, u64)>,
    /// Idempotency keys, by machine.
    pub intents: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl Wants {
    /// Adds what the core asked for.
    pub fn add(&mut self, need: Need) {
        match need {
            Need::Entity(id) => drop(self.entities.insert(id)),
            Need::Inbox(key) => drop(self.inbox.insert(key)),
            Need::History(id, version) => drop(self.history.insert((id, version))),
            Need::Intent(machine, key) => drop(self.intents.insert((machine, key))),
            Need::Instance(_) => {}
        }
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Extend<Need> for Wants {
    fn extend<T: IntoIterator<Item = Need>>(&mut self, needs: T) {
        needs.into_iter().for_each(|need| self.add(need));
    }
}

impl FromIterator<Need> for Wants {
    fn from_iter<T: IntoIterator<Item = Need>>(needs: T) -> Self {
        let mut wants = Self::default();
        wants.extend(needs);
        wants
    }
}

/// One decision's transaction.
#[derive(Clone, Debug)]
pub struct Commit<'a> {
    /// The rows.
    pub writes: &'a Writes,
    /// `row_version` of every entity that was read, as loaded; 0 for absent ones (R7). Entities in `writes` are guarded
    /// by their own `row_version` also when they are not named here.
    pub guards: BTreeMap<EntityId, u64>,
    /// By machine, the activation that decided; 0 where none was in force (R8).
    pub activations: BTreeMap<Arc<str>, u64>,
    /// The partition whose offset moves.
    pub fence: Option<Fence>,
    /// Settles an unknown outcome where no offset moves.
    pub operation: Option<OperationId>,
    /// Activations under which this is the partition's first batch, by machine (R8); recorded with the fence's expected
    /// offset. One that is recorded already stays as it is.
    pub switches: BTreeMap<Arc<str>, u64>,
    /// Host time.
    pub at: i64,
}

impl<'a> Commit<'a> {
    /// These rows, without fence, guards or activations.
    pub fn new(writes: &'a Writes, at: i64) -> Self {
        Self {
            writes,
            guards: BTreeMap::new(),
            activations: BTreeMap::new(),
            fence: None,
            operation: None,
            switches: BTreeMap::new(),
            at,
        }
    }

    /// By what an unknown outcome of this commit is settled.
    pub fn transaction(&self) -> Transaction {
        Transaction { fence: self.fence.clone(), operation: self.operation }
    }
}

/// A partition's row as its owner left it, and as this transaction leaves it (R7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The source's configured name.
    pub source: Arc<str>,
    /// The partition.
    pub partition: u32,
    /// The owner's epoch, from [`Ownership`].
    pub epoch: u64,
    /// The offset before.
    pub expected: u64,
    /// The offset afterwards: the next to read. Where it equals `expected`, the commit needs an operation id as well.
    pub next: u64,
    /// Deliveries that this batch took (G6).
    pub received: u64,
}

/// Names a transaction that moves no offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId(pub [u8; 16]);

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A transaction whose outcome is to be settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its fence.
    pub fence: Option<Fence>,
    /// Its operation id, which is asked first.
    pub operation: Option<OperationId>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// All of it is there.
    Committed,
    /// Nothing of it is there.
    NotCommitted,
}

/// A partition that was taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Rises with every owner; from 1.
    pub epoch: u64,
    /// The next offset to read: the truth (G2).
    pub offset: u64,
}

/// Which file a source is read from (R10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
    /// SHA-256 of the first `head` bytes.
    pub digest: Digest,
    /// How many bytes the digest covers: 4 KiB, or fewer in a file that was shorter.
    pub head: u64,
}

/// A timer to fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueTimer {
    /// Whose.
    pub entity: EntityId,
    /// Its name.
    pub name: Arc<str>,
    /// When it was due.
    pub due: i64,
}

/// An early event to refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlyDue {
    /// Whose.
    pub entity: EntityId,
    /// The waiting event.
    pub event: Ref,
    /// When it was due.
    pub deadline: i64,
}
