//! Between the bindings' types and the scenarios' plain ones.

use seqgate_scenario as plain;

use crate::bindings::exports::seqgate::machine::rules as wit;

pub(super) fn description(from: wit::Description) -> plain::Description {
    plain::Description {
        name: from.name,
        version: from.version,
        schema: from.schema,
        reads: from.reads,
        states: from.states.into_iter().map(state).collect(),
        edges: from.edges.into_iter().map(edge).collect(),
    }
}

fn state(from: wit::StateInfo) -> plain::StateInfo {
    plain::StateInfo { name: from.name, terminal: from.terminal, expected_within: from.expected_within }
}

fn edge(from: wit::Edge) -> plain::Edge {
    let origin = match from.origin {
        wit::Origin::Absent => plain::Origin::Absent,
        wit::Origin::AnyLive => plain::Origin::AnyLive,
        wit::Origin::State(name) => plain::Origin::State(name),
    };
    let trigger = match from.trigger {
        wit::Trigger::Event(name) => plain::Trigger::Event(name),
        wit::Trigger::Timer(name) => plain::Trigger::Timer(name),
        wit::Trigger::Compensation(name) => plain::Trigger::Compensation(name),
    };
    plain::Edge { origin, trigger, target: from.target }
}

pub(super) fn entity(from: &plain::Entity) -> wit::Entity {
    let timer = |timer: &plain::PendingTimer| wit::PendingTimer { name: timer.name.clone(), due: timer.due };
    wit::Entity {
        key: from.key.clone(),
        version: from.version,
        revision: from.revision,
        state: from.state.clone(),
        entered: from.entered,
        schema: from.schema,
        data: from.data.clone(),
        timers: from.timers.iter().map(timer).collect(),
    }
}

pub(super) fn event(from: &plain::Event) -> wit::Event {
    let trigger = match from.trigger.clone() {
        plain::Trigger::Event(name) => wit::Trigger::Event(name),
        plain::Trigger::Timer(name) => wit::Trigger::Timer(name),
        plain::Trigger::Compensation(name) => wit::Trigger::Compensation(name),
    };
    let met =
        |d: &plain::Dependency| wit::Dependency { machine: d.machine.clone(), key: d.key.clone(), version: d.version };
    wit::Event {
        id: from.id.clone(),
        source: from.source.clone(),
        trigger,
        key: from.key.clone(),
        version: from.version,
        time: from.time,
        idempotency_key: from.idempotency_key.clone(),
        correlation_id: from.correlation_id.clone(),
        content_type: from.content_type.clone(),
        attributes: from.attributes.clone(),
        met: from.met.iter().map(met).collect(),
        data: from.data.clone(),
    }
}

pub(super) fn failure(from: &plain::Failure) -> wit::Failure {
    let reason = |r: &plain::Reason| wit::Reason { code: r.code.clone(), message: r.message.clone() };
    match from {
        plain::Failure::Illegal(why) => wit::Failure::Illegal(reason(why)),
        plain::Failure::Malformed(why) => wit::Failure::Malformed(reason(why)),
        plain::Failure::Fault(message) => wit::Failure::Fault(message.clone()),
    }
}

pub(super) fn transition(from: wit::Transition) -> plain::Transition {
    plain::Transition {
        state: from.state,
        data: from.data,
        effects: from.effects.into_iter().map(effect).collect(),
        notes: from.notes,
    }
}

fn effect(from: wit::Effect) -> plain::Effect {
    match from {
        wit::Effect::Send(message) => plain::Effect::Send(plain::Message {
            topic: message.topic,
            kind: message.kind,
            key: message.key,
            content_type: message.content_type,
            attributes: message.attributes,
            data: message.data,
        }),
        wit::Effect::Start(start) => plain::Effect::Start {
            name: start.name,
            when: match start.when {
                wit::When::At(at) => plain::When::At(at),
                wit::When::After(length) => plain::When::After(length),
            },
        },
        wit::Effect::Cancel(name) => plain::Effect::Cancel(name),
    }
}

pub(super) fn rejection(from: wit::Rejection) -> plain::Rejection {
    let reason = |r: wit::Reason| plain::Reason { code: r.code, message: r.message };
    match from {
        wit::Rejection::Illegal(why) => plain::Rejection::Illegal(reason(why)),
        wit::Rejection::Malformed(why) => plain::Rejection::Malformed(reason(why)),
        wit::Rejection::Waiting(on) => plain::Rejection::Waiting(
            on.into_iter().map(|d| plain::Dependency { machine: d.machine, key: d.key, version: d.version }).collect(),
        ),
    }
}
