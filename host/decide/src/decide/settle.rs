//! A judgement becomes rows.

use std::sync::Arc;

use crate::digest;
use crate::effects;
use crate::event::Event;
use crate::ids::{Position, Ref};
use crate::rules::{Effect, Transition, When};
use crate::setup::Ordering;
use crate::verdict::{DeferReason, Verdict};
use crate::world::{DeadEntry, Intent, Need, Waiting};
use crate::writes::{
    AlarmKind, Cause, ConflictRow, ConflictWrite, DeadStatus, DeadUpdate, InboxRow, InboxWrite, OutboxRow, TimerWrite,
};

use super::desk::{Desk, Step};
use super::judge::Judgement;
use super::{Outcome, refuse};

/// Where an event stood before it was judged.
#[derive(Clone)]
pub(super) enum Stand {
    /// It has just arrived; `uncounted` when its delivery was counted before under another verdict (a malformed envelope
    /// that can be read now).
    New { position: Position, was: Option<Verdict> },
    /// It waited.
    Waiting(Box<Waiting>),
    /// It was parked.
    Dead(DeadEntry),
    /// A person puts it in another event's place; its own id is known to the inbox already, or not.
    Replacement { known: bool },
}

impl Stand {
    pub fn position(&self) -> Option<&Position> {
        match self {
            Self::New { position, .. } => Some(position),
            Self::Waiting(row) => Some(&row.position),
            Self::Dead(entry) => entry.position.as_ref(),
            Self::Replacement { .. } => None,
        }
    }
}

/// Writes what a judgement means for an event that stood where `stand` says.
pub(super) fn settle(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    stand: Stand,
    judgement: Judgement,
) -> Result<Outcome, Need> {
    let outcome = match judgement {
        Judgement::Duplicate { note } => {
            let mut outcome = Outcome::plain(Verdict::Duplicate);
            outcome.code = note.map(str::to_owned);
            outcome
        }
        Judgement::Stale => Outcome::plain(Verdict::Stale),
        Judgement::Conflict { code, message } => {
            quarantine(desk, event, stand.position(), code, &message);
            Outcome::coded(Verdict::Conflict, code, message)
        }
        Judgement::Defer { reason, named } => return defer(desk, event, stand, reason, named),
        Judgement::Ignored => {
            leave(desk, &stand, DeadStatus::Redriven);
            consume(desk, event, Cause::Ignored, None);
            Outcome::coded(Verdict::Skipped, "configured", format!("`{}` is ignored by configuration", event.kind))
        }
        Judgement::Erased => {
            leave(desk, &stand, DeadStatus::Redriven);
            consume(desk, &bare(event), Cause::Skip, Some("erased".into()));
            Outcome::coded(Verdict::Skipped, "erased", "its entity was erased")
        }
        Judgement::IntentDuplicate { differs } => {
            leave(desk, &stand, DeadStatus::Redriven);
            let note = differs.then(|| "differs".to_owned());
            if differs {
                let intent = event.idempotency_key.as_deref().unwrap_or_default();
                let message = format!("the intent `{intent}` came again with other data, by event `{}`", event.key.id);
                desk.raise(AlarmKind::IntentDiffers, format!("{} {intent}", desk.entity.id), message);
            }
            consume(desk, event, Cause::IntentDuplicate, note.clone());
            Outcome { code: note.or(Some("intent".into())), ..Outcome::plain(Verdict::Duplicate) }
        }
        Judgement::Accepted(transition) => {
            leave(desk, &stand, DeadStatus::Redriven);
            accept(desk, event, *transition, Cause::Event, None);
            Outcome::plain(Verdict::Applied)
        }
        Judgement::Refused { class, reason, unknown } => {
            let outcome = Outcome::coded(class, reason.code.clone(), reason.message.clone());
            refuse::settle(desk, event, &stand, class, reason, unknown);
            record(desk, event, &stand, &outcome);
            supersede(desk, event, &outcome);
            return Ok(outcome);
        }
    };
    leave(desk, &stand, DeadStatus::Redriven);
    record(desk, event, &stand, &outcome);
    supersede(desk, event, &outcome);
    Ok(outcome)
}

