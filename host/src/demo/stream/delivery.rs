//! How a network delivers a story: swapped, late, twice, under other ids, with contradictions and broken lines in between.
//!
//! None of it changes what becomes of the story; every line that is added has a verdict of its own.

use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use seqgate_decide::verdict::Verdict;

use super::event::Event;
use super::story::{Step, Story};
use super::truth::{Life, Line};

/// Chances for each event.
const SWAPPED: f64 = 0.10;
const LATE: f64 = 0.05;
const TWICE: f64 = 0.07;
const OTHER_ID: f64 = 0.04;
const REWRITTEN: f64 = 0.03;
const CONTRADICTED: f64 = 0.006;
const RIVALLED: f64 = 0.006;
const BROKEN: f64 = 0.004;

/// In the order of versions, each once.
pub fn plainly(story: Story) -> Life {
    let lines = story.steps.iter().map(line).collect();
    Life { lines, entity: Some((story.address(), story.end)), outbox: story.outbox }
}

/// As networks do.
pub fn roughly(story: Story, rng: &mut StdRng) -> Life {
    let mut steps = story.steps.clone();
    disorder(&mut steps, rng);
    // A line's place: the n-th event stands at n, and what is derived from it somewhere behind.
    let mut placed: Vec<(f64, Line)> = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        placed.push((n as f64, line(step)));
        derive(&mut placed, n as f64, &step.event, rng);
    }
    // What was left out is certainly passed over once everything else is there.
    if !story.stopped() {
        for late in &story.passed_over {
            placed.push((steps.len() as f64, Line { text: late.line(), verdict: Verdict::Stale }));
        }
    }
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines = placed.into_iter().map(|(_, line)| line).collect();
    Life { lines, entity: Some((story.address(), story.end)), outbox: story.outbox }
}

fn line(step: &Step) -> Line {
    Line { text: step.event.line(), verdict: step.verdict }
}

fn disorder(steps: &mut [Step], rng: &mut StdRng) {
    let mut n = 0;
    while n + 1 < steps.len() {
        if rng.random_bool(LATE) {
            let until = (n + rng.random_range(2..=6)).min(steps.len() - 1);
            steps[n..=until].rotate_left(1);
            n = until;
        } else if rng.random_bool(SWAPPED) {
            steps.swap(n, n + 1);
            n += 1;
        }
        n += 1;
    }
    if steps.len() < 6 && rng.random_bool(LATE) {
        steps.shuffle(rng);
    }
}

/// Lines that repeat or contradict an event, somewhere behind it.
pub fn derive(placed: &mut Vec<(f64, Line)>, at: f64, event: &Event, rng: &mut StdRng) {
    let mut put = |chance: f64, verdict: Verdict, text: &dyn Fn() -> String| {
        if rng.random_bool(chance) {
            placed.push((at + rng.random_range(0.1..4.0), Line { text: text(), verdict }));
        }
    };
    put(TWICE, Verdict::Duplicate, &|| event.line());
    put(OTHER_ID, Verdict::Duplicate, &|| named(event, "again").line());
    put(REWRITTEN, Verdict::Duplicate, &|| named(event, "rewritten").rewritten());
    put(CONTRADICTED, Verdict::Conflict, &|| event.contradicted());
    put(RIVALLED, Verdict::Conflict, &|| named(event, "rival").contradicted());
    put(BROKEN, Verdict::Malformed, &|| named(event, "broken").without_version());
}

/// The event under another id.
pub fn named(event: &Event, suffix: &str) -> Event {
    Event { id: format!("{}.{suffix}", event.id), ..event.clone() }
}
