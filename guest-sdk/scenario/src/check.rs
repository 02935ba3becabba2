//! What a step expects, against what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::exact::missing;
use crate::model::{Dependency, Message, Rejection};
use crate::story::{Expect, ExpectedMessage, Timers};
use crate::times::{parse_instant, show_instant};
use crate::world::{Outcome, World, list};

/// What was expected and what came instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got}")]
pub struct Differs {
    /// What was to come.
    pub expected: String,
    /// What came.
    pub got: String,
}

pub(crate) fn differs<T>(expected: impl fmt::Display, got: impl fmt::Display) -> Result<T, Differs> {
    Err(Differs { expected: expected.to_string(), got: got.to_string() })
}

/// Compares what a step expects with what came of it, and with the world as it is after it.
///
/// [`Expect::refused`] is not looked at: it is about what [`World::compensate`] returns beside its outcome.
pub fn check(expect: &Expect, world: &World, outcome: &Outcome) -> Result<(), Differs> {
    verdict(expect, outcome)?;
    entity(expect, world)?;
    if let Outcome::Applied { messages, notes } = outcome {
        sent(expect, messages)?;
        noted(expect, notes)?;
    }
    Ok(())
}

fn verdict(expect: &Expect, outcome: &Outcome) -> Result<(), Differs> {
    let got = show(outcome);
    let agrees = match (expect, outcome) {
        (_, Outcome::Broken(_)) => false,
        (Expect { illegal: Some(code), .. }, Outcome::Rejected(Rejection::Illegal(reason)))
        | (Expect { malformed: Some(code), .. }, Outcome::Rejected(Rejection::Malformed(reason))) => {
            *code == reason.code
        }
        (Expect { waiting: Some(on), .. }, Outcome::Rejected(Rejection::Waiting(got))) => {
            on.iter().map(|text| &text.0).collect::<BTreeSet<_>>() == got.iter().collect()
        }
        (Expect { fault: true, .. }, Outcome::Fault(_)) => true,
        (Expect { illegal: None, malformed: None, waiting: None, fault: false, .. }, Outcome::Applied { .. }) => true,
        _ => false,
    };
    if agrees {
        return Ok(());
    }
    match expect {
        Expect { illegal: Some(code), .. } => differs(format!("illegal {code}"), got),
        Expect { malformed: Some(code), .. } => differs(format!("malformed {code}"), got),
        Expect { waiting: Some(on), .. } => {
            differs(format!("waiting for {}", dependencies(on.iter().map(|text| &text.0))), got)
        }
        Expect { fault: true, .. } => differs("fault", got),
        Expect { state: Some(state), .. } => differs(format!("applied, state {state}"), got),
        _ => differs("applied", got),
    }
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied { .. } => "applied".into(),
        Outcome::Rejected(Rejection::Illegal(reason)) => {
            format!("illegal {}: {}", reason.code, reason.message)
        }
        Outcome::Rejected(Rejection::Malformed(reason)) => {
            format!("malformed {}: {}", reason.code, reason.message)
        }
        Outcome::Rejected(Rejection::Waiting(on)) => {
            format!("waiting for {}", dependencies(on.iter()))
        }
        Outcome::Fault(fault) => format!("fault: {fault}"),
        Outcome::Broken(how) => how.clone(),
    }
}

fn dependencies<'a>(all: impl Iterator<Item = &'a Dependency>) -> String {
    let show = |d: &Dependency| format!("{}/{}@{}", d.machine, String::from_utf8_lossy(&d.key), d.version);
    all.map(show).collect::<Vec<_>>().join(", ")
}

fn entity(expect: &Expect, world: &World) -> Result<(), Differs> {
    if let Some(state) = &expect.state {
        let got = world.entity().map_or("no state", |entity| &entity.state);
        if got != state {
            return differs(format!("state {state}"), format!("state {got}"));
        }
    }
    if let Some(data) = &expect.data {
        let got = world.entity().map_or(&b"null"[..], |entity| &entity.data);
        if let Some(found) = missing(data, got) {
            let whole = String::from_utf8_lossy(got);
            return differs(
                format!("data{} {}", found.path, found.expected),
                format!("data{} {}, in {whole}", found.path, found.got),
            );
        }
    }
    match &expect.timers {
        Some(Timers::Names(names)) if !names.iter().eq(world.timers().keys()) => {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            differs(format!("timers {}", list(&names)), format!("timers {}", show_timers(world.timers())))
        }
        Some(Timers::Due(due)) => {
            // Checked when the story was read.
            let due: BTreeMap<_, _> =
                due.iter().map(|(name, at)| (name.clone(), parse_instant(at).unwrap_or_default())).collect();
            if due == *world.timers() {
                return Ok(());
            }
            differs(format!("timers {}", show_timers(&due)), format!("timers {}", show_timers(world.timers())))
        }
        _ => Ok(()),
    }
}

fn show_timers(timers: &BTreeMap<String, i64>) -> String {
    let all: Vec<_> = timers.iter().map(|(name, due)| format!("{name} at {}", show_instant(*due))).collect();
    list(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

fn sent(expect: &Expect, messages: &[Message]) -> Result<(), Differs> {
    let Some(wanted) = &expect.messages else {
        return Ok(());
    };
    let names = |all: Vec<(&str, &str)>| {
        let all: Vec<_> = all.into_iter().map(|(topic, kind)| format!("{kind} on {topic}")).collect();
        format!("messages {}", list(&all.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    let want: Vec<_> = wanted.iter().map(|m| (m.topic.as_str(), m.kind.as_str())).collect();
    let have: Vec<_> = messages.iter().map(|m| (m.topic.as_str(), m.kind.as_str())).collect();
    if want != have {
        return differs(names(want), names(have));
    }
    wanted.iter().zip(messages).try_for_each(|(want, have)| same_message(want, have))
}

fn same_message(want: &ExpectedMessage, have: &Message) -> Result<(), Differs> {
    let kind = &want.kind;
    if let Some(key) = &want.key
        && have.key.as_deref() != Some(key.as_bytes())
    {
        let got = have.key.as_deref().map_or("the entity's own".into(), String::from_utf8_lossy);
        return differs(format!("{kind} key {key}"), format!("{kind} key {got}"));
    }
    for attribute in &want.attributes {
        if !have.attributes.iter().any(|(name, value)| (name, value) == attribute) {
            let (name, value) = attribute;
            return differs(format!("{kind} attribute {name} {value}"), format!("{:?}", have.attributes));
        }
    }
    if let Some(data) = &want.data
        && let Some(found) = missing(data, &have.data)
    {
        let whole = String::from_utf8_lossy(&have.data);
        return differs(
            format!("{kind} data{} {}", found.path, found.expected),
            format!("{kind} data{} {}, in {whole}", found.path, found.got),
        );
    }
    Ok(())
}

fn noted(expect: &Expect, notes: &[String]) -> Result<(), Differs> {
    let Some(wanted) = &expect.notes else {
        return Ok(());
    };
    if wanted.len() == notes.len() && wanted.iter().zip(notes).all(|(want, note)| note.contains(want.as_str())) {
        return Ok(());
    }
    differs(format!("notes {wanted:?}"), format!("notes {notes:?}"))
}
