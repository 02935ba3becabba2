//! What people decide about dead letters, waiting events and conflicts (R5). Each is on record, with who and why.

use std::sync::Arc;

use crate::envelope::Decoded;
use crate::event::Event;
use crate::ids::{EntityId, Position, Ref};
use crate::machine::Machines;
use crate::rules::Reason;
use crate::setup::Ordering;
use crate::verdict::{DeferReason, Verdict};
use crate::world::{ConflictEntry, DeadEntry, DeadKind, World};
use crate::writes::{
    Actor, AlarmKind, AlarmWrite, AuditRow, Cause, ConflictWrite, DeadStatus, DeadUpdate, DeadWrite, Writes,
};

use super::desk::Desk;
use super::judge::{self, Judgement};
use super::settle::{self, Stand};
use super::timer::Layout;
use super::{
    Action, DeadTarget, Decision, OpenConflict, Outcome, Undecided, adopt, arrive, ask, refuse, refused, release, timer,
};

pub(super) fn decide(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    action: &Action,
    now: i64,
) -> Result<Decision, Undecided> {
    let (mut decision, subject) = match action {
        Action::Redrive(target) => (redrive(world, machines, by, target, now)?, subject(target)),
        Action::Skip(target) => (skip(world, machines, by, target, now)?, subject(target)),
        Action::Compensate(target) => (compensate(world, machines, by, target, now)?, subject(target)),
        Action::Replace(target, event) => (replace(world, machines, by, target, event, now)?, subject(target)),
        Action::DismissWaiting(entity, id) => {
            (dismiss_waiting(world, machines, by, entity, *id, now)?, format!("{id} of {entity}"))
        }
        Action::Erase(erase) => (adopt::erase(world, machines, by, erase, now)?, erase.entity.to_string()),
        Action::DismissConflict(conflict) => {
            let subject = format!("{} of {}", conflict.id, conflict.event.entity);
            (dismiss_conflict(world, machines, by, conflict, now)?, subject)
        }
    };
    let outcome = match decision.outcome.reason() {
        Some(reason) => format!("{} ({reason})", decision.outcome.verdict),
        None => decision.outcome.verdict.to_string(),
    };
    decision.writes.audit.push(AuditRow { at: now, by: by.clone(), action: action.name().into(), subject, outcome });
    Ok(decision)
}

fn subject(target: &DeadTarget) -> String {
    match &target.entity {
        Some(entity) => format!("{} of {entity}", target.id),
        None => target.id.to_string(),
    }
}

fn open<'a>(
    world: &'a World,
    machines: &'a mut Machines,
    by: &Actor,
    entity: &EntityId,
    now: i64,
) -> Result<Desk<'a>, Undecided> {
    let mut desk = Desk::open(world, machines, entity, now)?;
    desk.by = Some(by.clone());
    Ok(desk)
}

/// Releases what waited for the decision. The rows of what was released are nobody's word.
fn finish(mut desk: Desk<'_>, outcome: Outcome) -> Result<Decision, Undecided> {
    desk.by = None;
    release::after(&mut desk)?;
    Ok(desk.close(outcome))
}

/// The open dead letter of an entity that a person means.
fn find(desk: &Desk<'_>, id: Ref) -> Result<DeadEntry, Undecided> {
    match desk.entity.dead.iter().find(|d| d.id == id) {
        Some(entry) => Ok(entry.clone()),
        None => {
            refused("not-open", format!("the dead letter {id} is not open; `dead-letter list` shows those that are"))
        }
    }
}

fn closing(by: &Actor, status: DeadStatus, now: i64) -> DeadUpdate {
    DeadUpdate { status: Some(status), by: Some(by.clone()), at: now, ..DeadUpdate::default() }
}

fn redrive(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    target: &DeadTarget,
    now: i64,
) -> Result<Decision, Undecided> {
    if let Some((position, decoded)) = &target.envelope {
        return redrive_envelope(world, machines, by, target, position, decoded, now);
    }
    let Some(entity) = &target.entity else { return refused("no-entity", "this dead letter names no entity") };
    let mut desk = open(world, machines, by, entity, now)?;
    let entry = find(&desk, target.id)?;
    let outcome = match (entry.kind, &entry.event, &entry.timer) {
        (DeadKind::Event, Some(event), _) => {
            let event = event.clone();
            let judgement = judge::tail(&mut desk, &event, &[])?;
            settle::settle(&mut desk, &event, Stand::Dead(entry), judgement)?
        }
        (DeadKind::Timer, _, Some((name, due))) => redrive_timer(&mut desk, &entry, name, *due)?,
        (DeadKind::Migration, ..) => redrive_migration(&mut desk, &entry),
        _ => return refused("no-event", "this dead letter holds nothing that could be decided again"),
    };
    finish(desk, outcome)
}

