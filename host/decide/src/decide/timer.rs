//! Timers (R6) and migrations (R8): inputs that are no events. They change an entity's revision, never its version.

use std::sync::Arc;

use crate::effects;
use crate::envelope::shown;
use crate::ids::{Position, Ref};
use crate::rules::{EventView, Fault, Reason, Rejection, Transition, TriggerView};
use crate::verdict::{DeferReason, Verdict};
use crate::world::{DeadEntry, DeadKind};
use crate::writes::{Cause, DeadRow, DeadStatus};

use super::ask;
use super::check;
use super::desk::{Desk, Step};
use super::settle;
use super::{Outcome, Undecided, refused, release};

/// Whether the rules in force can read the entity's data.
pub(super) enum Layout {
    Current,
    Unreadable,
    Failed,
}

/// Fires a timer that is due.
pub(super) fn fire(desk: &mut Desk<'_>, name: &Arc<str>) -> Result<Outcome, Undecided> {
    let Some(due) = desk.entity.timers.get(name).copied() else {
        return refused("no-timer", format!("{} has no pending timer `{name}`", desk.entity.id));
    };
    if due > desk.now {
        return refused("not-due", format!("the timer `{name}` of {} is not due", desk.entity.id));
    }
    if desk.entity.blocked() || !desk.entity.waiting.is_empty() {
        let message = format!("{} has waiting events or a dead letter; its timers wait for them", desk.entity.id);
        return refused("timer-held", message);
    }
    match bring_up_to_date(desk) {
        Layout::Current => {}
        Layout::Unreadable => return Ok(Outcome::deferred(DeferReason::Schema)),
        Layout::Failed => return Ok(Outcome::deferred(DeferReason::Blocked)),
    }
    if !desk.entity.timers.contains_key(name) {
        return Ok(Outcome::coded(Verdict::Skipped, "dropped", "its entity was migrated to a terminal state"));
    }
    let answer = ask(desk, name, due);
    desk.entity.timers.remove(name);
    let outcome = match answer {
        Ok(Ok(transition)) => {
            desk.close_timer(name.clone(), "fired", None);
            accept(desk, name, due, transition);
            Outcome::plain(Verdict::Applied)
        }
        Ok(Err(refusal)) => {
            desk.close_timer(name.clone(), "ignored", Some(refusal.code.clone()));
            Outcome::coded(Verdict::Skipped, refusal.code, refusal.message)
        }
        Err(fault) => {
            desk.close_timer(name.clone(), "fault", Some(fault.code.clone()));
            let id = Ref::of_revision("timer", &desk.entity.id, name, desk.entity.revision);
            let outcome = Outcome::coded(Verdict::Fault, fault.code.clone(), fault.message.clone());
            bury(desk, DeadKind::Timer, id, fault, Some((name.clone(), due)));
            outcome
        }
    };
    release::after(desk)?;
    Ok(outcome)
}

/// Fires the timer of a dead letter again; the answer is the new reason when it fails again.
pub(super) fn refire(desk: &mut Desk<'_>, name: &Arc<str>, due: i64) -> Result<Outcome, Reason> {
    match ask(desk, name, due) {
        Ok(Ok(transition)) => {
            accept(desk, name, due, transition);
            Ok(Outcome::plain(Verdict::Applied))
        }
        Ok(Err(refusal)) => Ok(Outcome::coded(Verdict::Skipped, refusal.code, refusal.message)),
        Err(fault) => Err(fault.into()),
    }
}

fn ask(desk: &mut Desk<'_>, name: &str, due: i64) -> Result<Result<Transition, Reason>, Fault> {
    let trigger = TriggerView::Timer(name);
    let id = format!("timer:{name}:{}", desk.entity.revision);
    let timers = ask::timers(&desk.entity);
    let key = desk.entity.id.key.clone();
    let view = EventView {
        id: &id,
        source: "seqgate",
        trigger,
        key: &key,
        version: None,
        time: due,
        idempotency_key: None,
        correlation_id: None,
        content_type: None,
        attributes: &[],
        met: &[],
        data: &[],
    };
    let current = ask::entity_view(&desk.entity, &timers);
    let answer = desk.machine.ask(|rules| rules.apply(current.as_ref(), &view));
    match answer.map_err(check::fault)? {
        Ok(transition) => check::transition(&desk.machine.graph, &desk.entity, trigger, transition).map(Ok),
        Err(Rejection::Illegal(reason) | Rejection::Malformed(reason)) => Ok(Err(check::reason(reason))),
        Err(Rejection::Waiting(_)) => Ok(Err(Reason::new("waiting", "a timer cannot wait for other entities"))),
    }
}

