//! The oracle over a recorded run, and whether the run's order is one that the rules allow.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Act, Coverage, EntityId, EventId, History, Meaning, Observed, Oracle, Outcome, Recorded, Step};

/// What the oracle says of a recorded run.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Of each act, in order.
    pub outcomes: Vec<Outcome>,
    /// At the end.
    pub observed: Observed,
    /// What the run reached.
    pub coverage: Coverage,
    /// Why the order is not admissible; empty where it is.
    pub complaints: Vec<String>,
}

/// Replays a recorded order. It is admissible where
/// * every step is carried out exactly once (a deadline may be split by event), and those of a partition in order;
/// * a waiter that became ready is decided before any later event of its entity from the partition that satisfied it (R3);
/// * at the end nothing is ready.
pub fn replay(history: &History, recorded: &[Act]) -> Replayed {
    let mut oracle = Oracle::new(&history.setup);
    let mut order = Order::default();
    let mut outcomes = Vec::new();
    let mut complaints = Vec::new();
    for act in recorded {
        if !fits(history, act) {
            complaints.push(format!("{act:?} is no step of this history"));
            break;
        }
        complaints.extend(order.before(history, act));
        outcomes.push(oracle.act(history, act));
        order.after(history, act, oracle.ready());
    }
    complaints.extend(order.end(history));
    let (observed, coverage) = (oracle.observed(), oracle.coverage().clone());
    Replayed { outcomes, observed, coverage, complaints }
}

/// The plainest admissible order: step after step, and what is ready at once.
pub fn serial(history: &History) -> Recorded {
    let mut oracle = Oracle::new(&history.setup);
    let mut acts = Recorded::new();
    for i in 0..history.steps.len() {
        acts.extend(serially(&mut oracle, history, i));
    }
    acts
}

/// Carries out one step and what it makes ready; the acts that it took.
pub(crate) fn serially(oracle: &mut Oracle, history: &History, step: usize) -> Recorded {
    let Some(act) = act_of(history, step) else {
        return vec![];
    };
    oracle.act(history, &act);
    let mut acts = vec![act];
    while let Some(entity) = oracle.ready().first().cloned() {
        let ready = Act::Ready(entity);
        oracle.act(history, &ready);
        assert!(acts.len() < 100_000, "{ready:?} never ends");
        acts.push(ready);
    }
    acts
}

/// The act that carries out a step; none for batch boundaries, restarts and hand-overs.
pub fn act_of(history: &History, step: usize) -> Option<Act> {
    match &history.steps[step] {
        Step::Deliver(_) => Some(Act::Deliver(step)),
        Step::Repair(_) => Some(Act::Repair(step)),
        Step::Timer { .. } => Some(Act::Timer(step)),
        Step::Person(_) => Some(Act::Person(step)),
        Step::Rules { .. } => Some(Act::Rules(step)),
        Step::Migrate { .. } => Some(Act::Migrate(step)),
        Step::Import(_) => Some(Act::Import(step)),
        Step::Deadline { .. } => Some(Act::Deadline(step, None)),
        Step::Cut | Step::Restart | Step::HandOver { .. } => None,
    }
}

fn index(act: &Act) -> Option<usize> {
    match act {
        Act::Ready(_) => None,
        Act::Deliver(i)
        | Act::Repair(i)
        | Act::Timer(i)
        | Act::Person(i)
        | Act::Rules(i)
        | Act::Migrate(i)
        | Act::Import(i) => Some(*i),
        Act::Deadline(i, _) => Some(*i),
    }
}

fn fits(history: &History, act: &Act) -> bool {
    let Some(i) = index(act) else { return true };
    let wanted = (i < history.steps.len()).then(|| act_of(history, i)).flatten();
    wanted == Some(act.clone()) || matches!((wanted, act), (Some(Act::Deadline(..)), Act::Deadline(..)))
}

type Partition = (String, u32);

/// The order so far.
#[derive(Default)]
struct Order {
    done: BTreeSet<(usize, Option<EventId>)>,
    steps: BTreeSet<usize>,
    last: BTreeMap<Partition, usize>,
    /// Ready entities, and the partition whose delivery made them ready.
    ready: BTreeMap<EntityId, Option<Partition>>,
}

impl Order {
    fn before(&mut self, history: &History, act: &Act) -> Vec<String> {
        let mut complaints = Vec::new();
        if let Some(i) = index(act) {
            let only = if let Act::Deadline(_, only) = act { only.clone() } else { None };
            self.steps.insert(i);
            if !self.done.insert((i, only)) {
                complaints.push(format!("{act:?} was carried out twice"));
            }
        }
        if let Some((i, partition)) = partition_of(history, act) {
            if let Some(last) = self.last.insert(partition.clone(), i).filter(|last| *last > i) {
                complaints.push(format!("{act:?} after step {last} of the same partition"));
            }
            if let Some(entity) = entity_of(history, i)
                && self.ready.get(&entity) == Some(&Some(partition))
            {
                complaints.push(format!("{act:?} of {entity}, where a ready event of it was not decided yet"));
            }
        }
        complaints
    }

    fn after(&mut self, history: &History, act: &Act, ready: Vec<EntityId>) {
        let by = partition_of(history, act).map(|(_, partition)| partition);
        let before = std::mem::take(&mut self.ready);
        self.ready = ready
            .into_iter()
            .map(|entity| {
                let since = before.get(&entity).cloned().unwrap_or_else(|| by.clone());
                (entity, since)
            })
            .collect();
    }

    fn end(&self, history: &History) -> Vec<String> {
        let missed = (0..history.steps.len()).filter(|i| act_of(history, *i).is_some() && !self.steps.contains(i));
        let missed = missed.map(|i| format!("step {i} was never carried out"));
        missed.chain(self.ready.keys().map(|e| format!("{e} was left ready"))).collect()
    }
}

fn partition_of(history: &History, act: &Act) -> Option<(usize, Partition)> {
    let Act::Deliver(i) = act else { return None };
    match &history.steps[*i] {
        Step::Deliver(d) => Some((*i, (d.source.clone(), d.partition))),
        _ => None,
    }
}

fn entity_of(history: &History, step: usize) -> Option<EntityId> {
    match &history.steps[step] {
        // What is delivered again lies behind nothing: it was decided before.
        Step::Deliver(d) if d.replay => None,
        Step::Deliver(d) => match &d.meaning {
            Meaning::Event(event) => Some(event.entity()),
            Meaning::Malformed { .. } => None,
        },
        _ => None,
    }
}