fn redrive_timer(desk: &mut Desk<'_>, entry: &DeadEntry, name: &Arc<str>, due: i64) -> Result<Outcome, Undecided> {
    match timer::bring_up_to_date(desk) {
        Layout::Current => {}
        Layout::Unreadable => return refused("schema", "the rules in force cannot read the entity's data"),
        Layout::Failed => return Ok(Outcome::deferred(DeferReason::Blocked)),
    }
    Ok(match timer::refire(desk, name, due) {
        Ok(outcome) => redriven(desk, entry, outcome),
        Err(reason) => failed_again(desk, entry, reason),
    })
}

/// Rules that write the entity's own layout have nothing to migrate: after a rollback, this is how it goes on.
fn redrive_migration(desk: &mut Desk<'_>, entry: &DeadEntry) -> Outcome {
    let description = desk.machine.graph.description().clone();
    if desk.entity.schema != description.schema {
        if !description.reads.contains(&desk.entity.schema) {
            let message = format!("the rules in force do not read layout {}", desk.entity.schema);
            return failed_again(desk, entry, Reason::new("schema", message));
        }
        if let Err(fault) = timer::rewrite(desk) {
            return failed_again(desk, entry, fault.into());
        }
    }
    redriven(desk, entry, Outcome::plain(Verdict::Applied))
}

fn redriven(desk: &mut Desk<'_>, entry: &DeadEntry, outcome: Outcome) -> Outcome {
    let change = DeadUpdate {
        status: Some(DeadStatus::Redriven),
        attempts: Some(entry.attempts + 1),
        by: desk.by.clone(),
        at: desk.now,
        ..DeadUpdate::default()
    };
    desk.close_dead(entry.id, change);
    outcome
}

fn failed_again(desk: &mut Desk<'_>, entry: &DeadEntry, reason: Reason) -> Outcome {
    let attempts = entry.attempts + 1;
    if let Some(open) = desk.entity.dead.iter_mut().find(|d| d.id == entry.id) {
        (open.class, open.reason, open.attempts) = (Verdict::Fault, reason.clone(), attempts);
    }
    desk.dirty = true;
    let refusal = Some((Verdict::Fault, reason.code.clone(), reason.message.clone()));
    let at = desk.now;
    desk.amend_dead(entry.id, DeadUpdate { refusal, attempts: Some(attempts), at, ..DeadUpdate::default() });
    Outcome::coded(Verdict::Fault, reason.code, reason.message)
}

fn redrive_envelope(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    target: &DeadTarget,
    position: &Position,
    decoded: &Decoded,
    now: i64,
) -> Result<Decision, Undecided> {
    let event = match decoded {
        Decoded::Event(event) => event.clone(),
        Decoded::Malformed(malformed) => {
            let Reason { code, message } = malformed.reason.clone();
            let outcome = Outcome::coded(Verdict::Malformed, code.clone(), message.clone());
            let refusal = Some((Verdict::Malformed, code, message));
            let mut writes = Writes::default();
            writes.dead.insert(target.id, DeadWrite::Update(DeadUpdate { refusal, at: now, ..DeadUpdate::default() }));
            return Ok(arrive::bare(outcome, writes));
        }
    };
    let mut desk = open(world, machines, by, &event.entity, now)?;
    desk.close_dead(target.id, closing(by, DeadStatus::Redriven, now));
    let outcome = arrive::deliver(&mut desk, &event, position, Some(Verdict::Malformed))?;
    finish(desk, outcome)
}

