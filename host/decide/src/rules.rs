//! What the core asks of a machine's rules. The shapes are those of `guest-sdk/wit/machine.wit`; who implements
//! [`Rules`] (a component, a native machine in a test) is no business of the core.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::EntityId;

/// What the rules declare about themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// The machine's name.
    pub name: String,
    /// Semantic version of the rules.
    pub version: String,
    /// The layout of an entity's data that these rules write.
    pub schema: u32,
    /// Older layouts that `migrate` reads.
    pub reads: Vec<u32>,
    /// Every state.
    pub states: Vec<StateInfo>,
    /// Every edge.
    pub edges: Vec<Edge>,
}

/// A declared state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateInfo {
    /// Its name.
    pub name: String,
    /// Nothing leaves a terminal state, except by compensation.
    pub terminal: bool,
    /// Milliseconds after which an entity that rests here is stuck.
    pub expected_within: Option<u64>,
}

/// A declared edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Where it starts.
    pub origin: Origin,
    /// What takes it.
    pub trigger: Trigger,
    /// The state it leads to.
    pub target: String,
}

/// Where an edge starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The entity has no state yet.
    Absent,
    /// Any state that is not terminal.
    AnyLive,
    /// This state.
    State(String),
}

/// What takes an edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// An event of this type.
    Event(String),
    /// A timer of this name.
    Timer(String),
    /// A refused event of this type, decided by `compensate`.
    Compensation(String),
}

/// An entity as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityView<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Position in the entity's own stream.
    pub version: u64,
    /// The host's count of changes.
    pub revision: u64,
    /// The state; an entity without one is shown to the rules as absent.
    pub state: &'a str,
    /// Since when, in milliseconds since the epoch, by event time.
    pub entered: i64,
    /// Layout of `data`.
    pub schema: u32,
    /// The rules' own data.
    pub data: &'a [u8],
    /// Pending timers by name, with their due times.
    pub timers: &'a [(String, i64)],
}

/// What kind of input the rules are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerView<'a> {
    /// An event of this type.
    Event(&'a str),
    /// A timer of this name.
    Timer(&'a str),
    /// A refused event of this type.
    Compensation(&'a str),
}

/// An event or timer as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventView<'a> {
    /// CloudEvents id; for a timer `timer:NAME:REVISION`.
    pub id: &'a str,
    /// CloudEvents source; for a timer `seqgate`.
    pub source: &'a str,
    /// What it is.
    pub trigger: TriggerView<'a>,
    /// The entity's key.
    pub key: &'a [u8],
    /// Its version; absent for timers and where the ordering has none.
    pub version: Option<u64>,
    /// Milliseconds since the epoch; for a timer its due time.
    pub time: i64,
    /// The business intent.
    pub idempotency_key: Option<&'a str>,
    /// Carried through.
    pub correlation_id: Option<&'a str>,
    /// Media type of `data`.
    pub content_type: Option<&'a str>,
    /// The envelope's extension attributes.
    pub attributes: &'a [(String, String)],
    /// Dependencies that an earlier `waiting` named and that are met now.
    pub met: &'a [Dependency],
    /// The payload.
    pub data: &'a [u8],
}

/// Another entity's version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dependency {
    /// Whose version.
    pub entity: EntityId,
    /// The version that it must have reached.
    pub version: u64,
}

/// The rules' yes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Transition {
    /// The state to go to.
    pub state: String,
    /// The entity's new data.
    pub data: Vec<u8>,
    /// What the host is to do, in order.
    pub effects: Vec<Effect>,
    /// For a person who reads the history.
    pub notes: Vec<String>,
}

/// What a transition asks of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put a message in the outbox.
    Send(Message),
    /// Start a timer, replacing a pending one of that name.
    Start {
        /// The timer's name; must be declared by an edge.
        name: String,
        /// When it is due.
        when: When,
    },
    /// Drop a pending timer, if there is one.
    Cancel(String),
}

/// When a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time, in milliseconds since the epoch.
    At(i64),
    /// This many milliseconds after the deciding event's time.
    After(u64),
}

/// A message for the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it goes.
    pub topic: String,
    /// Its CloudEvents type.
    pub kind: String,
    /// Its key; the entity's own where absent.
    pub key: Option<Vec<u8>>,
    /// Media type of `data`.
    pub content_type: String,
    /// Extension attributes.
    pub attributes: Vec<(String, String)>,
    /// The payload.
    pub data: Vec<u8>,
}

/// A stable code and a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable and countable, such as `insufficient-funds`.
    pub code: String,
    /// For a person.
    pub message: String,
}

impl Reason {
    /// A reason.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// The rules' no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Understood, and not allowed in this state.
    Illegal(Reason),
    /// The data cannot be understood.
    Malformed(Reason),
    /// Decide again when these are met.
    Waiting(Vec<Dependency>),
}

/// Why an event was refused; what `compensate` is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Refused by the rules or by the declared graph.
    Illegal(Reason),
    /// Its data cannot be understood.
    Malformed(Reason),
    /// The rules trapped, passed a limit or broke their declaration.
    Fault(Fault),
}

/// The rules' answer to `migrate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// The state, by its name in the new rules.
    pub state: String,
    /// The data in the new layout.
    pub data: Vec<u8>,
}

/// The rules did not answer, or answered what they may not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Stable and countable: `trap`, `fuel`, `memory`, `time`, `table`, `result-too-large`, `undeclared-edge`, …
    pub code: String,
    /// What happened, with the guest's function and its panic text where it gave one.
    pub message: String,
}

/// The code of a fault that is the host's and not the rules': there was no memory for an instance. It decides nothing; the
/// core answers with [`Need::Instance`](crate::world::Need::Instance), and the question is asked again later.
pub const UNAVAILABLE: &str = "unavailable";

impl Fault {
    /// A fault.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

impl From<Fault> for Reason {
    fn from(Fault { code, message }: Fault) -> Self {
        Self { code, message }
    }
}

/// One machine's rules in force. Pure: the same question gives the same answer.
///
/// The outer error is a [`Fault`]; what the rules refuse is an answer.
pub trait Rules {
    /// What they declare. Consistent: whoever loads rules has checked that (states exist, names are unique, …).
    fn description(&self) -> &Arc<Description>;

    /// Decides an event or a timer.
    fn apply(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
    ) -> Result<Result<Transition, Rejection>, Fault>;

    /// Decides what a refused event leaves behind.
    fn compensate(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
        failure: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault>;

    /// Rewrites an entity of an older layout.
    fn migrate(&mut self, entity: &EntityView<'_>) -> Result<Result<Migrated, Reason>, Fault>;
}
