//! What waits is asked again: after every change of its entity, and when another entity has come far enough (R3, R4).

use crate::setup::Ordering;
use crate::verdict::{DeferReason, Verdict};
use crate::world::{Need, Waiting};

use super::desk::Desk;
use super::settle::{self, Stand};
use super::{Outcome, RELEASE_BYTES, RELEASE_EVENTS, judge};

/// Asks, if something changed since the last time.
pub(super) fn after(desk: &mut Desk<'_>) -> Result<(), Need> {
    if std::mem::take(&mut desk.moved) { pass(desk) } else { Ok(()) }
}

/// Asks an entity whose events were marked ready. The marks go first: who is not asked now is asked when its turn comes.
pub(super) fn ready(desk: &mut Desk<'_>) -> Result<(), Need> {
    let marked: Vec<Waiting> = desk.entity.waiting.iter().filter(|w| w.ready).cloned().collect();
    for mut row in marked {
        row.ready = false;
        desk.put_waiting(row)?;
    }
    pass(desk)
}

/// Refuses early events whose deadline is over, then asks the others.
pub(super) fn overdue(desk: &mut Desk<'_>) -> Result<(), Need> {
    let now = desk.now;
    let late = |w: &&Waiting| w.reason == DeferReason::Early && w.deadline.is_some_and(|d| d <= now);
    let rows: Vec<Waiting> = desk.entity.waiting.iter().filter(late).cloned().collect();
    for row in rows {
        // An earlier one's refusal may have changed the entity, and with it what is early.
        if desk.entity.blocked() || !desk.entity.waiting.contains(&row) {
            continue;
        }
        let judgement = judge::waiting(desk, &row, true)?;
        settle::settle(desk, &row.event.clone(), Stand::Waiting(Box::new(row)), judgement)?;
        after(desk)?;
    }
    Ok(())
}

/// How much one decision may still release. What is asked and goes on waiting costs nothing: a pass that asked without
/// releasing anything would begin with the same events the next time.
struct Budget {
    events: usize,
    bytes: usize,
}

impl Budget {
    fn is_spent(&self) -> bool {
        self.events == 0 || self.bytes == 0
    }

    fn spend(&mut self, bytes: usize) {
        self.events -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

fn pass(desk: &mut Desk<'_>) -> Result<(), Need> {
    let mut budget = Budget { events: RELEASE_EVENTS, bytes: RELEASE_BYTES };
    match desk.ordering() {
        Ordering::Versioned => versioned(desk, &mut budget)?,
        Ordering::Causal | Ordering::Arrival => while unversioned(desk, &mut budget)? {},
        Ordering::Snapshot => while snapshot(desk, &mut budget)? {},
    }
    if budget.is_spent()
        && let Some(first) = desk.entity.waiting.first()
    {
        let arrival = first.arrival;
        desk.mark_own_ready(arrival);
    }
    desk.moved = false;
    Ok(())
}

/// First those that were passed over, then the one that follows; until it waits again, or nothing follows.
fn versioned(desk: &mut Desk<'_>, budget: &mut Budget) -> Result<(), Need> {
    while !desk.entity.blocked() && !budget.is_spent() {
        let current = desk.entity.version;
        let of = |passed: bool| {
            let turn = |w: &&Waiting| match passed {
                true => w.event.predecessor() < current,
                false => w.event.predecessor() == current,
            };
            desk.entity.waiting.iter().filter(turn).min_by_key(|w| w.event.version)
        };
        let Some(row) = of(true).or_else(|| of(false)).cloned() else { break };
        if ask(desk, row, budget)?.verdict == Verdict::Deferred {
            break;
        }
    }
    Ok(())
}

/// One round over the waiting events in their order; `true` when one of them left, and the round is to start again.
fn unversioned(desk: &mut Desk<'_>, budget: &mut Budget) -> Result<bool, Need> {
    let arrival = desk.ordering() == Ordering::Arrival;
    let mut rows = desk.entity.waiting.clone();
    if !arrival {
        rows.sort_by_key(|w| (w.event.logical_time.unwrap_or(0), w.arrival));
    }
    let mut held = false;
    for row in rows {
        if desk.entity.blocked() || budget.is_spent() {
            return Ok(false);
        }
        let early = row.reason == DeferReason::Early;
        if arrival && held && !early {
            continue;
        }
        if !judge::is_askable(desk, &row)? {
            held |= !early;
            continue;
        }
        let outcome = ask(desk, row, budget)?;
        if outcome.verdict != Verdict::Deferred {
            return Ok(true);
        }
        held |= outcome.defer != Some(DeferReason::Early);
    }
    Ok(false)
}

/// One round in the order of versions; those that were passed over come first by themselves.
fn snapshot(desk: &mut Desk<'_>, budget: &mut Budget) -> Result<bool, Need> {
    let mut rows = desk.entity.waiting.clone();
    rows.sort_by_key(|w| w.event.version);
    for row in rows {
        let passed = row.event.version <= Some(desk.entity.version);
        if budget.is_spent() {
            return Ok(false);
        }
        if (passed || judge::is_askable(desk, &row)?) && ask(desk, row, budget)?.verdict != Verdict::Deferred {
            return Ok(true);
        }
    }
    Ok(false)
}

fn ask(desk: &mut Desk<'_>, row: Waiting, budget: &mut Budget) -> Result<Outcome, Need> {
    let event = row.event.clone();
    let judgement = judge::waiting(desk, &row, false)?;
    let outcome = settle::settle(desk, &event, Stand::Waiting(Box::new(row)), judgement)?;
    if outcome.verdict != Verdict::Deferred {
        budget.spend(event.data.len());
    }
    Ok(outcome)
}