fn skip(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    target: &DeadTarget,
    now: i64,
) -> Result<Decision, Undecided> {
    let outcome = Outcome::coded(Verdict::Skipped, "by-hand", by.reason.clone());
    // A malformed envelope stands in its entity's way only where events carry no versions.
    let in_the_way = |id: &EntityId| -> Result<bool, Undecided> {
        Ok(target.envelope.is_none() || world.entity(id)?.dead.iter().any(|d| d.id == target.id))
    };
    let holder = match &target.entity {
        Some(entity) if in_the_way(entity)? => Some(entity),
        _ => None,
    };
    let Some(entity) = holder else {
        let Some((position, _)) = &target.envelope else {
            return refused("no-entity", "this dead letter names no entity");
        };
        let mut writes = Writes::default();
        let key = (position.source.clone(), position.partition, Verdict::Malformed, Verdict::Skipped);
        writes.moves.insert(key, 1);
        writes.dead.insert(target.id, DeadWrite::Update(closing(by, DeadStatus::Skipped, now)));
        return Ok(arrive::bare(outcome, writes));
    };
    let mut desk = open(world, machines, by, entity, now)?;
    let entry = find(&desk, target.id)?;
    if entry.kind == DeadKind::Migration {
        return refused(
            "migration",
            "a migration cannot be skipped: activate rules that read the data, then redrive it",
        );
    }
    desk.close_dead(entry.id, closing(by, DeadStatus::Skipped, now));
    if entry.kind == DeadKind::Event {
        desk.change_verdict(entry.position.as_ref(), entry.class, Verdict::Skipped);
        match &entry.event {
            Some(event) => {
                desk.inbox_verdict(&event.key, &outcome);
                settle::consume(&mut desk, event, Cause::Skip, Some("by-hand".into()));
                settle::supersede(&mut desk, event, &outcome);
                desk.decided.push((event.key.clone(), outcome.clone()));
            }
            None => arrive::pass_over(&mut desk, Some("by-hand".into())),
        }
    }
    finish(desk, outcome)
}

fn compensate(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    target: &DeadTarget,
    now: i64,
) -> Result<Decision, Undecided> {
    let Some(entity) = &target.entity else { return refused("no-entity", "this dead letter names no entity") };
    let mut desk = open(world, machines, by, entity, now)?;
    let entry = find(&desk, target.id)?;
    let Some(event) = entry.event.clone() else {
        return refused("no-event", "only a refused event can be compensated");
    };
    let failure = refuse::failure(entry.class, entry.reason.clone());
    let transition = match ask::compensate(&mut desk, &event, &failure) {
        Ok(transition) => transition,
        Err(reason) => {
            let message = format!("the rules do not compensate it: {} ({})", reason.message, reason.code);
            return refused("not-compensated", message);
        }
    };
    desk.close_dead(entry.id, closing(by, DeadStatus::Compensated, now));
    settle::accept(&mut desk, &event, transition, Cause::Compensation, Some(entry.reason.code.clone()));
    let outcome = Outcome::coded(entry.class, "compensated", by.reason.clone());
    settle::supersede(&mut desk, &event, &outcome);
    finish(desk, outcome)
}

fn replace(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    target: &DeadTarget,
    event: &Arc<Event>,
    now: i64,
) -> Result<Decision, Undecided> {
    let Some(entity) = &target.entity else {
        return refused("no-entity", "a malformed envelope holds no place; send the corrected event to its source");
    };
    let mut desk = open(world, machines, by, entity, now)?;
    let entry = find(&desk, target.id)?;
    let Some(original) = entry.event.clone() else {
        return refused("no-event", "only a refused event can be replaced");
    };
    if event.entity != original.entity || event.version != original.version {
        let message = format!("the corrected event must be of {} at version {:?}", original.entity, original.version);
        return refused("other-place", message);
    }
    let known = event.key == original.key;
    if !known && world.inbox(&event.key)?.is_some() {
        return refused(
            "known-id",
            format!("the id `{}` was decided before; give the correction its own", event.key.id),
        );
    }
    let judgement = judge::tail(&mut desk, event, &[])?;
    if !matches!(judgement, Judgement::Accepted(_) | Judgement::Ignored) {
        return refused("not-accepted", format!("the corrected event is not accepted either: {}", why(&judgement)));
    }
    let replaced = Outcome::coded(Verdict::Skipped, "replaced", by.reason.clone());
    desk.change_verdict(entry.position.as_ref(), entry.class, Verdict::Skipped);
    desk.inbox_verdict(&original.key, &replaced);
    let mut change = closing(by, DeadStatus::Replaced, now);
    change.replaced_by = Some(event.key.clone());
    desk.close_dead(entry.id, change);
    let outcome = settle::settle(&mut desk, event, Stand::Replacement { known }, judgement)?;
    finish(desk, outcome)
}

