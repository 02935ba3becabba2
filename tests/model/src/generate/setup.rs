//! Configurations.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::{MachineSetup, Ordering, Policy, Setup, SourceSetup};

const HOUR: i64 = 3_600_000;

pub(super) fn setup(rng: &mut StdRng) -> Setup {
    let machines = [("orders", "order"), ("subscriptions", "subscription"), ("accounts", "account")];
    let machines: BTreeMap<_, _> =
        machines.into_iter().map(|(name, noun)| (name.to_owned(), machine(rng, noun))).collect();
    let mut sources = vec![SourceSetup { name: "shop".to_owned(), partitions: rng.random_range(1..4) }];
    if rng.random_bool(0.4) {
        sources.push(SourceSetup { name: "bank".to_owned(), partitions: rng.random_range(1..3) });
    }
    Setup { machines, sources, markers: rng.random_bool(0.4) }
}

fn machine(rng: &mut StdRng, noun: &str) -> MachineSetup {
    const ORDERINGS: [(Ordering, u32); 4] =
        [(Ordering::Versioned, 4), (Ordering::Causal, 2), (Ordering::Snapshot, 2), (Ordering::Arrival, 2)];
    let ordering = ORDERINGS.choose_weighted(rng, |o| o.1).map_or(Ordering::Versioned, |o| o.0);
    let on_illegal = policy(rng);
    let mut ignore = BTreeSet::new();
    if rng.random_bool(0.7) {
        ignore.insert(format!("{noun}.note_added"));
    }
    if rng.random_bool(0.05) {
        // A type that the rules know; listed, it never reaches them.
        ignore.insert(format!("{noun}.{}", ["cancelled", "frozen"][usize::from(noun == "account")]));
    }
    MachineSetup {
        ordering,
        on_illegal,
        on_malformed: policy(rng),
        on_fault: policy(rng),
        on_unknown: if rng.random_bool(0.7) { on_illegal } else { policy(rng) },
        ignore,
        on_early_wait: matches!(ordering, Ordering::Causal | Ordering::Arrival) && rng.random_bool(0.5),
        early_after: HOUR,
    }
}

fn policy(rng: &mut StdRng) -> Policy {
    [Policy::Park, Policy::Park, Policy::Skip, Policy::Compensate].choose(rng).copied().unwrap_or(Policy::Park)
}
