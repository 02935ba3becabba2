//! Between the core's types and the contract's. Into the guest everything is borrowed; out of it everything is moved.

use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::{
    Dependency, Description, Edge, Effect, EntityView, EventView, Failure, Message, Migrated, Origin, Reason,
    Rejection, StateInfo, Transition, Trigger, TriggerView, When,
};

use super::contract::{answer, argument};
use super::fault::bounded;

/// The lists of an argument whose elements have another shape on the other side; all else is borrowed in place.
pub(super) struct Lists<'a> {
    timers: Vec<argument::PendingTimer<'a>>,
    attributes: Vec<(&'a str, &'a str)>,
    met: Vec<argument::Dependency<'a>>,
}

impl<'a> Lists<'a> {
    pub(super) fn of(entity: Option<&EntityView<'a>>, event: Option<&EventView<'a>>) -> Self {
        let timer = |(name, due): &'a (String, i64)| argument::PendingTimer { name, due: *due };
        let met = |met: &'a Dependency| argument::Dependency {
            machine: &met.entity.machine,
            key: &met.entity.key,
            version: met.version,
        };
        let attribute = |(name, value): &'a (String, String)| (name.as_str(), value.as_str());
        Self {
            timers: entity.map(|entity| entity.timers.iter().map(timer).collect()).unwrap_or_default(),
            attributes: event.map(|event| event.attributes.iter().map(attribute).collect()).unwrap_or_default(),
            met: event.map(|event| event.met.iter().map(met).collect()).unwrap_or_default(),
        }
    }

    pub(super) fn entity<'b>(&'b self, entity: &EntityView<'b>) -> argument::Entity<'b> {
        argument::Entity {
            key: entity.key,
            version: entity.version,
            revision: entity.revision,
            state: entity.state,
            entered: entity.entered,
            schema: entity.schema,
            data: entity.data,
            timers: &self.timers,
        }
    }

    pub(super) fn event<'b>(&'b self, event: &EventView<'b>) -> argument::Event<'b> {
        argument::Event {
            id: event.id,
            source: event.source,
            trigger: match event.trigger {
                TriggerView::Event(name) => argument::Trigger::Event(name),
                TriggerView::Timer(name) => argument::Trigger::Timer(name),
                TriggerView::Compensation(name) => argument::Trigger::Compensation(name),
            },
            key: event.key,
            version: event.version,
            time: event.time,
            idempotency_key: event.idempotency_key,
            correlation_id: event.correlation_id,
            content_type: event.content_type,
            attributes: &self.attributes,
            met: &self.met,
            data: event.data,
        }
    }
}

pub(super) fn failure(failure: &Failure) -> argument::Failure<'_> {
    fn reason(Reason { code, message }: &Reason) -> argument::Reason<'_> {
        argument::Reason { code, message }
    }
    match failure {
        Failure::Illegal(why) => argument::Failure::Illegal(reason(why)),
        Failure::Malformed(why) => argument::Failure::Malformed(reason(why)),
        Failure::Fault(fault) => argument::Failure::Fault(&fault.message),
    }
}

pub(super) fn transition(answer: Result<answer::Transition, answer::Rejection>) -> Result<Transition, Rejection> {
    match answer {
        Ok(transition) => Ok(Transition {
            state: transition.state,
            data: transition.data,
            effects: transition.effects.into_iter().map(effect).collect(),
            notes: transition.notes.into_iter().map(bounded).collect(),
        }),
        Err(answer::Rejection::Illegal(why)) => Err(Rejection::Illegal(reason(why))),
        Err(answer::Rejection::Malformed(why)) => Err(Rejection::Malformed(reason(why))),
        Err(answer::Rejection::Waiting(list)) => Err(Rejection::Waiting(list.into_iter().map(dependency).collect())),
    }
}

pub(super) fn migrated(answer: Result<answer::Migrated, answer::Reason>) -> Result<Migrated, Reason> {
    answer.map(|answer::Migrated { state, data }| Migrated { state, data }).map_err(reason)
}

fn reason(reason: answer::Reason) -> Reason {
    Reason { code: bounded(reason.code), message: bounded(reason.message) }
}

fn dependency(dependency: answer::Dependency) -> Dependency {
    Dependency { entity: EntityId::new(dependency.machine, dependency.key), version: dependency.version }
}

fn effect(effect: answer::Effect) -> Effect {
    match effect {
        answer::Effect::Send(message) => Effect::Send(Message {
            topic: message.topic,
            kind: message.kind,
            key: message.key,
            content_type: message.content_type,
            attributes: message.attributes,
            data: message.data,
        }),
        answer::Effect::Start(answer::StartTimer { name, when }) => Effect::Start {
            name,
            when: match when {
                answer::When::At(time) => When::At(time),
                answer::When::After(time) => When::After(time),
            },
        },
        answer::Effect::Cancel(name) => Effect::Cancel(name),
    }
}

pub(super) fn description(description: answer::Description) -> Description {
    let state = |answer::StateInfo { name, terminal, expected_within }| StateInfo { name, terminal, expected_within };
    let edge = |edge: answer::Edge| Edge {
        origin: match edge.origin {
            answer::Origin::Absent => Origin::Absent,
            answer::Origin::AnyLive => Origin::AnyLive,
            answer::Origin::State(name) => Origin::State(name),
        },
        trigger: match edge.trigger {
            answer::Trigger::Event(name) => Trigger::Event(name),
            answer::Trigger::Timer(name) => Trigger::Timer(name),
            answer::Trigger::Compensation(name) => Trigger::Compensation(name),
        },
        target: edge.target,
    };
    Description {
        name: description.name,
        version: description.version,
        schema: description.schema,
        reads: description.reads,
        states: description.states.into_iter().map(state).collect(),
        edges: description.edges.into_iter().map(edge).collect(),
    }
}
