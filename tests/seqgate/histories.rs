//! Simulated histories: the core against the independent oracle (G1, G3, G6, G8; R1 to R6).
//!
//! Seeds come from the environment for campaigns: `SEQGATE_SEEDS` (how many), `SEQGATE_SEED_FROM`, or one `SEQGATE_SEED`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use seqgate::store::{Faults, Point};
use seqgate_model::{Coverage, History, diff, in_logs, replay, shrink};

use crate::sim::real::Way;
use crate::sim::{drive, real};

/// Seeds of a normal run.
const SEEDS: u64 = 2_000;

/// The seeds to run: from, and how many.
pub fn seeds(normal: u64) -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().map(|v| v.parse().unwrap_or_else(|_| panic!("{name}={v}?")));
    match number("SEQGATE_SEED") {
        Some(seed) => (seed, 1),
        None => (number("SEQGATE_SEED_FROM").unwrap_or(1), number("SEQGATE_SEEDS").unwrap_or(normal)),
    }
}

/// How many deliveries a seed's history has, about.
pub fn size(seed: u64) -> usize {
    10 + (seed % 51) as usize
}

/// Everything in which the core and the oracle differ.
fn differences(history: &History) -> (Vec<String>, Coverage) {
    let ran = drive::run(history);
    let oracle = replay(history, &ran.acts);
    let mut found = ran.misread;
    found.extend(oracle.complaints.iter().map(|c| format!("order: {c}")));
    if ran.swept > 0 {
        found.push(format!("{} waiting events were left to the sweep", ran.swept));
    }
    for ((act, got), should) in ran.acts.iter().zip(&ran.outcomes).zip(&oracle.outcomes) {
        if let Some(got) = got.filter(|got| got != should) {
            found.push(format!("{act:?}: should be {should:?}, is {got:?}"));
        }
    }
    found.extend(diff(&oracle.observed, &ran.observed));
    (found, oracle.coverage)
}

/// How many failing seeds are named before a run gives up.
const MOST_FAILURES: usize = 10;

#[test]
fn the_core_agrees_with_the_oracle() {
    let (from, n) = seeds(SEEDS);
    let mut coverage = Coverage::default();
    let mut failed: Vec<(u64, Vec<String>)> = Vec::new();
    for seed in from..from + n {
        let history = History::generate(seed, size(seed));
        match checked(&history) {
            (found, Some(reached)) if found.is_empty() => coverage.merge(&reached),
            (found, _) => failed.push((seed, found)),
        }
        if failed.len() == MOST_FAILURES {
            break;
        }
    }
    if let Some((seed, _)) = failed.first() {
        failed.iter().for_each(|(seed, found)| println!("seed {seed}: {}", found.join("\n    ")));
        explain(&History::generate(*seed, size(*seed)), |h| checked(h).0);
        panic!("{} seeds differ from the oracle; rerun the first with: tests/run --seed {seed}", failed.len());
    }
    println!("{coverage}");
    if n >= SEEDS {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "never reached in {n} seeds");
    }
}

/// How many of the normal run's histories go the real way.
const REAL: u64 = 240;

/// The same on the real way: bytes in files, components, the runner, SQLite, restarts; rows compared.
#[test]
fn the_program_agrees_with_the_oracle() {
    agrees(REAL, Way::Files);
}

/// The same through the ingest and its log.
#[test]
fn the_program_agrees_with_the_oracle_through_the_ingest() {
    agrees(REAL / 2, Way::Logs);
}

