//! What happens without an event: timers (R6), deadlines of early events (R4), and the sweep for what was made ready and
//! not decided, because the process that was to decide it died (R7).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use seqgate_decide::decide::Input;
use seqgate_decide::machine::{Machine, Machines};
use seqgate_decide::verdict::DeferReason;

use super::RunError;
use super::engine::{Act, Engine};
use super::partition::Progress;
use crate::store::DueTimer;
use crate::store::views::{DeferredFilter, Page};

/// How many rows of each kind one round takes.
const ROUND: u32 = 500;

/// Decides what was left ready; gives the number of entities. Stays 0 without kills.
pub(super) async fn sweep(engine: &Engine, machines: &mut Machines) -> Result<u64, RunError> {
    let mut swept = 0;
    let mut known = BTreeSet::new();
    loop {
        let ready = engine.store.ready_entities(ROUND).await?;
        let new: BTreeSet<_> = ready.into_iter().filter(|e| known.insert(e.clone())).collect();
        if new.is_empty() {
            return Ok(swept);
        }
        swept += new.len() as u64;
        engine.release(machines, new).await?;
    }
}

/// Asks events again that wait because the rules could not read their entity's data: other rules may be in force (R8).
pub(super) async fn unreadable(engine: &Engine, machines: &mut Machines) -> Result<(), RunError> {
    let filter = DeferredFilter { reason: Some(DeferReason::Schema), ..DeferredFilter::default() };
    let mut page = Page::first(ROUND);
    let layouts = |m: &Machine| {
        let description = m.graph.description();
        (m.setup.name.clone(), [&[description.schema], &*description.reads].concat())
    };
    let readable: BTreeMap<_, _> = machines.iter().map(layouts).collect();
    loop {
        let listed = engine.store.deferred(&filter, &page).await?;
        let waiting: BTreeSet<_> = listed.items.into_iter().map(|w| w.event.entity.clone()).collect();
        let mut again = BTreeSet::new();
        for id in waiting {
            let schema = engine.store.entity(&id).await?.map(|e| e.schema);
            if readable.get(&id.machine).zip(schema).is_some_and(|(layouts, schema)| layouts.contains(&schema)) {
                again.insert(id);
            }
        }
        engine.release(machines, again).await?;
        match listed.next {
            Some(next) => page = Page::after(ROUND, next),
            None => return Ok(()),
        }
    }
}

/// Refuses early events whose deadline is over. Those of a blocked entity stay what they are, and are passed by.
pub(super) async fn deadlines(engine: &Engine, machines: &mut Machines) -> Result<(), RunError> {
    let now = engine.clock.now();
    let mut tried = BTreeSet::new();
    loop {
        let overdue = engine.store.overdue_early(now, ROUND + tried.len() as u32).await?;
        let new: BTreeSet<_> = overdue.into_iter().map(|e| e.entity).filter(|e| !tried.contains(e)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for entity in new {
            tried.insert(entity.clone());
            if engine.setups.iter().any(|s| s.name == entity.machine) {
                tracing::info!(entity = super::named(&entity), "early events are past their deadline");
                engine.act(machines, &Input::Deadline(entity.clone()), Act::Overdue(entity)).await?;
            }
        }
    }
}

/// Fires timers that are due and whose partitions were read far enough; gives their number.
pub(super) async fn timers(
    engine: &Engine,
    machines: &mut Machines,
    progress: &[Arc<Progress>],
) -> Result<u64, RunError> {
    let now = engine.clock.now();
    let caught_up = progress.iter().map(|p| p.caught_up.load(Ordering::SeqCst)).min().unwrap_or(now);
    let (mut fired, mut tried) = (0, BTreeSet::new());
    loop {
        // An overdue timer must not beat the event that still lies in the log (R6).
        let due = engine.store.due_timers(now.min(caught_up), ROUND + tried.len() as u32).await?;
        let new: Vec<_> = due.into_iter().filter(|t| tried.insert((t.entity.clone(), t.name.clone()))).collect();
        if new.is_empty() {
            return Ok(fired);
        }
        for timer in new.iter().filter(|t| engine.setups.iter().any(|s| s.name == t.entity.machine)) {
            fired += u64::from(fire(engine, machines, timer).await?);
        }
    }
}

async fn fire(engine: &Engine, machines: &mut Machines, timer: &DueTimer) -> Result<bool, RunError> {
    let act = Act::Fired(timer.entity.clone(), timer.name.clone());
    let input = Input::Timer { entity: timer.entity.clone(), name: timer.name.clone() };
    match engine.act(machines, &input, act).await {
        Ok(decision) => {
            let (verdict, code) = (decision.outcome.verdict.name(), decision.outcome.code);
            tracing::info!(entity = super::named(&timer.entity), timer = &*timer.name, verdict, code, "timer");
            Ok(true)
        }
        // An event came in between and cancelled or held it: that is what it waits for.
        Err(RunError::Refused(reason)) => {
            tracing::debug!(entity = super::named(&timer.entity), timer = &*timer.name, code = reason.code, "held");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
