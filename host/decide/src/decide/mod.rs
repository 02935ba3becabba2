//! One input in, one decision out: R3 to R6.
//!
//! [`decide`] reads a [`World`] and writes nothing; what is to be written comes back as a [`Decision`]. The caller lets the
//! world [`absorb`](World::absorb) it, so that the next decision of the batch sees it, and commits all of them together.

mod adopt;
mod arrive;
mod ask;
mod check;
mod desk;
mod judge;
mod person;
mod refuse;
mod release;
mod settle;
#[cfg(test)]
mod tests;
mod timer;

use std::sync::Arc;

use crate::envelope::{Decoded, Malformed};
use crate::event::Event;
use crate::graph::Graph;
use crate::ids::{EntityId, EventKey, Position, Ref};
use crate::machine::Machines;
use crate::rules::{Fault, Reason, Transition, TriggerView};
use crate::verdict::{DeferReason, Verdict};
use crate::world::{Entity, Need, Waiter, World};
use crate::writes::{Actor, Writes};

pub use adopt::{Erase, Import};

use desk::Desk;

/// Holds a transition against what the rules declared and against the contract's limits, as a decision does at step 10 of
/// R3, for an entity in the state `from` (or absent). Texts come back bounded.
///
/// # Errors
/// The fault that the rules are charged with.
pub fn held_against(
    graph: &Graph,
    from: Option<&str>,
    trigger: TriggerView<'_>,
    transition: Transition,
) -> Result<Transition, Fault> {
    let mut entity = Entity::absent(EntityId::new("", []));
    entity.state = from.map(Arc::from);
    check::transition(graph, &entity, trigger, transition)
}

/// What is to be decided.
#[derive(Clone, Debug)]
pub enum Input {
    /// A readable event from a source's partition, or from repair (source `repair:MACHINE`).
    Event {
        /// The event.
        event: Arc<Event>,
        /// Where it was received.
        position: Position,
        /// Its position lies below the partition's stored offset: it was decided before (R2).
        redelivered: bool,
    },
    /// An envelope that could not be read.
    Malformed {
        /// Why, and the entity that it names all the same.
        malformed: Malformed,
        /// All its bytes.
        raw: Arc<[u8]>,
        /// Where it was received.
        position: Position,
        /// As above.
        redelivered: bool,
    },
    /// An entity whose waiting events were marked ready.
    Release(EntityId),
    /// A timer that is due. The caller has seen to it that the partition was read far enough (R6).
    Timer {
        /// Whose.
        entity: EntityId,
        /// Which.
        name: Arc<str>,
    },
    /// An entity with `early` events whose deadline is over.
    Deadline(EntityId),
    /// An entity whose data has an older layout.
    Migrate(EntityId),
    /// An entity that another system hands over.
    Import {
        /// Who and why.
        by: Actor,
        /// The entity.
        import: Import,
    },
    /// A person's decision.
    Person {
        /// Who and why.
        by: Actor,
        /// What.
        action: Action,
    },
}

/// What a person decides.
#[derive(Clone, Debug)]
pub enum Action {
    /// Send a dead letter through the rules in force again.
    Redrive(DeadTarget),
    /// Pass a dead letter over.
    Skip(DeadTarget),
    /// Let the rules' `compensate` deal with a dead letter.
    Compensate(DeadTarget),
    /// Decide a corrected event in a dead letter's place.
    Replace(DeadTarget, Arc<Event>),
    /// Take a bogus waiting event out.
    DismissWaiting(EntityId, Ref),
    /// Forget an entity's contents.
    Erase(Erase),
    /// Close a conflict; its version is consumed where it is the next.
    DismissConflict(OpenConflict),
}

impl Action {
    /// Its name on record.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Redrive(_) => "dead-letter redrive",
            Self::Skip(_) => "dead-letter skip",
            Self::Compensate(_) => "dead-letter compensate",
            Self::Replace(..) => "dead-letter replace",
            Self::DismissWaiting(..) => "deferred dismiss",
            Self::Erase(_) => "entity erase",
            Self::DismissConflict(_) => "conflict dismiss",
        }
    }
}

/// The dead letter that a person means.
#[derive(Clone, Debug)]
pub struct DeadTarget {
    /// Its name.
    pub id: Ref,
    /// Its entity, where it has one.
    pub entity: Option<EntityId>,
    /// For a malformed envelope: where it was received, and what its bytes decode to now.
    pub envelope: Option<(Position, Decoded)>,
}

/// A quarantined event that a person means.
#[derive(Clone, Debug)]
pub struct OpenConflict {
    /// Its name.
    pub id: Ref,
    /// The event.
    pub event: Arc<Event>,
    /// Where it was first received, if it was.
    pub position: Option<Position>,
}