fn defer(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    stand: Stand,
    reason: DeferReason,
    named: Vec<crate::rules::Dependency>,
) -> Result<Outcome, Need> {
    let outcome = Outcome::deferred(reason);
    let deadline = |desk: &Desk<'_>| {
        let after = desk.machine.setup.early_after.filter(|_| reason == DeferReason::Early)?;
        Some(desk.now.saturating_add(i64::try_from(after).unwrap_or(i64::MAX)))
    };
    if let Stand::Waiting(mut row) = stand {
        if row.reason != reason || row.named != named || row.ready {
            if row.reason != reason {
                row.deadline = deadline(desk);
                desk.inbox_verdict(&event.key, &outcome);
            }
            (row.reason, row.named, row.ready) = (reason, named, false);
            desk.put_waiting(*row)?;
        }
        return Ok(outcome);
    }
    leave(desk, &stand, DeadStatus::Redriven);
    record(desk, event, &stand, &outcome);
    // Positions are what counters are kept by; an event that no source delivered never waits (`replace` refuses it).
    let Some(position) = stand.position().cloned() else { return Ok(outcome) };
    desk.entity.arrivals += 1;
    let row = Waiting {
        event: event.clone(),
        arrival: desk.entity.arrivals,
        reason,
        named,
        since: desk.now,
        deadline: deadline(desk),
        ready: false,
        position,
    };
    desk.put_waiting(row)?;
    Ok(outcome)
}

/// Takes an event away from where it stood.
pub(super) fn leave(desk: &mut Desk<'_>, stand: &Stand, status: DeadStatus) {
    match stand {
        Stand::Waiting(row) if desk.waiting(row.arrival).is_some() => desk.remove_waiting(row),
        Stand::Dead(entry) if desk.entity.dead.iter().any(|d| d.id == entry.id) => {
            let change = DeadUpdate {
                status: Some(status),
                attempts: Some(entry.attempts + 1),
                by: desk.by.clone(),
                at: desk.now,
                ..DeadUpdate::default()
            };
            desk.close_dead(entry.id, change);
        }
        _ => {}
    }
}

/// Enters the verdict in the inbox and in the counters.
pub(super) fn record(desk: &mut Desk<'_>, event: &Arc<Event>, stand: &Stand, outcome: &Outcome) {
    match stand {
        Stand::New { position, was } => {
            match was {
                None => desk.count(position, outcome.verdict),
                Some(was) => desk.change_verdict(Some(position), *was, outcome.verdict),
            }
            insert_inbox(desk, event, Some(position), outcome);
        }
        Stand::Waiting(row) => {
            desk.change_verdict(Some(&row.position), Verdict::Deferred, outcome.verdict);
            desk.inbox_verdict(&event.key, outcome);
        }
        Stand::Dead(entry) => {
            desk.change_verdict(entry.position.as_ref(), entry.class, outcome.verdict);
            desk.inbox_verdict(&event.key, outcome);
        }
        Stand::Replacement { known: false } => insert_inbox(desk, event, None, outcome),
        Stand::Replacement { known: true } => {}
    }
    desk.decided.push((event.key.clone(), outcome.clone()));
}

fn insert_inbox(desk: &mut Desk<'_>, event: &Arc<Event>, position: Option<&Position>, outcome: &Outcome) {
    let row = InboxRow {
        entity: event.entity.clone(),
        kind: event.kind.clone(),
        version: event.version,
        digest: event.digest,
        value_digest: event.value_digest,
        verdict: outcome.verdict,
        reason: outcome.reason(),
        first: position.cloned(),
        last: position.cloned(),
        deliveries: u64::from(position.is_some()),
        received: desk.now,
    };
    desk.writes.inbox.insert(event.key.clone(), InboxWrite::Insert(row));
}

/// Puts an event in quarantine: it fills no place and blocks nobody (R5).
pub(super) fn quarantine(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    position: Option<&Position>,
    code: &'static str,
    message: &str,
) {
    let id = Ref::of_conflict(&event.key, &event.digest);
    let row = ConflictRow {
        event: if desk.entity.erased { bare(event) } else { event.clone() },
        code,
        message: message.to_owned(),
        copies: 1,
        dismissed: None,
        since: desk.now,
        position: position.cloned(),
    };
    desk.writes.conflicts.insert(id, ConflictWrite::Put(row));
    let text = format!("event `{}` of {}: {message}", event.key.id, event.key.source);
    desk.raise(AlarmKind::Conflict, format!("{} {id}", event.entity), text);
}

/// What is kept of an event of an erased entity: what names it, and the digests by which copies are known.
fn bare(event: &Arc<Event>) -> Arc<Event> {
    Arc::new(Event { data: Arc::from([]), attributes: Default::default(), ..Event::clone(event) })
}

/// An event that changes no state consumes its version.
pub(super) fn consume(desk: &mut Desk<'_>, event: &Arc<Event>, cause: Cause, code: Option<String>) {
    let mut step = Step::quiet(cause, event, desk.entity.state.clone());
    step.consumed = desk.numbers(cause, event);
    step.code = code;
    desk.revise(step);
}