fn agrees(normal: u64, way: Way) {
    let (from, n) = seeds(normal * 2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (mut ran, mut redone, mut coverage) = (0, 0, Coverage::default());
    for seed in from..from + n {
        let history = History::generate(seed, size(seed));
        if history.setup.markers {
            continue;
        }
        let (found, reached, again) = on_the_real_way(&runtime, &history, way);
        if !found.is_empty() {
            println!("seed {seed} differs on the real way, {way:?}: {}", found.join("\n    "));
            explain(&history, |h| on_the_real_way(&runtime, h, way).0);
            panic!("seed {seed} differs on the real way, {way:?}; rerun it with: tests/run --seed {seed}");
        }
        coverage.merge(&reached);
        (ran, redone) = (ran + 1, redone + again);
    }
    println!("{ran} histories on the real way, {redone} batches redone\n{coverage}");
    assert!(n < normal * 2 || ran >= normal * 5 / 6, "only {ran} of {n} histories go the real way");
}

/// Everything in which the program and the oracle differ, what the run reached, and how often it redid a batch.
fn on_the_real_way(runtime: &tokio::runtime::Runtime, history: &History, way: Way) -> (Vec<String>, Coverage, u64) {
    let in_logs = (way == Way::Logs).then(|| in_logs(history));
    let history = in_logs.as_ref().unwrap_or(history);
    let run = runtime.block_on(real::run_history(history, way, Faults::none()));
    let oracle = replay(history, &run.acts);
    let mut found: Vec<String> = oracle.complaints.iter().map(|c| format!("order: {c}")).collect();
    found.extend(diff(&oracle.observed, &run.observed));
    if run.swept > 0 {
        found.push(format!("{} entities were left to the sweep", run.swept));
    }
    (found, oracle.coverage, run.redone)
}

/// How many histories meet a store whose connection breaks.
const BROKEN: u64 = 24;

/// The same while every few commits break: before anything is on disk, with COMMIT sent and not carried out, and with
/// COMMIT carried out and not answered. What is retried, redone or settled leaves no trace (G2, G3; R7).
#[test]
fn a_store_that_breaks_changes_nothing() {
    let (from, n) = seeds(BROKEN);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let broken: Arc<[AtomicU64; 3]> = Arc::default();
    for seed in from..from + n {
        let history = History::generate(seed, size(seed));
        if history.setup.markers {
            continue;
        }
        let (reached, count) = (AtomicU64::new(seed), broken.clone());
        let faults = Faults::new(move |point| {
            let kind = match point {
                Point::BeforeBegin => return false,
                Point::MidWrite => 0,
                Point::BeforeCommit => 1,
                Point::AfterCommit => 2,
            };
            let breaks = reached.fetch_add(1, Relaxed) % 7 == 6;
            count[kind].fetch_add(u64::from(breaks), Relaxed);
            breaks
        });
        let run = runtime.block_on(real::run_history(&history, Way::Files, faults));
        let oracle = replay(&history, &run.acts);
        let mut found = oracle.complaints;
        found.extend(diff(&oracle.observed, &run.observed));
        assert_eq!(found, Vec::<String>::new(), "seed {seed}; rerun it with: tests/run --seed {seed}");
    }
    let counts = broken.each_ref().map(|n| n.load(Relaxed));
    println!("broken in the middle, before and after COMMIT: {counts:?}");
    assert!(n < BROKEN || counts.iter().all(|n| *n > 20), "{counts:?}");
}

/// The differences, a panic of the core among them.
fn checked(history: &History) -> (Vec<String>, Option<Coverage>) {
    match std::panic::catch_unwind(|| differences(history)) {
        Ok((found, coverage)) => (found, Some(coverage)),
        Err(_) => (vec!["the core panicked".into()], None),
    }
}

/// The smallest part of a history that still differs.
fn explain(history: &History, differences: impl Fn(&History) -> Vec<String>) {
    let found = |h: &History| {
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| differences(h)));
        ran.unwrap_or_else(|_| vec!["it panicked".into()])
    };
    let small = shrink(history, |h| !found(h).is_empty());
    println!("shrunk to {} steps, which differ:", small.steps.len());
    found(&small).iter().for_each(|line| println!("  {line}"));
    small.setup.machines.iter().for_each(|(name, setup)| println!("  {name}: {setup:?}"));
    println!("  {:?}", small.setup.sources);
    small.steps.iter().enumerate().for_each(|(i, step)| println!("  {i} {}", shown(step)));
}

fn shown(step: &seqgate_model::Step) -> String {
    use seqgate_model::Step;
    match step {
        Step::Deliver(d) | Step::Repair(d) => {
            let kind = if matches!(step, Step::Repair(_)) { "repair" } else { "deliver" };
            format!("{kind} {}/{}@{} {}", d.source, d.partition, d.position, String::from_utf8_lossy(&d.bytes))
        }
        other => format!("{other:?}"),
    }
}
