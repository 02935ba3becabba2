//! Properties of the generator and of the oracle over many seeds.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use seqgate_model::{
    Act, Coverage, EntityId, History, Meaning, Observed, Oracle, Outcome, Step, Verdict, diff, replay, serial, shrink,
};

const SEEDS: u64 = 500;

fn size(seed: u64) -> usize {
    10 + (seed % 51) as usize
}

#[test]
fn five_hundred_seeds_reach_everything_that_the_rules_tell_apart() {
    let mut all = Coverage::default();
    for seed in 0..SEEDS {
        let (history, recorded) = History::generate_recorded(seed, size(seed));
        let replayed = replay(&history, &recorded);
        assert_eq!(replayed.complaints, Vec::<String>::new(), "seed {seed}");
        sums_up(seed, &history, &replayed.observed);
        all.merge(&replayed.coverage);
    }
    println!("{all}");
    assert_eq!(all.missing(), Vec::<String>::new());
    assert_eq!(all.unlisted(), Vec::<String>::new());
}

/// G6: received = the sum of verdicts, per partition.
fn sums_up(seed: u64, history: &History, observed: &Observed) {
    let mut received: BTreeMap<String, u64> = BTreeMap::new();
    for step in &history.steps {
        if let Step::Deliver(d) = step {
            *received.entry(format!("{}[{}]", d.source, d.partition)).or_default() += 1;
        }
    }
    let mut counted: BTreeMap<String, u64> = BTreeMap::new();
    for ((source, partition, _), count) in &observed.counters {
        if !source.starts_with("repair:") {
            *counted.entry(format!("{source}[{partition}]")).or_default() += count;
        }
    }
    assert_eq!(counted, received, "seed {seed}");
    let waiting = observed.inbox.values().filter(|row| row.verdict == Verdict::Deferred).count();
    assert_eq!(waiting, observed.waiting.len(), "seed {seed}");
}

#[test]
fn a_seed_is_a_history() {
    for seed in 0..20 {
        assert_eq!(History::generate(seed, 30), History::generate(seed, 30));
    }
    assert_ne!(History::generate(1, 30).steps, History::generate(2, 30).steps);
}

/// What the generator calls readable is JSON with the attributes that it says, and the data is the slice that it says.
#[test]
fn lines_mean_what_they_are_said_to_mean() {
    for seed in 0..200 {
        let history = History::generate(seed, 30);
        for step in &history.steps {
            let Step::Deliver(d) = step else { continue };
            assert!(!d.bytes.contains(&b'\n'));
            let event = match &d.meaning {
                Meaning::Event(event) => event,
                Meaning::Malformed { entity, .. } => {
                    addressed(&d.bytes, entity.as_ref());
                    continue;
                }
            };
            let text = std::str::from_utf8(&d.bytes).unwrap();
            // serde_json stops at depth 128 by itself, so the deepest data is looked at in the text only.
            if text.contains("[[[[") {
                continue;
            }
            let line: BTreeMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(text).unwrap();
            let string = |name: &str| serde_json::from_str::<String>(line[name].get()).unwrap();
            assert_eq!((string("id"), string("subject")), (event.id.clone(), event.key.clone()));
            assert_eq!((string("type"), string("machine")), (event.kind.clone(), event.machine.clone()));
            let version = line.get("entityversion").map(|v| v.get().trim_matches('"').to_owned());
            assert_eq!(version.filter(|v| v != "null"), event.version.map(|v| v.to_string()));
            if let (Some(raw), true) = (line.get("data"), event.value.is_some()) {
                assert_eq!(raw.get().as_bytes(), event.data);
            }
        }
    }
}

/// A malformed line that still concerns an entity is an object that names it.
fn addressed(bytes: &[u8], entity: Option<&EntityId>) {
    let Some(entity) = entity else { return };
    let text = std::str::from_utf8(bytes).unwrap();
    if text.contains("[[[[") {
        return;
    }
    let line: BTreeMap<String, Box<serde_json::value::RawValue>> = serde_json::from_str(text).unwrap();
    let string = |name: &str| serde_json::from_str::<String>(line[name].get()).unwrap();
    assert_eq!((string("machine"), string("subject")), (entity.machine.clone(), entity.key.clone()));
}

#[test]
fn a_difference_is_named() {
    let (history, recorded) = History::generate_recorded(3, 30);
    let observed = replay(&history, &recorded).observed;
    let mut other = observed.clone();
    let id = other.entities.keys().next().unwrap().clone();
    other.entities.get_mut(&id).unwrap().version += 1;
    let found = diff(&observed, &other);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with(&format!("entity {id}: should be")), "{found:?}");
    assert_eq!(diff(&observed, &observed), Vec::<String>::new());
}

