//! From the contract's types to a machine's own and back, in the one order of checks.

use crate::bindings::exports::seqgate::machine::rules as wit;
use crate::context::Context;
use crate::machine::{Answer, Failure, Machine, Old, not_compensated};
use crate::refusal::{Reason, Refusal};
use crate::step::to_json;
use crate::table::{Decode, Named, OriginRow, TriggerRow, leaves};

pub(crate) fn describe<M: Machine>() -> wit::Description {
    let edge = |row: &crate::EdgeRow| wit::Edge {
        origin: match row.origin {
            OriginRow::Absent => wit::Origin::Absent,
            OriginRow::AnyLive => wit::Origin::AnyLive,
            OriginRow::State(name) => wit::Origin::State(name.to_owned()),
        },
        trigger: match row.trigger {
            TriggerRow::Event(name) => wit::Trigger::Event(name.to_owned()),
            TriggerRow::Timer(name) => wit::Trigger::Timer(name.to_owned()),
            TriggerRow::Compensation(name) => wit::Trigger::Compensation(name.to_owned()),
        },
        target: row.target.to_owned(),
    };
    let state = |row: &crate::StateRow| wit::StateInfo {
        name: row.name.to_owned(),
        terminal: row.terminal,
        expected_within: row.expected_within,
    };
    wit::Description {
        name: M::NAME.to_owned(),
        version: M::VERSION.to_owned(),
        schema: M::SCHEMA,
        reads: M::READS.to_vec(),
        states: M::STATES.iter().map(state).collect(),
        edges: M::EDGES.iter().map(edge).collect(),
    }
}

pub(crate) fn apply<M: Machine>(
    current: Option<&wit::Entity>,
    event: &wit::Event,
) -> Result<wit::Transition, wit::Rejection> {
    let cx = Context::<M>::new(state::<M>(current), current, event);
    let answer = match &event.trigger {
        wit::Trigger::Event(kind) => decide_event(current, kind, &cx),
        wit::Trigger::Timer(name) => decide_timer(current, name, &cx),
        wit::Trigger::Compensation(kind) => Err(unknown("type", kind)),
    };
    finish(answer, cx)
}

fn decide_event<M: Machine>(current: Option<&wit::Entity>, kind: &str, cx: &Context<M>) -> Answer<M> {
    let event = M::Event::decode(kind, cx.data()).unwrap_or_else(|| Err(unknown("type", kind)))?;
    if !leaves::<M>(cx.state(), |trigger| matches!(trigger, TriggerRow::Event(name) if name == kind)) {
        return Err(M::wrong_state(&event, cx));
    }
    M::apply(current.map(data::<M>), event, cx)
}

fn decide_timer<M: Machine>(current: Option<&wit::Entity>, name: &str, cx: &Context<M>) -> Answer<M> {
    let timer = M::Timer::from_name(name).ok_or_else(|| unknown("timer", name))?;
    match current {
        Some(entity) if leaves::<M>(cx.state(), |trigger| trigger == TriggerRow::Timer(timer.name())) => {
            M::fire(data::<M>(entity), timer, cx)
        }
        _ => Err(cx.wrong_state()),
    }
}

pub(crate) fn compensate<M: Machine>(
    current: Option<&wit::Entity>,
    event: &wit::Event,
    failure: wit::Failure,
) -> Result<wit::Transition, wit::Rejection> {
    let cx = Context::<M>::new(state::<M>(current), current, event);
    let failure = match failure {
        wit::Failure::Illegal(reason) => Failure::Illegal(Reason::new(reason.code, reason.message)),
        wit::Failure::Malformed(reason) => Failure::Malformed(Reason::new(reason.code, reason.message)),
        wit::Failure::Fault(message) => Failure::Fault(message),
    };
    let listed = M::Compensation::ALL.iter().copied().find(|one| {
        let this = TriggerRow::Compensation(one.name());
        one.name() == cx.event_type() && leaves::<M>(cx.state(), |trigger| trigger == this)
    });
    let answer = match listed {
        Some(compensation) => M::compensate(current.map(data::<M>), compensation, &failure, &cx),
        None => Err(not_compensated(&cx)),
    };
    finish(answer, cx)
}

pub(crate) fn migrate<M: Machine>(entity: &wit::Entity) -> Result<wit::Migrated, wit::Reason> {
    let old = Old { schema: entity.schema, state: &entity.state, data: &entity.data };
    match M::migrate(&old) {
        Ok((state, data)) => Ok(wit::Migrated { state: state.name().to_owned(), data: to_json(&data) }),
        Err(reason) => Err(contract(reason)),
    }
}

fn finish<M: Machine>(answer: Answer<M>, cx: Context<M>) -> Result<wit::Transition, wit::Rejection> {
    match answer {
        Ok(step) => Ok(wit::Transition {
            state: step.state.name().to_owned(),
            data: to_json(&step.data),
            effects: step.effects,
            notes: cx.into_notes(),
        }),
        Err(Refusal::Illegal(reason)) => Err(wit::Rejection::Illegal(contract(reason))),
        Err(Refusal::Malformed(reason)) => Err(wit::Rejection::Malformed(contract(reason))),
        Err(Refusal::Waiting(on)) => Err(wit::Rejection::Waiting(
            on.into_iter().map(|d| wit::Dependency { machine: d.machine, key: d.key, version: d.version }).collect(),
        )),
    }
}

fn contract(reason: Reason) -> wit::Reason {
    wit::Reason { code: reason.code, message: reason.message }
}

fn unknown(what: &str, name: &str) -> Refusal {
    Refusal::illegal(format!("unknown-{what}"), format_args!("no edge names {what} {name}"))
}

/// The entity's state. The host hands these rules only what they, or rules of the same schema, have written; anything
/// else is a fault, and must not look like a refusal of the event.
fn state<M: Machine>(current: Option<&wit::Entity>) -> Option<M::State> {
    current.map(|entity| match M::State::from_name(&entity.state) {
        Some(state) => state,
        None => panic!("the entity is in state {}, which these rules do not declare", entity.state),
    })
}

/// The entity's data, under the same promise as [`state`].
fn data<M: Machine>(entity: &wit::Entity) -> M::Data {
    match serde_json::from_slice(&entity.data) {
        Ok(data) => data,
        Err(error) => panic!("the entity's data cannot be read by these rules: {error}"),
    }
}
