//! What a run can be asked for at its end, and how two answers differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Display};

use crate::{ConflictId, EntityId, EventId, LetterId};

/// What was decided for one event (DESIGN, Verdicts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Verdict {
    Applied,
    Duplicate,
    Stale,
    Conflict,
    Deferred,
    Illegal,
    Malformed,
    Fault,
    Skipped,
}

/// Why an event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Reason {
    Gap,
    Dependency,
    Waiting,
    Early,
    Blocked,
    Schema,
}

/// Why an event was quarantined: the step that found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConflictReason {
    /// Step 2: a known id with other content.
    Id,
    /// Step 3: the version's history has other content.
    Version,
    /// Step 4: a waiting event or dead letter has that version with other content.
    Waiting,
    /// Step 6: its predecessor was passed, or is named by another waiting event.
    Fork,
    /// Step 8: the idempotency key belongs to another entity or type.
    Intent,
}

/// What a dead letter is about (R5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum LetterKind {
    Event,
    Timer,
    Migration,
}

/// Whether a dead letter is open, and what closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum LetterStatus {
    Open,
    Skipped,
    Compensated,
    Redriven,
    Replaced,
    Superseded,
}

/// Where a conflict stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ConflictStatus {
    Open,
    Dismissed,
}

/// What the oracle says of one act, and what a run should say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// A delivery's or repair's first verdict, with a reason exactly where it is deferred; a timer's is only `Fault`.
    Decided(Verdict, Option<Reason>),
    /// A person's command, or a timer's firing, was carried out.
    Done,
    /// A person's command failed, or a timer's conditions did not hold: nothing changed.
    Refused,
    /// A timer that the rules refused: recorded as ignored, the timer is gone (R6).
    Ignored,
}

/// One entity at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntityView {
    /// Its state; none where only skipped or ignored versions came.
    pub state: Option<String>,
    /// Position in its own stream.
    pub version: u64,
    /// Count of its changes.
    pub revision: u64,
    /// Types applied to it.
    pub seen: BTreeSet<String>,
    /// The comparable facts of its data; see [`facts`](crate::facts).
    pub data: BTreeMap<String, String>,
    /// Pending timers and their due times in milliseconds.
    pub timers: BTreeMap<String, i64>,
}

/// A waiting event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitingView {
    /// Its entity.
    pub entity: EntityId,
    /// The reason of its last decision.
    pub reason: Reason,
}

/// A dead letter, open or closed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LetterView {
    /// The entity, where it concerns one: a malformed envelope does only in causal and arrival machines.
    pub entity: Option<EntityId>,
    /// Its kind; a malformed envelope is kind event.
    pub kind: LetterKind,
    /// `Illegal`, `Malformed` or `Fault`; a refused migration is `Fault` here and is not compared.
    pub class: Verdict,
    /// Whether the code is `unknown-type`, the one code that is compared.
    pub unknown_type: bool,
    /// Open, or what closed it.
    pub status: LetterStatus,
}

/// A quarantined conflict.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConflictView {
    /// The entity that the quarantined event names.
    pub entity: EntityId,
    /// Its version; none under causal and arrival.
    pub version: Option<u64>,
    /// The step that found it.
    pub reason: ConflictReason,
    /// How often the same content came, the first time included.
    pub copies: u64,
    /// Open or dismissed.
    pub status: ConflictStatus,
}

/// An outbox message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageView {
    /// The revision that sent it.
    pub revision: u64,
    /// Its place among that revision's messages, from 0.
    pub index: u32,
    /// Its topic, which the rules' author chooses: compared only where both sides say one.
    pub topic: Option<String>,
    /// Its type, such as `refund.requested`.
    pub kind: String,
}

/// An inbox row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InboxView {
    /// The event's verdict now.
    pub verdict: Verdict,
    /// How often the id was delivered, whatever the content.
    pub deliveries: u64,
}

/// Everything that is compared at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Observed {
    /// Entities with at least one revision; an empty row kept for guarding is none.
    pub entities: BTreeMap<EntityId, EntityView>,
    /// Waiting events.
    pub waiting: BTreeMap<EventId, WaitingView>,
    /// Dead letters.
    pub letters: BTreeMap<LetterId, LetterView>,
    /// Conflicts.
    pub conflicts: BTreeMap<ConflictId, ConflictView>,
    /// Outbox messages by (revision, index).
    pub outbox: BTreeMap<EntityId, Vec<MessageView>>,
    /// Inbox rows.
    pub inbox: BTreeMap<EventId, InboxView>,
    /// Deliveries by (source, partition, present verdict); no zeros.
    pub counters: BTreeMap<(String, u32, Verdict), u64>,
}

/// Names every difference between two observations, a line each; empty where they agree.
pub fn diff(oracle: &Observed, engine: &Observed) -> Vec<String> {
    let mut out = Vec::new();
    maps("entity", &oracle.entities, &engine.entities, &mut out, EntityId::to_string, |a, b| a == b);
    maps("waiting", &oracle.waiting, &engine.waiting, &mut out, EventId::to_string, |a, b| a == b);
    maps("dead letter", &oracle.letters, &engine.letters, &mut out, LetterId::to_string, |a, b| {
        let mut b = b.clone();
        if a.kind == LetterKind::Migration {
            b.class = a.class;
        }
        *a == b
    });
    maps("conflict", &oracle.conflicts, &engine.conflicts, &mut out, ConflictId::to_string, |a, b| a == b);
    maps("outbox", &oracle.outbox, &engine.outbox, &mut out, EntityId::to_string, |a, b| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_message(a, b))
    });
    maps("inbox", &oracle.inbox, &engine.inbox, &mut out, EventId::to_string, |a, b| a == b);
    maps("counter", &oracle.counters, &engine.counters, &mut out, |(s, p, v)| format!("{s}[{p}] {v}"), |a, b| a == b);
    out
}

fn same_message(a: &MessageView, b: &MessageView) -> bool {
    let topics = a.topic.is_none() || b.topic.is_none() || a.topic == b.topic;
    topics && (a.revision, a.index, &a.kind) == (b.revision, b.index, &b.kind)
}

fn maps<K: Ord, V: Debug>(
    what: &str,
    oracle: &BTreeMap<K, V>,
    engine: &BTreeMap<K, V>,
    out: &mut Vec<String>,
    name: impl Fn(&K) -> String,
    same: impl Fn(&V, &V) -> bool,
) {
    let keys: BTreeSet<&K> = oracle.keys().chain(engine.keys()).collect();
    for key in keys {
        let name = name(key);
        match (oracle.get(key), engine.get(key)) {
            (Some(a), Some(b)) if same(a, b) => {}
            (Some(a), Some(b)) => out.push(format!("{what} {name}: should be {a:?}, is {b:?}")),
            (Some(a), None) => out.push(format!("{what} {name}: missing, should be {a:?}")),
            (None, Some(b)) => out.push(format!("{what} {name}: should not be there, is {b:?}")),
            (None, None) => {}
        }
    }
}

macro_rules! lower_case_names {
    ($($type:ty),*) => {$(
        impl Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&format!("{self:?}").to_lowercase())
            }
        }
    )*};
}
lower_case_names!(
    Verdict,
    Reason,
    ConflictReason,
    LetterKind,
    LetterStatus,
    ConflictStatus,
    crate::Ordering,
    crate::Policy
);