fn why(judgement: &Judgement) -> String {
    match judgement {
        Judgement::Refused { class, reason, .. } => format!("{class}, {} ({})", reason.message, reason.code),
        Judgement::Defer { reason, .. } => format!("it would wait ({reason})"),
        Judgement::Conflict { message, .. } => message.clone(),
        Judgement::IntentDuplicate { .. } => "its intent was carried out before".into(),
        _ => "it would change nothing".into(),
    }
}

fn dismiss_waiting(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    entity: &EntityId,
    id: Ref,
    now: i64,
) -> Result<Decision, Undecided> {
    let mut desk = open(world, machines, by, entity, now)?;
    let Some(row) = desk.entity.waiting.iter().find(|w| w.id() == id).cloned() else {
        return refused("not-waiting", format!("no event {id} of {entity} waits; `deferred list` shows those that do"));
    };
    let outcome = Outcome::coded(Verdict::Skipped, "dismissed", by.reason.clone());
    desk.remove_waiting(&row);
    desk.change_verdict(Some(&row.position), Verdict::Deferred, Verdict::Skipped);
    desk.inbox_verdict(&row.event.key, &outcome);
    desk.decided.push((row.event.key.clone(), outcome.clone()));
    // In arrival machines it may have held those behind it; elsewhere nobody waited for it.
    desk.moved = desk.ordering() == Ordering::Arrival;
    finish(desk, outcome)
}

fn dismiss_conflict(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    conflict: &OpenConflict,
    now: i64,
) -> Result<Decision, Undecided> {
    let event = &conflict.event;
    let mut desk = open(world, machines, by, &event.entity, now)?;
    let row = world.inbox(&event.key)?;
    let closed = |c: &ConflictEntry| c.id == conflict.id && !c.open;
    if world.conflicts(&event.key).iter().any(closed) {
        let message =
            format!("the conflict {} was dismissed before; `conflict list` shows those that are open", conflict.id);
        return refused("not-open", message);
    }
    // Whoever dismisses it at the same time is to find it closed.
    desk.writes.touched.insert(event.entity.clone());
    let outcome = Outcome::coded(Verdict::Skipped, "dismissed", by.reason.clone());
    let closed = ConflictWrite::Update { copies: 0, dismissed: Some(by.clone()), at: now };
    desk.writes.conflicts.insert(conflict.id, closed);
    let subject = format!("{} {}", event.entity, conflict.id);
    desk.writes.alarms.insert((AlarmKind::Conflict, subject), AlarmWrite::Clear { at: now });
    desk.change_verdict(conflict.position.as_ref(), Verdict::Conflict, Verdict::Skipped);
    if row.is_some_and(|r| r.verdict == Verdict::Conflict && event.same_content(&r.digest, &r.value_digest)) {
        desk.inbox_verdict(&event.key, &outcome);
    }
    if is_next(&desk, event) {
        settle::consume(&mut desk, event, Cause::Dismiss, Some("dismissed".into()));
        settle::supersede(&mut desk, event, &outcome);
    }
    desk.decided.push((event.key.clone(), outcome.clone()));
    finish(desk, outcome)
}

/// Whether a quarantined event's version is the one that its entity waits for, and nothing else stands there. Of two that
/// follow the same version, one waits and the other is quarantined: dismissing this one is no reason to pass that one over.
fn is_next(desk: &Desk<'_>, event: &Event) -> bool {
    let Some(version) = event.version else { return false };
    let follows = match desk.ordering() {
        Ordering::Versioned => event.predecessor() == desk.entity.version && !desk.entity.blocked(),
        Ordering::Snapshot => version > desk.entity.version,
        Ordering::Causal | Ordering::Arrival => false,
    };
    let waiting = desk.entity.waiting.iter().map(|w| &w.event);
    let dead = desk.entity.dead.iter().filter_map(|d| d.event.as_ref());
    let versioned = desk.ordering() == Ordering::Versioned;
    let rivals = |e: &Arc<Event>| e.version == Some(version) || versioned && e.predecessor() == event.predecessor();
    follows && !waiting.chain(dead).any(rivals)
}
