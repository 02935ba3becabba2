//! What waits is asked again: after every change of its entity, and when another entity has come far enough (R3, R4).

use crate::machine::ReleaseLimits;
use crate::setup::Ordering;
use crate::verdict::{DeferReason, Verdict};
use crate::world::{Need, Waiting};

use super::desk::Desk;
use super::settle::{self, Stand};
use super::{Outcome, judge};

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
    let late = |w: &Waiting| w.reason == DeferReason::Early && w.deadline.is_some_and(|d| d <= now);
    let due: Vec<u64> = desk.entity.waiting.iter().filter(|w| late(w)).map(|w| w.arrival).collect();
    for arrival in due {
        // An earlier one's refusal may have changed the entity, and with it what is early.
        let Some(row) = desk.waiting(arrival).filter(|w| late(w) && !desk.entity.blocked()).cloned() else { continue };
        ask(desk, row, true)?;
        after(desk)?;
    }
    Ok(())
}

/// How much one decision may still release. Who is asked and goes on waiting costs nothing: each pass starts with the
/// first again, and would never come past those.
struct Budget(ReleaseLimits);

impl Budget {
    fn is_spent(&self) -> bool {
        self.0.events == 0 || self.0.bytes == 0
    }

    fn spend(&mut self, bytes: usize) {
        self.0.events = self.0.events.saturating_sub(1);
        self.0.bytes = self.0.bytes.saturating_sub(bytes);
    }
}

fn pass(desk: &mut Desk<'_>) -> Result<(), Need> {
    let mut budget = Budget(desk.machine.release);
    match desk.ordering() {
        Ordering::Versioned => versioned(desk, &mut budget)?,
        Ordering::Causal | Ordering::Arrival => while unversioned(desk, &mut budget)? {},
        Ordering::Snapshot => while snapshot(desk, &mut budget)? {},
    }
    desk.moved = false;
    Ok(())
}

/// First those that were passed over, then the one that follows; until it waits again, or nothing follows.
fn versioned(desk: &mut Desk<'_>, budget: &mut Budget) -> Result<(), Need> {
    while !desk.entity.blocked() {
        let current = desk.entity.version;
        let up = desk.entity.waiting.iter().filter(|w| w.event.predecessor() <= current);
        let Some(row) = up.min_by_key(|w| (w.event.predecessor() == current, w.event.version)).cloned() else { break };
        match turn(desk, row, budget)? {
            Turn::Left => {}
            Turn::Waits(_) | Turn::Later => break,
        }
    }
    Ok(())
}

/// One round over the waiting events in their order; `true` when one of them left, and the round is to start again.
fn unversioned(desk: &mut Desk<'_>, budget: &mut Budget) -> Result<bool, Need> {
    let arrival = desk.ordering() == Ordering::Arrival;
    let key = |w: &Waiting| (w.event.logical_time.filter(|_| !arrival).unwrap_or(0), w.arrival);
    let mut held = false;
    for (_, place) in order(desk, key) {
        if desk.entity.blocked() {
            return Ok(false);
        }
        let Some(row) = desk.waiting(place) else { continue };
        let early = row.reason == DeferReason::Early;
        if arrival && held && !early {
            continue;
        }
        if !judge::is_askable(desk, row)? {
            held |= !early;
            continue;
        }
        match turn(desk, row.clone(), budget)? {
            Turn::Left => return Ok(true),
            Turn::Waits(reason) => held |= reason != Some(DeferReason::Early),
            Turn::Later => return Ok(false),
        }
    }
    Ok(false)
}

/// One round in the order of versions; those that were passed over come first by themselves.
fn snapshot(desk: &mut Desk<'_>, budget: &mut Budget) -> Result<bool, Need> {
    for (_, place) in order(desk, |w| (w.event.version, w.arrival)) {
        let Some(row) = desk.waiting(place) else { continue };
        let passed = row.event.version <= Some(desk.entity.version);
        if !passed && !judge::is_askable(desk, row)? {
            continue;
        }
        match turn(desk, row.clone(), budget)? {
            Turn::Left => return Ok(true),
            Turn::Waits(_) => {}
            Turn::Later => return Ok(false),
        }
    }
    Ok(false)
}

/// The places of waiting events, sorted.
fn order<K: Ord>(desk: &Desk<'_>, key: impl Fn(&Waiting) -> (K, u64)) -> Vec<(K, u64)> {
    let mut places: Vec<_> = desk.entity.waiting.iter().map(key).collect();
    places.sort_unstable();
    places
}

/// What came of asking one that waits.
enum Turn {
    Left,
    Waits(Option<DeferReason>),
    /// This decision has released enough.
    Later,
}

fn turn(desk: &mut Desk<'_>, row: Waiting, budget: &mut Budget) -> Result<Turn, Need> {
    if budget.is_spent() {
        desk.mark_own_ready(row.arrival);
        return Ok(Turn::Later);
    }
    let bytes = row.event.data.len();
    let outcome = ask(desk, row, false)?;
    if outcome.verdict == Verdict::Deferred {
        return Ok(Turn::Waits(outcome.defer));
    }
    budget.spend(bytes);
    Ok(Turn::Left)
}

/// Judges a waiting event again. `overdue`: an early one whose deadline is over.
fn ask(desk: &mut Desk<'_>, row: Waiting, overdue: bool) -> Result<Outcome, Need> {
    let event = row.event.clone();
    let judgement = judge::waiting(desk, &row, overdue)?;
    settle::settle(desk, &event, Stand::Waiting(Box::new(row)), judgement)
}
