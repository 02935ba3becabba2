//! The contract's shapes (`machine.wit`) as plain Rust, and the trait of what answers.

/// What the rules declare about themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateInfo {
    /// Its name.
    pub name: String,
    /// Nothing leaves a terminal state, except by compensation.
    pub terminal: bool,
    /// Milliseconds after which an entity that rests here is stuck.
    pub expected_within: Option<u64>,
}

/// A declared edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Where it starts.
    pub origin: Origin,
    /// What takes it.
    pub trigger: Trigger,
    /// The state it leads to.
    pub target: String,
}

/// Where an edge starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The entity has no state yet.
    Absent,
    /// Any state that is not terminal.
    AnyLive,
    /// This state.
    State(String),
}

/// What takes an edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// An event of this type.
    Event(String),
    /// A timer of this name.
    Timer(String),
    /// A refused event of this type, decided by `compensate`.
    Compensation(String),
}

/// A timer that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingTimer {
    /// Its name.
    pub name: String,
    /// When it is due, in milliseconds since the Unix epoch.
    pub due: i64,
}

/// An entity as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its key.
    pub key: Vec<u8>,
    /// Position in its own stream of events.
    pub version: u64,
    /// Count of every change, timers and compensations included.
    pub revision: u64,
    /// Its state.
    pub state: String,
    /// When it entered this state, in milliseconds since the Unix epoch, by event time.
    pub entered: i64,
    /// Layout of `data`.
    pub schema: u32,
    /// The rules' own data.
    pub data: Vec<u8>,
    /// Pending timers, by name.
    pub timers: Vec<PendingTimer>,
}

/// An event, a timer or a refused event as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// CloudEvents id; for a timer `timer:NAME:REVISION`.
    pub id: String,
    /// CloudEvents source; for a timer `seqgate`.
    pub source: String,
    /// What it is.
    pub trigger: Trigger,
    /// The entity's key.
    pub key: Vec<u8>,
    /// Its version; absent for timers.
    pub version: Option<u64>,
    /// Milliseconds since the Unix epoch; for a timer its due time.
    pub time: i64,
    /// The business intent.
    pub idempotency_key: Option<String>,
    /// Carried through.
    pub correlation_id: Option<String>,
    /// Media type of `data`.
    pub content_type: Option<String>,
    /// The envelope's extension attributes.
    pub attributes: Vec<(String, String)>,
    /// Dependencies that an earlier `waiting` named and that are met now.
    pub met: Vec<Dependency>,
    /// The payload.
    pub data: Vec<u8>,
}

/// Another entity's version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The other entity's machine.
    pub machine: String,
    /// The other entity's key.
    pub key: Vec<u8>,
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
        /// The timer's name.
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
    /// At this time, in milliseconds since the Unix epoch.
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Stable and countable, such as `insufficient-funds`.
    pub code: String,
    /// For a person.
    pub message: String,
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
    /// Understood, and not allowed in this state.
    Illegal(Reason),
    /// The data cannot be understood.
    Malformed(Reason),
    /// The rules gave no answer.
    Fault(String),
}

/// The rules gave no answer: they panicked, trapped or passed a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// Rules that can be asked, compiled or native. Pure: the same question gives the same answer.
///
/// The outer error is a [`Fault`]; what the rules refuse is an answer.
pub trait Subject {
    /// What the rules declare.
    fn describe(&self) -> Description;

    /// Decides an event or a timer.
    fn apply(&mut self, current: Option<&Entity>, event: &Event) -> Result<Result<Transition, Rejection>, Fault>;

    /// Decides what a refused event leaves behind. The event's trigger is [`Trigger::Compensation`].
    fn compensate(
        &mut self,
        current: Option<&Entity>,
        event: &Event,
        failure: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault>;
}
