//! What happens without an event: timers (R6), deadlines of early events (R4), and the sweep for what was made ready and
//! not decided, because the process that was to decide it died (R7).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use seqgate_decide::decide::Input;
use seqgate_decide::machine::Machines;

use super::RunError;
use super::engine::{Act, Engine};
use super::partition::Progress;

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

/// Refuses early events whose deadline is over.
pub(super) async fn deadlines(engine: &Engine, machines: &mut Machines) -> Result<(), RunError> {
    let now = engine.clock.now();
    let overdue = engine.store.overdue_early(now, ROUND).await?;
    let entities: BTreeSet<_> = overdue.into_iter().map(|e| e.entity).collect();
    for entity in entities.into_iter().filter(|e| engine.setups.iter().any(|s| s.name == e.machine)) {
        tracing::info!(entity = super::named(&entity), "early events are past their deadline");
        let act = Act::Overdue(entity.clone());
        engine.act(machines, &Input::Deadline(entity), act).await?;
    }
    Ok(())
}

/// Fires timers that are due and whose partitions were read far enough; gives their number.
pub(super) async fn timers(
    engine: &Engine,
    machines: &mut Machines,
    progress: &[Arc<Progress>],
) -> Result<u64, RunError> {
    let now = engine.clock.now();
    let caught_up = progress.iter().map(|p| p.caught_up.load(Ordering::SeqCst)).min().unwrap_or(now);
    let mut fired = 0;
    // An overdue timer must not beat the event that still lies in the log (R6).
    for timer in engine.store.due_timers(now.min(caught_up), ROUND).await? {
        if !engine.setups.iter().any(|s| s.name == timer.entity.machine) {
            continue;
        }
        let act = Act::Fired(timer.entity.clone(), timer.name.clone());
        let input = Input::Timer { entity: timer.entity.clone(), name: timer.name.clone() };
        match engine.act(machines, &input, act).await {
            Ok(decision) => {
                let (verdict, code) = (decision.outcome.verdict.name(), decision.outcome.code);
                tracing::info!(entity = super::named(&timer.entity), timer = &*timer.name, verdict, code, "timer");
                fired += 1;
            }
            // An event came in between and cancelled or held it: that is what it waits for.
            Err(RunError::Refused(reason)) => {
                tracing::debug!(entity = super::named(&timer.entity), timer = &*timer.name, code = reason.code, "held");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(fired)
}
