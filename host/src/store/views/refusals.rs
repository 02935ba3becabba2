//! Dead letters and conflicts.

use std::sync::Arc;

use seqgate_decide::event::Event;
use seqgate_decide::ids::{EntityId, EventKey, Position, Ref};
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::DeadKind;
use seqgate_decide::writes::{Actor, DeadRow, DeadStatus};

/// Which dead letters; what is `None` does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadFilter {
    /// Of this machine.
    pub machine: Option<Arc<str>>,
    /// That stand so.
    pub status: Option<DeadStatus>,
    /// Illegal, malformed or fault.
    pub class: Option<Verdict>,
}

/// A dead letter in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadItem {
    /// Its name.
    pub id: Ref,
    /// What it is about.
    pub kind: DeadKind,
    /// Illegal, malformed or fault.
    pub class: Verdict,
    /// Stable code.
    pub code: String,
    /// For a person.
    pub message: String,
    /// The entity, where it could be told.
    pub entity: Option<EntityId>,
    /// The event, where its envelope could be read.
    pub event: Option<EventKey>,
    /// The event's type.
    pub event_kind: Option<Arc<str>>,
    /// The event's version.
    pub version: Option<u64>,
    /// Where it was first received.
    pub position: Option<Position>,
    /// Whether it holds its entity's later events while it is open.
    pub blocks: bool,
    /// How it stands.
    pub status: DeadStatus,
    /// How often it was decided.
    pub attempts: u32,
    /// Host time of the first refusal.
    pub since: i64,
    /// Host time of the last change.
    pub changed: i64,
}

/// A dead letter, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadDetail {
    /// Its name.
    pub id: Ref,
    /// Everything.
    pub row: DeadRow,
    /// Host time of the last change.
    pub changed: i64,
}

/// A quarantined event in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictItem {
    /// Its name.
    pub id: Ref,
    /// Machine, source and id.
    pub key: EventKey,
    /// The entity that it named.
    pub entity: EntityId,
    /// Its type.
    pub kind: Arc<str>,
    /// Its version.
    pub version: Option<u64>,
    /// `id`, `version`, `waiting`, `fork` or `intent`.
    pub code: String,
    /// What it conflicts with.
    pub message: String,
    /// How often it came.
    pub copies: u64,
    /// Closed by a person.
    pub dismissed: Option<Actor>,
    /// Host time of the first.
    pub since: i64,
    /// Where it was first received.
    pub position: Option<Position>,
}

/// A quarantined event, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictDetail {
    /// As in the list.
    pub item: ConflictItem,
    /// The event.
    pub event: Arc<Event>,
}
