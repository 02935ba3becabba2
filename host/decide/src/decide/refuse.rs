//! R5: what becomes of a refused event.

use std::sync::Arc;

use crate::event::Event;
use crate::ids::Ref;
use crate::rules::{Failure, Fault, Reason};
use crate::setup::Policy;
use crate::verdict::Verdict;
use crate::world::{DeadEntry, DeadKind};
use crate::writes::{Cause, DeadRow, DeadStatus, DeadUpdate};

use super::ask;
use super::check;
use super::desk::Desk;
use super::settle::{self, Stand};

/// Parks, skips or compensates, as the class's policy says. The verdict is the class either way.
pub(super) fn settle(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    stand: &Stand,
    class: Verdict,
    reason: Reason,
    unknown: bool,
) {
    match policy(desk, class, unknown) {
        Policy::Park => park(desk, event, stand, class, &reason),
        Policy::Skip => {
            bury(desk, event, stand, class, &reason, DeadStatus::Skipped);
            settle::consume(desk, event, Cause::Skip, Some(reason.code));
        }
        Policy::Compensate => match ask::compensate(desk, event, &failure(class, reason.clone())) {
            Ok(transition) => {
                bury(desk, event, stand, class, &reason, DeadStatus::Compensated);
                settle::accept(desk, event, transition, Cause::Compensation, Some(reason.code));
            }
            Err(refusal) => {
                let message =
                    format!("{}; `compensate` refused: {} ({})", reason.message, refusal.message, refusal.code);
                park(desk, event, stand, class, &check::reason(Reason { code: reason.code, message }));
            }
        },
    }
}

pub(super) fn policy(desk: &Desk<'_>, class: Verdict, unknown: bool) -> Policy {
    let policies = desk.machine.setup.policies;
    match class {
        Verdict::Malformed => policies.malformed,
        Verdict::Fault => policies.fault,
        _ if unknown => policies.unknown.unwrap_or(policies.illegal),
        _ => policies.illegal,
    }
}

pub(super) fn failure(class: Verdict, reason: Reason) -> Failure {
    match class {
        Verdict::Malformed => Failure::Malformed(reason),
        Verdict::Fault => Failure::Fault(Fault { code: reason.code, message: reason.message }),
        _ => Failure::Illegal(reason),
    }
}

fn park(desk: &mut Desk<'_>, event: &Arc<Event>, stand: &Stand, class: Verdict, reason: &Reason) {
    if let Stand::Dead(entry) = stand {
        let attempts = entry.attempts + 1;
        if let Some(open) = desk.entity.dead.iter_mut().find(|d| d.id == entry.id) {
            (open.class, open.reason, open.attempts) = (class, reason.clone(), attempts);
        }
        desk.dirty = true;
        let refusal = Some((class, reason.code.clone(), reason.message.clone()));
        desk.amend_dead(
            entry.id,
            DeadUpdate { refusal, attempts: Some(attempts), at: desk.now, ..DeadUpdate::default() },
        );
        return;
    }
    settle::leave(desk, stand, DeadStatus::Redriven);
    let row = dead_row(desk, event, stand, class, reason, DeadStatus::Open);
    let entry = DeadEntry {
        id: letter(event, stand),
        kind: DeadKind::Event,
        blocks: true,
        class,
        reason: reason.clone(),
        event: Some(event.clone()),
        position: row.position.clone(),
        attempts: 1,
        timer: None,
    };
    desk.open_dead(entry, row);
}

/// A dead letter that is closed from the start, or one that was open and is closed now.
fn bury(desk: &mut Desk<'_>, event: &Arc<Event>, stand: &Stand, class: Verdict, reason: &Reason, status: DeadStatus) {
    if let Stand::Dead(entry) = stand {
        let change = DeadUpdate {
            status: Some(status),
            refusal: Some((class, reason.code.clone(), reason.message.clone())),
            attempts: Some(entry.attempts + 1),
            by: desk.by.clone(),
            at: desk.now,
            ..DeadUpdate::default()
        };
        desk.close_dead(entry.id, change);
        return;
    }
    settle::leave(desk, stand, status);
    let row = dead_row(desk, event, stand, class, reason, status);
    desk.writes.dead.insert(letter(event, stand), crate::writes::DeadWrite::Put(row));
}

/// The letter's name. An event that waited again after a redrive, and is parked once more, gets a letter of its own.
fn letter(event: &Event, stand: &Stand) -> Ref {
    match stand {
        Stand::Waiting(row) => Ref::of_letter(&event.key, row.arrival),
        _ => Ref::of_event(&event.key),
    }
}

fn dead_row(
    desk: &Desk<'_>,
    event: &Arc<Event>,
    stand: &Stand,
    class: Verdict,
    reason: &Reason,
    status: DeadStatus,
) -> DeadRow {
    DeadRow {
        kind: DeadKind::Event,
        class,
        code: reason.code.clone(),
        message: reason.message.clone(),
        entity: Some(event.entity.clone()),
        event: Some(event.clone()),
        raw: None,
        position: stand.position().cloned(),
        timer: None,
        blocks: status == DeadStatus::Open,
        status,
        attempts: 1,
        since: desk.now,
        rules: Some(desk.machine.in_force),
        by: None,
        replaced_by: None,
    }
}
