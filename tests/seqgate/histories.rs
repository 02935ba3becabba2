//! Simulated histories: the core against the independent oracle (G1, G3, G6, G8; R1 to R6).
//!
//! Seeds come from the environment for campaigns: `SEQGATE_SEEDS` (how many), `SEQGATE_SEED_FROM`, or one `SEQGATE_SEED`.

use seqgate_model::{Coverage, History, diff, replay, shrink};

use crate::sim::drive;

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

#[test]
fn the_core_agrees_with_the_oracle() {
    let (from, n) = seeds(SEEDS);
    let mut coverage = Coverage::default();
    for seed in from..from + n {
        let history = History::generate(seed, size(seed));
        let ran = std::panic::catch_unwind(|| differences(&history));
        match ran {
            Ok((found, reached)) if found.is_empty() => coverage.merge(&reached),
            Ok((found, _)) => fail(seed, &history, found),
            Err(_) => fail(seed, &history, vec!["the core panicked".into()]),
        }
    }
    println!("{coverage}");
    if n >= SEEDS {
        assert_eq!(coverage.missing(), Vec::<String>::new(), "never reached in {n} seeds");
    }
}

fn fail(seed: u64, history: &History, found: Vec<String>) {
    let broken = |h: &History| std::panic::catch_unwind(|| !differences(h).0.is_empty()).unwrap_or(true);
    let small = shrink(history, broken);
    let small_found = std::panic::catch_unwind(|| differences(&small).0).unwrap_or_default();
    println!("seed {seed} differs:");
    found.iter().for_each(|line| println!("  {line}"));
    println!("shrunk to {} steps, which differ:", small.steps.len());
    small_found.iter().for_each(|line| println!("  {line}"));
    println!("{:#?}", small.setup);
    small.steps.iter().enumerate().for_each(|(i, step)| println!("  {i} {}", shown(step)));
    panic!("seed {seed} differs from the oracle; rerun it with: tests/run --seed {seed}");
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
