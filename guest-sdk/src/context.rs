//! What rules may know beside the entity's data and the event's payload.

use std::cell::RefCell;
use std::fmt;

use sha2::{Digest, Sha256};

use crate::bindings::exports::seqgate::machine::rules as wit;
use crate::machine::Machine;
use crate::refusal::{Dependency, Refusal};
use crate::step::Step;
use crate::table::Table;
use crate::timestamp::Timestamp;

/// The deciding event's envelope and the entity's position. There is nothing else to know: no clock, no randomness, no
/// other entity.
pub struct Context<'a, M: Table> {
    state: Option<M::State>,
    entity: Option<&'a wit::Entity>,
    event: &'a wit::Event,
    notes: RefCell<Vec<String>>,
}

impl<'a, M: Table> Context<'a, M> {
    pub(crate) fn new(state: Option<M::State>, entity: Option<&'a wit::Entity>, event: &'a wit::Event) -> Self {
        Self { state, entity, event, notes: RefCell::default() }
    }

    /// The entity's state; `None` where it does not exist yet.
    pub fn state(&self) -> Option<M::State> {
        self.state
    }

    /// When the entity entered its state, by the deciding events' times.
    pub fn entered(&self) -> Option<Timestamp> {
        self.entity.map(|entity| Timestamp::from_millis(entity.entered))
    }

    /// The entity's position in its own stream of events; 0 where it does not exist yet.
    pub fn entity_version(&self) -> u64 {
        self.entity.map_or(0, |entity| entity.version)
    }

    /// The host's count of every change of the entity; 0 where it does not exist yet.
    pub fn revision(&self) -> u64 {
        self.entity.map_or(0, |entity| entity.revision)
    }

    /// When a pending timer is due; `None` where it is not pending.
    pub fn due(&self, timer: M::Timer) -> Option<Timestamp> {
        let name = crate::Named::name(timer);
        let timers = self.entity.map_or(&[][..], |entity| &entity.timers);
        timers.iter().find(|timer| timer.name == name).map(|timer| Timestamp::from_millis(timer.due))
    }

    /// The entity's key.
    pub fn key(&self) -> &[u8] {
        &self.event.key
    }

    /// The event's id; for a timer one that the host makes, unique for the entity.
    pub fn event_id(&self) -> &str {
        &self.event.id
    }

    /// The event's source.
    pub fn event_source(&self) -> &str {
        &self.event.source
    }

    /// The event's type, or the timer's name.
    pub fn event_type(&self) -> &str {
        match &self.event.trigger {
            wit::Trigger::Event(name) | wit::Trigger::Timer(name) | wit::Trigger::Compensation(name) => name,
        }
    }

    /// The event's version; `None` for timers, and where the machine's ordering has none.
    pub fn event_version(&self) -> Option<u64> {
        self.event.version
    }

    /// The event's time, which is the rules' only now: recorded, and the same in every replay. A timer's is its due
    /// time.
    pub fn time(&self) -> Timestamp {
        Timestamp::from_millis(self.event.time)
    }

    /// The business intent.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.event.idempotency_key.as_deref()
    }

    /// What the event belongs to; carried through to the messages by the host.
    pub fn correlation_id(&self) -> Option<&str> {
        self.event.correlation_id.as_deref()
    }

    /// Media type of the payload.
    pub fn content_type(&self) -> Option<&str> {
        self.event.content_type.as_deref()
    }

    /// An extension attribute of the envelope.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.event.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Whether an earlier [`Refusal::Waiting`] named this dependency, or an older version of it, and it is met now.
    pub fn met(&self, dependency: &Dependency) -> bool {
        self.event.met.iter().any(|met| {
            met.machine == dependency.machine && met.key == dependency.key && met.version >= dependency.version
        })
    }

    /// The payload as it came.
    pub fn data(&self) -> &[u8] {
        &self.event.data
    }

    /// An id for the `n`-th thing that follows from this event: the same whenever and wherever this event is decided,
    /// and another for every other event, entity, machine and `n`.
    ///
    /// It is a UUID of version 8 (RFC 9562, 5.8), made from SHA-256 over the length-prefixed machine, key, source, id
    /// and `n`.
    pub fn derive_id(&self, n: u64) -> String {
        let event = self.event;
        let mut hash = Sha256::new();
        for part in [M::NAME.as_bytes(), &event.key, event.source.as_bytes(), event.id.as_bytes(), &n.to_be_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&hash.finalize()[..16]);
        uuid[6] = uuid[6] & 0x0f | 0x80;
        uuid[8] = uuid[8] & 0x3f | 0x80;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let groups = [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]];
        groups.map(hex).join("-")
    }

    /// The refusal of an input that has no edge from here: illegal, `wrong-state`.
    pub fn wrong_state(&self) -> Refusal {
        let input = self.event_type();
        match self.state {
            Some(state) => {
                Refusal::illegal("wrong-state", format_args!("{input} in state {}", crate::Named::name(state)))
            }
            None => Refusal::illegal("wrong-state", format_args!("{input} before there is a {}", M::NAME)),
        }
    }

    /// Adds a line to the history; [`note!`](crate::note) is the convenient way.
    pub fn note(&self, line: impl fmt::Display) {
        self.notes.borrow_mut().push(line.to_string());
    }

    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes.into_inner()
    }
}

impl<M: Machine> Context<'_, M> {
    /// Yes: the entity goes to `state` (or stays there) with this data. Effects are added to the step.
    pub fn to(&self, state: M::State, data: M::Data) -> Step<M> {
        Step { state, data, effects: Vec::new() }
    }
}

/// A rule's log line: lands in the history beside the transition, for the person who reads it. Arguments as for
/// `format!`, after the context.
///
/// What is noted before a refusal is lost with it; a refusal has a text of its own.
///
/// ```
/// use seqgate_guest::{Context, Machine, note};
///
/// fn remark<M: Machine>(late: u32, cx: &Context<M>) {
///     note!(cx, "paid {late} days late");
/// }
/// ```
#[macro_export]
macro_rules! note {
    ($context:expr, $($line:tt)+) => {
        $context.note(::core::format_args!($($line)+))
    };
}
