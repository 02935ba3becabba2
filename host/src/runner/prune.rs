//! Retention: a round over what is old, in steps that leave the writer to the batches between them (R8).

use std::sync::Arc;
use std::time::{Duration, Instant};

use seqgate_decide::machine::{Machine, Machines};
use tokio::sync::watch;

use super::RunError;
use super::engine::Engine;
use crate::config::{Config, RetentionConfig};
use crate::store::NextStep;
use crate::store::retention::{Horizon, Horizons, Place};

/// The pause between two rounds.
const BETWEEN: Duration = Duration::from_secs(60);
/// How long the round at the end of a run until idle may take. What is left goes next time.
const AT_END: Duration = Duration::from_secs(2);
/// A step pauses for so many times what it took: the batches' transactions come first.
const SHARE: u32 = 3;

/// What a round removed, by table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Removed {
    history: u64,
    inbox: u64,
    intents: u64,
    bases: u64,
}

/// Goes round until told to stop. A store in trouble is left alone until the next round.
pub(super) async fn prune_on(
    engine: Engine,
    config: Config,
    halted: watch::Receiver<bool>,
    halt: Arc<watch::Sender<bool>>,
) -> Result<(), RunError> {
    let ended = rounds(&engine, &config, halted).await;
    if ended.is_err() {
        halt.send_replace(true);
    }
    ended
}

async fn rounds(engine: &Engine, config: &Config, mut halted: watch::Receiver<bool>) -> Result<(), RunError> {
    loop {
        let one = async {
            let horizons = horizons(config, &engine.machines().await?, engine.clock.now());
            round(engine, &horizons, None).await
        };
        let ended = tokio::select! {
            ended = one => ended,
            // A transaction that is dropped is taken back.
            _ = halted.wait_for(|stop| *stop) => return Ok(()),
        };
        match ended {
            Ok(()) => {}
            // The store is in trouble, not we: the next round tries again.
            Err(RunError::Store(error)) if matches!(error.next_step(), NextStep::Retry | NextStep::Settle) => {
                tracing::warn!(error = %super::engine::chain(&error), "what is past its retention stays for now");
            }
            Err(error) => return Err(error),
        }
        if tokio::time::timeout(BETWEEN, halted.wait_for(|stop| *stop)).await.is_ok() {
            return Ok(());
        }
    }
}

/// One round at the end of a run, within a bound.
pub(super) async fn prune_at_end(engine: &Engine, config: &Config, machines: &Machines) -> Result<(), RunError> {
    let horizons = horizons(config, machines, engine.clock.now());
    round(engine, &horizons, Some(AT_END)).await
}

async fn round(engine: &Engine, horizons: &Horizons, within: Option<Duration>) -> Result<(), RunError> {
    let (started, now) = (Instant::now(), engine.clock.now());
    let mut removed = Removed::default();
    for start in Place::starts() {
        let mut place = Some(start);
        while let Some(from) = place {
            let began = Instant::now();
            let step = engine.patiently("prune", || engine.store.prune(horizons, &from, now)).await?;
            removed.bases += step.bases;
            *match from {
                Place::History(_) => &mut removed.history,
                Place::Inbox(..) => &mut removed.inbox,
                Place::Intents(..) => &mut removed.intents,
            } += step.removed;
            place = step.next;
            match within {
                Some(within) if started.elapsed() > within => {
                    tell(&removed);
                    tracing::info!(table = from.table(), "the time for retention is over; the rest goes next time");
                    return Ok(());
                }
                Some(_) => {}
                None => tokio::time::sleep(began.elapsed() * SHARE).await,
            }
        }
    }
    tell(&removed);
    Ok(())
}

fn tell(removed: &Removed) {
    if *removed != Removed::default() {
        let Removed { history, inbox, intents, bases } = *removed;
        tracing::info!(history, inbox, intents, bases, "removed what is past its retention");
    }
}

fn horizons(config: &Config, machines: &Machines, now: i64) -> Horizons {
    let before = |span: Duration| now.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX));
    let one = |m: &Machine| {
        let name = m.setup.name.clone();
        let RetentionConfig { history, inbox, intents } = config.machine(&name)?.retention;
        let terminal =
            m.graph.description().states.iter().filter(|s| s.terminal).map(|s| s.name.as_str().into()).collect();
        let horizon = Horizon { history: before(history), inbox: before(inbox), intents: before(intents), terminal };
        Some((name, horizon))
    };
    machines.iter().filter_map(one).collect()
}
