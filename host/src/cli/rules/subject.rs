//! A component as the subject of scenarios.

use std::sync::Arc;

use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::{
    self, Dependency, EntityView, EventView, Failure, Fault, Reason, Rejection, Rules as _, Transition, TriggerView,
};
use seqgate_scenario as plain;

use crate::rules::{LoadedRules, Session};

/// A component that stories are told to.
pub struct Component(Session);

impl Component {
    /// These rules.
    pub fn new(rules: &Arc<LoadedRules>) -> Self {
        Self(rules.open())
    }
}

type Asked = Result<Result<plain::Transition, plain::Rejection>, plain::Fault>;

impl plain::Subject for Component {
    fn describe(&self) -> plain::Description {
        let from = self.0.description();
        plain::Description {
            name: from.name.clone(),
            version: from.version.clone(),
            schema: from.schema,
            reads: from.reads.clone(),
            states: from.states.iter().map(state).collect(),
            edges: from.edges.iter().map(edge).collect(),
        }
    }

    fn apply(&mut self, current: Option<&plain::Entity>, event: &plain::Event) -> Asked {
        ask(current, event, |current, event| self.0.apply(current, event))
    }

    fn compensate(&mut self, current: Option<&plain::Entity>, event: &plain::Event, failure: &plain::Failure) -> Asked {
        let reason = |r: &plain::Reason| Reason::new(&*r.code, &*r.message);
        let failure = match failure {
            plain::Failure::Illegal(why) => Failure::Illegal(reason(why)),
            plain::Failure::Malformed(why) => Failure::Malformed(reason(why)),
            plain::Failure::Fault(message) => Failure::Fault(Fault::new("trap", &**message)),
        };
        ask(current, event, |current, event| self.0.compensate(current, event, &failure))
    }
}

type Answer = Result<Result<Transition, Rejection>, Fault>;

fn ask(
    current: Option<&plain::Entity>,
    event: &plain::Event,
    answer: impl FnOnce(Option<&EntityView<'_>>, &EventView<'_>) -> Answer,
) -> Asked {
    let timers: Vec<(String, i64)> =
        current.map(|c| c.timers.iter().map(|t| (t.name.clone(), t.due)).collect()).unwrap_or_default();
    let met: Vec<Dependency> = event.met.iter().map(dependency).collect();
    let entity = current.map(|c| EntityView {
        key: &c.key,
        version: c.version,
        revision: c.revision,
        state: &c.state,
        entered: c.entered,
        schema: c.schema,
        data: &c.data,
        timers: &timers,
    });
    let event = EventView {
        id: &event.id,
        source: &event.source,
        trigger: match &event.trigger {
            plain::Trigger::Event(name) => TriggerView::Event(name),
            plain::Trigger::Timer(name) => TriggerView::Timer(name),
            plain::Trigger::Compensation(name) => TriggerView::Compensation(name),
        },
        key: &event.key,
        version: event.version,
        time: event.time,
        idempotency_key: event.idempotency_key.as_deref(),
        correlation_id: event.correlation_id.as_deref(),
        content_type: event.content_type.as_deref(),
        attributes: &event.attributes,
        met: &met,
        data: &event.data,
    };
    let answer = answer(entity.as_ref(), &event).map_err(|f| plain::Fault(format!("{}: {}", f.code, f.message)))?;
    Ok(answer.map(transition).map_err(rejection))
}

fn dependency(from: &plain::Dependency) -> Dependency {
    Dependency { entity: EntityId::new(from.machine.as_str(), from.key.clone()), version: from.version }
}

fn state(from: &rules::StateInfo) -> plain::StateInfo {
    plain::StateInfo { name: from.name.clone(), terminal: from.terminal, expected_within: from.expected_within }
}

fn edge(from: &rules::Edge) -> plain::Edge {
    let origin = match &from.origin {
        rules::Origin::Absent => plain::Origin::Absent,
        rules::Origin::AnyLive => plain::Origin::AnyLive,
        rules::Origin::State(name) => plain::Origin::State(name.clone()),
    };
    let trigger = match &from.trigger {
        rules::Trigger::Event(name) => plain::Trigger::Event(name.clone()),
        rules::Trigger::Timer(name) => plain::Trigger::Timer(name.clone()),
        rules::Trigger::Compensation(name) => plain::Trigger::Compensation(name.clone()),
    };
    plain::Edge { origin, trigger, target: from.target.clone() }
}

fn transition(from: Transition) -> plain::Transition {
    let Transition { state, data, effects, notes } = from;
    plain::Transition { state, data, effects: effects.into_iter().map(effect).collect(), notes }
}

fn effect(from: rules::Effect) -> plain::Effect {
    match from {
        rules::Effect::Send(m) => plain::Effect::Send(plain::Message {
            topic: m.topic,
            kind: m.kind,
            key: m.key,
            content_type: m.content_type,
            attributes: m.attributes,
            data: m.data,
        }),
        rules::Effect::Start { name, when } => plain::Effect::Start {
            name,
            when: match when {
                rules::When::At(at) => plain::When::At(at),
                rules::When::After(length) => plain::When::After(length),
            },
        },
        rules::Effect::Cancel(name) => plain::Effect::Cancel(name),
    }
}

fn rejection(from: Rejection) -> plain::Rejection {
    let reason = |r: Reason| plain::Reason { code: r.code, message: r.message };
    match from {
        Rejection::Illegal(why) => plain::Rejection::Illegal(reason(why)),
        Rejection::Malformed(why) => plain::Rejection::Malformed(reason(why)),
        Rejection::Waiting(on) => plain::Rejection::Waiting(
            on.into_iter()
                .map(|d| plain::Dependency {
                    machine: d.entity.machine.to_string(),
                    key: d.entity.key.to_vec(),
                    version: d.version,
                })
                .collect(),
        ),
    }
}