/// Carries a checked transition of an event out.
pub(super) fn accept(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    transition: Transition,
    cause: Cause,
    code: Option<String>,
) {
    if cause == Cause::Event {
        desk.entity.seen.insert(event.kind.clone());
        if let Some(key) = &event.idempotency_key {
            let intent = Intent {
                entity: event.entity.clone(),
                kind: event.kind.clone(),
                data_digest: digest::of_data(event.content_type.as_deref(), &event.data),
            };
            desk.writes.intents.insert((event.key.machine.clone(), key.clone()), intent);
        }
    }
    let mut step = Step::quiet(cause, event, desk.entity.state.clone());
    step.consumed = desk.numbers(cause, event);
    step.code = code;
    step.effects_digest = effects::digest(&transition.effects);
    let effects = enter(desk, transition, event.time, &mut step);
    desk.revise(step);
    carry_out(desk, effects, event.time, Some(event));
}

/// Takes the new state and data, and gives the effects back.
pub(super) fn enter(desk: &mut Desk<'_>, transition: Transition, time: i64, step: &mut Step<'_>) -> Vec<Effect> {
    let state = match desk.machine.graph.state(&transition.state) {
        Some(name) => name.clone(),
        None => Arc::from(transition.state.as_str()),
    };
    if desk.entity.state.as_ref() != Some(&state) {
        desk.entity.entered = time;
    }
    desk.entity.state = Some(state);
    desk.entity.schema = desk.machine.graph.description().schema;
    desk.entity.data = transition.data.into();
    step.notes = transition.notes;
    transition.effects
}

/// Writes messages and timers, in the order in which the rules gave them.
pub(super) fn carry_out(desk: &mut Desk<'_>, effects: Vec<Effect>, time: i64, event: Option<&Arc<Event>>) {
    let mut index = 0;
    for effect in effects {
        match effect {
            Effect::Send(message) => {
                let topic: Arc<str> = message.topic.as_str().into();
                let own = message.key.as_ref().is_none_or(|k| **k == *desk.entity.id.key);
                let entity_version = own.then(|| {
                    let sent = desk.entity.emitted.entry(topic).or_default();
                    *sent += 1;
                    *sent
                });
                desk.writes.outbox.push(OutboxRow {
                    entity: desk.entity.id.clone(),
                    revision: desk.entity.revision,
                    index,
                    topic: message.topic,
                    kind: message.kind,
                    key: message.key.filter(|_| !own),
                    content_type: message.content_type,
                    attributes: message.attributes,
                    data: message.data,
                    entity_version,
                    cause: event.map(|e| e.key.clone()),
                    correlation_id: event.and_then(|e| e.attribute("correlationid")).map(str::to_owned),
                    created: desk.now,
                });
                index += 1;
            }
            Effect::Start { name, when } => {
                let due = match when {
                    When::At(at) => at,
                    When::After(after) => time.saturating_add(i64::try_from(after).unwrap_or(i64::MAX)),
                };
                let name: Arc<str> = name.as_str().into();
                let write = TimerWrite::Put { due, revision: desk.entity.revision };
                desk.entity.timers.insert(name.clone(), due);
                desk.writes.timers.insert((desk.entity.id.clone(), name), write);
            }
            Effect::Cancel(name) => {
                let name: Arc<str> = name.as_str().into();
                if desk.entity.timers.remove(&name).is_some() {
                    desk.close_timer(name, "cancelled", None);
                }
            }
        }
    }
    let terminal = desk.entity.state.as_deref().is_some_and(|s| desk.machine.graph.is_terminal(s));
    if terminal {
        desk.drop_timers();
    }
}

/// Under snapshot ordering a higher event that is not deferred supersedes parked ones (R4).
pub(super) fn supersede(desk: &mut Desk<'_>, event: &Event, outcome: &Outcome) {
    let higher = match (desk.ordering(), event.version) {
        (Ordering::Snapshot, Some(version)) => version,
        _ => return,
    };
    let consumed = desk.entity.version == higher;
    let counts = match outcome.verdict {
        Verdict::Duplicate => consumed,
        Verdict::Deferred | Verdict::Conflict | Verdict::Stale => false,
        _ => true,
    };
    if !counts {
        return;
    }
    let parked: Vec<_> = desk
        .entity
        .dead
        .iter()
        .filter(|d| d.event.as_ref().and_then(|e| e.version).is_some_and(|v| v < higher))
        .cloned()
        .collect();
    for entry in parked {
        let Some(old) = &entry.event else { continue };
        let outcome =
            Outcome::coded(Verdict::Skipped, "superseded", format!("version {higher} of the same entity came"));
        desk.change_verdict(entry.position.as_ref(), entry.class, Verdict::Skipped);
        desk.inbox_verdict(&old.key, &outcome);
        let change = DeadUpdate { status: Some(DeadStatus::Superseded), at: desk.now, ..DeadUpdate::default() };
        desk.close_dead(entry.id, change);
    }
}
