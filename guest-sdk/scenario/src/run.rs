//! Telling stories to a subject, and saying where it tells them differently.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use crate::check::{Differs, check, differs};
use crate::model::{Edge, Origin, Subject, Trigger};
use crate::story::{Clock, Step, Story, What};
use crate::times::plus;
use crate::world::{Input, World};

/// What came of a set of stories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many were told.
    pub stories: usize,
    /// How many of their steps hold.
    pub steps: usize,
    /// At most one for each story: what follows a step that went otherwise means nothing.
    pub mismatches: Vec<Mismatch>,
    /// Declared edges that no story took, in the order of their declaration. Not an error by itself.
    pub untaken: Vec<Edge>,
}

impl Report {
    /// Whether every step of every story holds.
    pub fn is_ok(&self) -> bool {
        self.mismatches.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mismatch in &self.mismatches {
            writeln!(f, "{mismatch}\n")?;
        }
        let told = self.stories - self.mismatches.len();
        write!(f, "{told} of {} scenarios hold ({} steps)", self.stories, self.steps)?;
        for edge in &self.untaken {
            write!(f, "\nno scenario takes {edge}")?;
        }
        Ok(())
    }
}

/// A step that went otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The story's file.
    pub file: PathBuf,
    /// The story's title.
    pub title: String,
    /// The step's number, from 1.
    pub step: usize,
    /// What the step was.
    pub what: String,
    /// What was to come of it.
    pub expected: String,
    /// What came of it.
    pub got: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, title, step, what, expected, got } = self;
        writeln!(f, "{}: {title}", file.display())?;
        writeln!(f, "  step {step}: {what}")?;
        writeln!(f, "    expected  {expected}")?;
        write!(f, "    got       {got}")
    }
}

/// Tells every story, each about a new entity, and reports what differs.
pub fn run(subject: &mut dyn Subject, stories: &[Story]) -> Report {
    let description = subject.describe();
    let mut report = Report { stories: stories.len(), steps: 0, mismatches: Vec::new(), untaken: Vec::new() };
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    for story in stories {
        let mut world = World::standing(description.clone(), story.key.as_str(), story.given.as_ref(), story.start);
        let mut clock = story.start;
        for (index, step) in story.steps.iter().enumerate() {
            match tell(subject, &mut world, &mut clock, index, step) {
                Ok(()) => report.steps += 1,
                Err(Differs { expected, got }) => {
                    report.mismatches.push(Mismatch {
                        file: story.file.clone(),
                        title: story.title.clone(),
                        step: index + 1,
                        what: step.what.to_string(),
                        expected,
                        got,
                    });
                    break;
                }
            }
        }
        taken.extend(world.taken());
    }
    let edges = description.edges.into_iter().enumerate();
    report.untaken = edges.filter(|(i, _)| !taken.contains(i)).map(|(_, edge)| edge).collect();
    report
}

fn tell(
    subject: &mut dyn Subject,
    world: &mut World,
    clock: &mut i64,
    index: usize,
    step: &Step,
) -> Result<(), Differs> {
    match step.clock {
        Some(Clock::At(at)) => *clock = at,
        Some(Clock::After(length)) => *clock = plus(*clock, length),
        None => {}
    }
    let input = |kind: &str, time| Input {
        kind: kind.to_owned(),
        id: step.id.clone().unwrap_or_else(|| format!("step-{}", index + 1)),
        source: step.source.clone(),
        time,
        version: step.version,
        idempotency_key: step.idempotency_key.clone(),
        correlation_id: step.correlation_id.clone(),
        content_type: step.data.content_type.map(str::to_owned),
        attributes: step.attributes.clone().into_iter().collect(),
        met: step.met.clone(),
        data: step.data.bytes.clone(),
    };
    let expect = &step.expect;
    let outcome = match &step.what {
        What::Event(kind) => world.event(subject, input(kind, *clock)),
        What::Timer(name) => {
            // It fires when it is due, or later where the story's clock has already passed that.
            *clock = world.timers().get(name).map_or(*clock, |due| *due.max(clock));
            world.timer(subject, name)
        }
        What::Compensate(kind) => {
            let (reason, outcome) = world.compensate(subject, input(kind, *clock));
            if let (Some(code), Some(reason)) = (&expect.refused, reason)
                && *code != reason.code
            {
                return differs(
                    format!("refused as {code}"),
                    format!("refused as {}: {}", reason.code, reason.message),
                );
            }
            outcome
        }
    };
    check(expect, world, &outcome)
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match &self.origin {
            Origin::Absent => "absent",
            Origin::AnyLive => "any live state",
            Origin::State(state) => state,
        };
        let (what, name) = match &self.trigger {
            Trigger::Event(kind) => ("event", kind),
            Trigger::Timer(name) => ("timer", name),
            Trigger::Compensation(kind) => ("compensation of", kind),
        };
        write!(f, "{origin} → {} by {what} {name}", self.target)
    }
}