/// A failure that needs two things stays with what these two need.
#[test]
fn a_failing_history_shrinks_to_what_fails() {
    let fork = |h: &History| replay(h, &serial(h)).coverage.count("conflict", "fork") > 0;
    let seed = (0..).find(|seed| fork(&History::generate(*seed, 60))).unwrap();
    let history = History::generate(seed, 60);
    let small = shrink(&history, fork);
    assert!(fork(&small));
    assert!(small.steps.len() <= 4, "{} of {} steps", small.steps.len(), history.steps.len());
    let mut ends: BTreeMap<&str, u64> = BTreeMap::new();
    for step in &small.steps {
        if let Step::Deliver(d) = step
            && !d.replay
        {
            let end = ends.entry(&d.source).or_default();
            assert_eq!(d.position, *end);
            *end += d.bytes.len() as u64 + 1;
        }
    }
}

/// Deciding it all again from the same acts gives the same.
#[test]
fn replay_is_deterministic_and_serial_is_admissible() {
    for seed in 0..50 {
        let history = History::generate(seed, 40);
        let acts = serial(&history);
        let (a, b) = (replay(&history, &acts), replay(&history, &acts));
        assert_eq!(a.complaints, Vec::<String>::new(), "seed {seed}");
        assert_eq!((a.outcomes, a.observed), (b.outcomes, b.observed), "seed {seed}");
    }
}

/// An entity's own change releases its own waiting events at once: only other entities are left ready.
#[test]
fn no_delivery_leaves_its_own_entity_ready() {
    for seed in 0..200 {
        let history = History::generate(seed, 40);
        let mut oracle = Oracle::new(&history.setup);
        for act in serial(&history) {
            let before = oracle.ready();
            oracle.act(&history, &act);
            let Act::Deliver(i) = act else { continue };
            let Step::Deliver(d) = &history.steps[i] else {
                continue;
            };
            if let Meaning::Event(event) = &d.meaning {
                let left = oracle.ready().contains(&event.entity());
                assert!(before.contains(&event.entity()) || !left, "seed {seed}, step {i}");
            }
        }
    }
}

/// G3: a whole source delivered again changes nothing but duplicate counts.
#[test]
fn delivered_again_everything_is_a_duplicate() {
    for seed in 0..200 {
        let mut history = History::generate(seed, 30);
        let before = replay(&history, &serial(&history)).observed;
        let end = history.steps.len();
        let again: Vec<Step> = history.steps.iter().filter_map(again).collect();
        history.steps.extend(again);
        let after = replay(&history, &serial(&history));
        let verdicts = &after.outcomes[after.outcomes.len() - (history.steps.len() - end)..];
        let duplicate = Outcome::Decided(Verdict::Duplicate, None);
        assert!(verdicts.iter().all(|v| *v == duplicate), "seed {seed}");
        assert_eq!(before.entities, after.observed.entities, "seed {seed}");
        assert_eq!(before.outbox, after.observed.outbox, "seed {seed}");
        assert_eq!(before.waiting, after.observed.waiting, "seed {seed}");
        assert_eq!(before.letters, after.observed.letters, "seed {seed}");
    }
}

/// The line at a new position; not a malformed one, which is malformed again.
fn again(step: &Step) -> Option<Step> {
    match step {
        Step::Deliver(d) if !d.replay && matches!(d.meaning, Meaning::Event(_)) => {
            let mut d = d.clone();
            d.position += 1 << 40;
            Some(Step::Deliver(d))
        }
        _ => None,
    }
}

/// A partition's lines out of order, and a ready waiter passed by, are complained of.
#[test]
fn orders_that_the_rules_forbid_are_complained_of() {
    let ready = |h: &History| serial(h).iter().any(|a| matches!(a, Act::Ready(_)));
    let seed = (0..).find(|seed| ready(&History::generate(*seed, 40))).unwrap();
    let history = History::generate(seed, 40);
    let mut acts = serial(&history);
    acts.retain(|a| !matches!(a, Act::Ready(_)));
    assert!(!replay(&history, &acts).complaints.is_empty());
    let delivered: Vec<usize> = (0..acts.len()).filter(|i| matches!(acts[*i], Act::Deliver(_))).collect();
    let mut swapped = serial(&history);
    swapped.retain(|a| !matches!(a, Act::Ready(_)));
    let last = *delivered.last().unwrap();
    swapped.swap(delivered[0], last);
    assert!(replay(&history, &swapped).complaints.iter().any(|c| c.contains("same partition")));
}
