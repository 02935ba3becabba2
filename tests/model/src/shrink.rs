//! Makes a failing history small.

use std::collections::BTreeMap;

use crate::{Decision, History, LetterId, LetterSubject, Step};

/// Removes steps as long as the history still fails, first in halves, at last one by one. Positions close up after the
/// lines removed, in replays and in people's decisions too. `fails` is called often: bound what it costs.
///
/// Returns the history as it was where it does not fail.
pub fn shrink(history: &History, mut fails: impl FnMut(&History) -> bool) -> History {
    let mut best = history.clone();
    if !fails(&best) {
        return best;
    }
    let mut chunk = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut smaller = false;
        let mut from = 0;
        while from < best.steps.len() {
            let candidate = without(&best, from, chunk);
            if fails(&candidate) {
                (best, smaller) = (candidate, true);
            } else {
                from += chunk;
            }
        }
        match (chunk, smaller) {
            (1, false) => return best,
            (1, true) => {}
            _ => chunk = chunk.div_ceil(2),
        }
    }
}

type Place = (String, u32, u64);

/// The history without `count` steps from `from` on.
fn without(history: &History, from: usize, count: usize) -> History {
    let kept = history.steps.iter().enumerate().filter(|(i, _)| !(from..from + count).contains(i));
    let mut steps: Vec<Step> = kept.map(|(_, step)| step.clone()).collect();
    let moved = close_up(&mut steps);
    follow(&mut steps, &moved);
    History { steps, ..history.clone() }
}

/// The same history in logs that count events, each partition its own from 0, where files count bytes.
pub fn in_logs(history: &History) -> History {
    let mut steps = history.steps.clone();
    let mut ends: BTreeMap<(String, u32), u64> = BTreeMap::new();
    let mut moved = BTreeMap::new();
    for step in &mut steps {
        if let Step::Deliver(d) = step
            && !d.replay
        {
            let end = ends.entry((d.source.clone(), d.partition)).or_default();
            moved.insert((d.source.clone(), d.partition, d.position), *end);
            d.position = *end;
            *end += 1;
        }
    }
    follow(&mut steps, &moved);
    History { steps, ..history.clone() }
}

/// What names a line by its place names the new one; a replay of a line that is gone goes too.
fn follow(steps: &mut Vec<Step>, moved: &BTreeMap<Place, u64>) {
    steps.retain_mut(|step| match step {
        Step::Deliver(d) if d.replay => match moved.get(&(d.source.clone(), d.partition, d.position)) {
            Some(position) => {
                d.position = *position;
                true
            }
            None => false,
        },
        Step::Person(person) => match letter(&mut person.decision) {
            Some(LetterSubject::Envelope { source, partition, position }) => {
                let now = moved.get(&(source.clone(), *partition, *position));
                // A target that is gone is named where nothing lies.
                *position = now.copied().unwrap_or(u64::from(u32::MAX));
                true
            }
            _ => true,
        },
        _ => true,
    });
}

/// Gives every line that is no replay its byte position; the old places with the new positions.
fn close_up(steps: &mut [Step]) -> BTreeMap<Place, u64> {
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    let mut moved = BTreeMap::new();
    for step in steps {
        if let Step::Deliver(d) = step
            && !d.replay
        {
            let end = ends.entry(d.source.clone()).or_default();
            moved.insert((d.source.clone(), d.partition, d.position), *end);
            d.position = *end;
            *end += d.bytes.len() as u64 + 1;
        }
    }
    moved
}

fn letter(decision: &mut Decision) -> Option<&mut LetterSubject> {
    match decision {
        Decision::Redrive(LetterId { subject, .. })
        | Decision::Skip(LetterId { subject, .. })
        | Decision::Compensate(LetterId { subject, .. })
        | Decision::Replace(LetterId { subject, .. }, ..) => Some(subject),
        Decision::DismissDeferred(_) | Decision::DismissConflict(_) | Decision::Erase(..) => None,
    }
}