/// What was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What became of the input.
    pub outcome: Outcome,
    /// What became of every event that was decided, the input first, then what it released.
    pub decided: Vec<(EventKey, Outcome)>,
    /// The entity that was decided, as it is afterwards; `None` when nothing of it changed.
    pub entity: Option<Entity>,
    /// All other rows. Its `entities` are left empty: the caller fills them from the world, once per batch.
    pub writes: Writes,
    /// Entities with events that were marked ready: each wants an [`Input::Release`] in a transaction of its own.
    pub ready: Vec<EntityId>,
    /// What other entities have to know: who waits for them (`true`), and who no longer does.
    pub waits: Vec<(EntityId, Waiter, bool)>,
}

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The verdict; for timers, migrations and releases `applied` means that something changed.
    pub verdict: Verdict,
    /// Why it waits, if it does.
    pub defer: Option<DeferReason>,
    /// A stable code for a refusal, a conflict, or a remark.
    pub code: Option<String>,
    /// For a person.
    pub message: Option<String>,
}

impl Outcome {
    pub(crate) fn plain(verdict: Verdict) -> Self {
        Self { verdict, defer: None, code: None, message: None }
    }

    pub(crate) fn coded(verdict: Verdict, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { verdict, defer: None, code: Some(code.into()), message: Some(message.into()) }
    }

    pub(crate) fn deferred(reason: DeferReason) -> Self {
        Self { verdict: Verdict::Deferred, defer: Some(reason), code: None, message: None }
    }

    /// The word that goes with the verdict: a deferral's reason, or the code.
    pub fn reason(&self) -> Option<String> {
        self.defer.map(|r| r.name().to_owned()).or_else(|| self.code.clone())
    }
}

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Load this into the world, then ask again.
    Need(Need),
    /// A person's decision that cannot be carried out; nothing changes.
    Refused(Reason),
}

impl From<Need> for Undecided {
    fn from(need: Need) -> Self {
        Self::Need(need)
    }
}

fn refused<T>(code: &str, message: impl Into<String>) -> Result<T, Undecided> {
    Err(Undecided::Refused(Reason::new(code, message)))
}

/// Decides one input.
///
/// `now` is host time in milliseconds since the epoch; it is recorded and compared with deadlines, and decides nothing else.
///
/// # Errors
/// [`Undecided::Need`] when the world lacks a row, or the host an instance of the rules; [`Undecided::Refused`] for a person's decision that is not possible, and
/// for events of machines that are not configured (decoding lets none through).
pub fn decide(world: &World, machines: &mut Machines, input: &Input, now: i64) -> Result<Decision, Undecided> {
    let decision = decide_once(world, machines, input, now);
    match machines.take_unavailable() {
        Some(why) => Err(Undecided::Need(Need::Instance(why))),
        None => decision,
    }
}

fn decide_once(world: &World, machines: &mut Machines, input: &Input, now: i64) -> Result<Decision, Undecided> {
    match input {
        Input::Event { event, position, redelivered: true } => arrive::again(world, Some(&event.key), position),
        Input::Malformed { position, redelivered: true, .. } => arrive::again(world, None, position),
        Input::Event { event, position, redelivered: false } => {
            let mut desk = Desk::open(world, machines, &event.entity, now)?;
            let outcome = arrive::event(&mut desk, event, position)?;
            Ok(desk.close(outcome))
        }
        Input::Malformed { malformed, raw, position, redelivered: false } => {
            arrive::malformed(world, machines, malformed, raw, position, now)
        }
        Input::Release(entity) => {
            let mut desk = Desk::open(world, machines, entity, now)?;
            release::ready(&mut desk)?;
            Ok(desk.close_quietly())
        }
        Input::Deadline(entity) => {
            let mut desk = Desk::open(world, machines, entity, now)?;
            release::overdue(&mut desk)?;
            Ok(desk.close_quietly())
        }
        Input::Timer { entity, name } => {
            let mut desk = Desk::open(world, machines, entity, now)?;
            let outcome = timer::fire(&mut desk, name)?;
            Ok(desk.close(outcome))
        }
        Input::Migrate(entity) => {
            let mut desk = Desk::open(world, machines, entity, now)?;
            let outcome = timer::migrate(&mut desk)?;
            Ok(desk.close(outcome))
        }
        Input::Import { by, import } => adopt::import(world, machines, by, import, now),
        Input::Person { by, action } => person::decide(world, machines, by, action, now),
    }
}

impl World {
    /// Takes a decision in, so that the next one sees it.
    pub fn absorb(&mut self, decision: &mut Decision) {
        if let Some(entity) = decision.entity.take() {
            self.put_entity(entity);
        }
        for (target, waiter, add) in &decision.waits {
            match self.entities.get_mut(target) {
                Some(entity) => {
                    entity.waiters.retain(|w| w != waiter);
                    if *add {
                        entity.waiters.push(waiter.clone());
                    }
                }
                None if !add => self.gone.push((target.clone(), waiter.clone())),
                None => debug_assert!(false, "whoever waits for an entity has looked at it"),
            }
        }
        desk::absorb_rows(self, &decision.writes);
    }
}
