//! The model's names and the engine's.

use seqgate_decide::decide::{Import, Input};
use seqgate_decide::ids::{EntityId, EventKey, Position};
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::writes::Actor;
use seqgate_decide::writes::DeadStatus;
use seqgate_model as model;

pub fn entity(id: &model::EntityId) -> EntityId {
    EntityId::new(id.machine.as_str(), id.key.as_bytes())
}

pub fn event(id: &model::EventId) -> EventKey {
    EventKey { machine: id.machine.as_str().into(), source: id.source.as_str().into(), id: id.id.as_str().into() }
}

pub fn position(d: &model::Delivery) -> Position {
    Position { source: d.source.as_str().into(), partition: d.partition, offset: d.position }
}

pub fn model_entity(id: &EntityId) -> model::EntityId {
    let key = String::from_utf8(id.key.to_vec()).expect("histories have keys of text");
    model::EntityId { machine: id.machine.to_string(), key }
}

pub fn model_event(key: &EventKey) -> model::EventId {
    model::EventId { machine: key.machine.to_string(), source: key.source.to_string(), id: key.id.to_string() }
}

pub fn verdict(v: Verdict) -> model::Verdict {
    match v {
        Verdict::Applied => model::Verdict::Applied,
        Verdict::Duplicate => model::Verdict::Duplicate,
        Verdict::Stale => model::Verdict::Stale,
        Verdict::Conflict => model::Verdict::Conflict,
        Verdict::Deferred => model::Verdict::Deferred,
        Verdict::Illegal => model::Verdict::Illegal,
        Verdict::Malformed => model::Verdict::Malformed,
        Verdict::Fault => model::Verdict::Fault,
        Verdict::Skipped => model::Verdict::Skipped,
    }
}

pub fn reason(r: DeferReason) -> model::Reason {
    match r {
        DeferReason::Gap => model::Reason::Gap,
        DeferReason::Dependency => model::Reason::Dependency,
        DeferReason::Waiting => model::Reason::Waiting,
        DeferReason::Early => model::Reason::Early,
        DeferReason::Blocked => model::Reason::Blocked,
        DeferReason::Schema => model::Reason::Schema,
    }
}

pub fn conflict(code: &str) -> model::ConflictReason {
    match code {
        "id" => model::ConflictReason::Id,
        "version" => model::ConflictReason::Version,
        "waiting" => model::ConflictReason::Waiting,
        "fork" => model::ConflictReason::Fork,
        "intent" => model::ConflictReason::Intent,
        other => panic!("no conflict is called `{other}`"),
    }
}

pub fn status(s: DeadStatus) -> model::LetterStatus {
    match s {
        DeadStatus::Open => model::LetterStatus::Open,
        DeadStatus::Skipped => model::LetterStatus::Skipped,
        DeadStatus::Compensated => model::LetterStatus::Compensated,
        DeadStatus::Redriven => model::LetterStatus::Redriven,
        DeadStatus::Replaced => model::LetterStatus::Replaced,
        DeadStatus::Superseded => model::LetterStatus::Superseded,
    }
}

pub fn setup(name: &str, from: &model::MachineSetup) -> seqgate_decide::setup::Setup {
    use seqgate_decide::setup::{Ordering, Policies, Policy, Setup};
    let policy = |p: model::Policy| match p {
        model::Policy::Park => Policy::Park,
        model::Policy::Skip => Policy::Skip,
        model::Policy::Compensate => Policy::Compensate,
    };
    Setup {
        name: name.into(),
        ordering: match from.ordering {
            model::Ordering::Versioned => Ordering::Versioned,
            model::Ordering::Causal => Ordering::Causal,
            model::Ordering::Snapshot => Ordering::Snapshot,
            model::Ordering::Arrival => Ordering::Arrival,
        },
        policies: Policies {
            illegal: policy(from.on_illegal),
            malformed: policy(from.on_malformed),
            fault: policy(from.on_fault),
            unknown: Some(policy(from.on_unknown)),
        },
        ignore: from.ignore.iter().map(|i| i.as_str().into()).collect(),
        early_after: from.on_early_wait.then_some(from.early_after as u64),
    }
}

pub fn import(step: &model::ImportStep) -> Input {
    let import = Import {
        entity: entity(&step.entity),
        version: step.version,
        state: step.state.clone(),
        schema: step.schema,
        data: step.data.as_slice().into(),
        seen: step.seen.iter().map(|s| s.as_str().into()).collect(),
        entered: None,
        timers: step.timers.iter().map(|(name, due)| (name.as_str().into(), *due)).collect(),
    };
    Input::Import { by: Actor { name: "ada".into(), reason: "cut-over".into() }, import }
}
