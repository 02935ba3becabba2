//! The rules' yes: where the entity goes, and what follows from that.

use std::time::Duration;

use serde::Serialize;

use crate::bindings::exports::seqgate::machine::rules as wit;
use crate::machine::Machine;
use crate::table::Named;
use crate::timestamp::Timestamp;

/// A transition and its effects, in order. Made by [`Context::to`](crate::Context::to).
///
/// All of it takes effect in one transaction with the entity's change, or none.
#[must_use = "a step does nothing until it is returned"]
pub struct Step<M: Machine> {
    pub(crate) state: M::State,
    pub(crate) data: M::Data,
    pub(crate) effects: Vec<wit::Effect>,
}

impl<M: Machine> Step<M> {
    /// Starts a timer, in place of a pending one of that name.
    pub fn start(mut self, timer: M::Timer, when: When) -> Self {
        let when = match when {
            When::At(time) => wit::When::At(time.millis()),
            When::After(length) => wit::When::After(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)),
        };
        self.effects.push(wit::Effect::Start(wit::StartTimer { name: timer.name().to_owned(), when }));
        self
    }

    /// Drops a pending timer, if there is one. A terminal state drops all by itself.
    pub fn cancel(mut self, timer: M::Timer) -> Self {
        self.effects.push(wit::Effect::Cancel(timer.name().to_owned()));
        self
    }

    /// Puts a message in the outbox. An entity's messages leave in the order in which they were sent.
    pub fn send(mut self, message: Message) -> Self {
        self.effects.push(wit::Effect::Send(message.0));
        self
    }
}

/// When a timer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time; at once where it has passed.
    At(Timestamp),
    /// This long after the deciding event's time, in whole milliseconds.
    After(Duration),
}

/// A timer that is due at a time.
pub const fn at(time: Timestamp) -> When {
    When::At(time)
}

/// A timer that is due so long after the deciding event's time.
pub const fn after(length: Duration) -> When {
    When::After(length)
}

/// A message for the outbox, under the entity's own key unless it is given another.
#[derive(Clone, Debug)]
pub struct Message(wit::Message);

impl Message {
    /// A message of a CloudEvents type, with a JSON payload.
    ///
    /// # Panics
    /// Where serde_json cannot write the payload: a map whose keys are no strings, or a `Serialize` that fails.
    pub fn json(topic: &str, kind: &str, payload: &impl Serialize) -> Self {
        Self::bytes(topic, kind, "application/json", to_json(payload))
    }

    /// A message of a CloudEvents type, with any payload.
    pub fn bytes(topic: &str, kind: &str, content_type: &str, payload: Vec<u8>) -> Self {
        Self(wit::Message {
            topic: topic.to_owned(),
            kind: kind.to_owned(),
            key: None,
            content_type: content_type.to_owned(),
            attributes: Vec::new(),
            data: payload,
        })
    }

    /// Under another key, in place of the entity's own: 1 to 512 bytes.
    pub fn key(mut self, key: impl Into<Vec<u8>>) -> Self {
        self.0.key = Some(key.into());
        self
    }

    /// With an extension attribute, whose name is lower-case letters and digits (CloudEvents 1.0, 3.1).
    pub fn attribute(mut self, name: &str, value: impl Into<String>) -> Self {
        self.0.attributes.push((name.to_owned(), value.into()));
        self
    }
}

pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    match serde_json::to_vec(value) {
        Ok(json) => json,
        Err(error) => panic!("the rules' own data cannot be written as JSON: {error}"),
    }
}