fn accept(desk: &mut Desk<'_>, name: &Arc<str>, due: i64, transition: Transition) {
    let mut step = Step {
        cause: Cause::Timer,
        event: None,
        timer: Some(name.clone()),
        time: due,
        consumed: None,
        previous_state: desk.entity.state.clone(),
        effects_digest: effects::digest(&transition.effects),
        code: None,
        notes: Vec::new(),
    };
    let effects = settle::enter(desk, transition, due, &mut step);
    desk.revise(step);
    settle::carry_out(desk, effects, due, None);
}

/// Brings an entity's data to the layout of the rules in force.
pub(super) fn migrate(desk: &mut Desk<'_>) -> Result<Outcome, Undecided> {
    let before = desk.entity.revision;
    let outcome = match bring_up_to_date(desk) {
        Layout::Current if desk.entity.revision == before => Outcome::plain(Verdict::Skipped),
        Layout::Current => Outcome::plain(Verdict::Applied),
        Layout::Unreadable => Outcome::deferred(DeferReason::Schema),
        Layout::Failed => Outcome::deferred(DeferReason::Blocked),
    };
    release::after(desk)?;
    Ok(outcome)
}

/// Migrates if needed and possible. A failure is a dead letter of this entity alone, and blocks it.
pub(super) fn bring_up_to_date(desk: &mut Desk<'_>) -> Layout {
    let description = desk.machine.graph.description();
    // What was erased has no layout to bring up to date.
    if desk.entity.erased || desk.entity.state.is_none() || desk.entity.schema == description.schema {
        return Layout::Current;
    }
    if !description.reads.contains(&desk.entity.schema) {
        return Layout::Unreadable;
    }
    if desk.entity.dead.iter().any(|d| d.kind == DeadKind::Migration) {
        return Layout::Failed;
    }
    match rewrite(desk) {
        Ok(()) => Layout::Current,
        Err(fault) => {
            let id = Ref::of_revision("migration", &desk.entity.id, "", desk.entity.revision);
            bury(desk, DeadKind::Migration, id, fault, None);
            Layout::Failed
        }
    }
}

/// Asks `migrate` and takes its answer: a revision of its own.
pub(super) fn rewrite(desk: &mut Desk<'_>) -> Result<(), Fault> {
    let timers = ask::timers(&desk.entity);
    let Some(view) = ask::entity_view(&desk.entity, &timers) else { return Ok(()) };
    let refused = |r: Reason| Fault::new(r.code, r.message);
    let answer = desk.machine.ask(|rules| rules.migrate(&view));
    let migrated = answer.and_then(|answer| answer.map_err(refused)).map_err(check::fault)?;
    let Some(state) = desk.machine.graph.state(&migrated.state).cloned() else {
        let message = format!("`migrate` went to `{}`, which the rules do not declare", shown(&migrated.state));
        return Err(Fault::new("undeclared-state", message));
    };
    check::data(migrated.data.len())?;
    let previous_state = desk.entity.state.replace(state);
    desk.entity.data = migrated.data.into();
    desk.entity.schema = desk.machine.graph.description().schema;
    desk.revise(Step {
        cause: Cause::Migration,
        event: None,
        timer: None,
        time: desk.now,
        consumed: None,
        previous_state,
        effects_digest: effects::digest(&[]),
        code: None,
        notes: Vec::new(),
    });
    if desk.machine.graph.is_terminal(desk.entity.state.as_deref().unwrap_or_default()) {
        desk.drop_timers();
    }
    Ok(())
}

/// A dead letter that no event stands for. A migration's blocks its entity; a timer's never does (R6).
fn bury(desk: &mut Desk<'_>, kind: DeadKind, id: Ref, fault: Fault, timer: Option<(Arc<str>, i64)>) {
    let blocks = kind == DeadKind::Migration;
    let reason = Reason::from(check::fault(fault));
    let row = DeadRow {
        kind,
        class: Verdict::Fault,
        code: reason.code.clone(),
        message: reason.message.clone(),
        entity: Some(desk.entity.id.clone()),
        event: None,
        raw: None,
        position: None::<Position>,
        timer: timer.clone(),
        blocks,
        status: DeadStatus::Open,
        attempts: 1,
        since: desk.now,
        rules: Some(desk.machine.in_force),
        by: None,
        replaced_by: None,
    };
    let entry =
        DeadEntry { id, kind, blocks, class: Verdict::Fault, reason, event: None, position: None, attempts: 1, timer };
    desk.open_dead(entry, row);
}
