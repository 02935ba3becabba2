//! How the demo tells of itself.

use std::collections::BTreeMap;
use std::path::Path;

use seqgate_decide::verdict::Verdict;
use serde::Serialize;

use super::Outcome;
use super::stream::truth::Example;
use crate::store::views::{EventItem, Standing};
use crate::store::{Result, Store};

/// Differences that are shown.
const MOST_SHOWN: usize = 10;

/// An example, told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// The verdict.
    pub verdict: Verdict,
    /// The event.
    pub id: String,
    /// Its entity.
    pub entity: String,
    /// What became of it and why, as a sentence.
    pub text: String,
}

/// Looks the examples up, and puts the engine's own words where they are wanted.
pub async fn tell(store: &dyn Store, examples: &[Example]) -> Result<Vec<Told>> {
    let mut told = Vec::new();
    for example in examples {
        let Some(item) = store.events(&example.id).await?.into_iter().next() else { continue };
        let words = if example.cite { words(store, &item).await? } else { None };
        let text = match words {
            Some(words) => format!("{} {}: {words}", example.id, example.text),
            None => format!("{} {}", example.id, example.text),
        };
        let (verdict, entity) = (example.verdict, item.entity.to_string());
        told.push(Told { verdict, id: example.id.clone(), entity, text });
    }
    Ok(told)
}

/// Why an event was refused, as its dead letter says.
async fn words(store: &dyn Store, item: &EventItem) -> Result<Option<String>> {
    for standing in &item.standing {
        if let Standing::DeadLetter { id, .. } = standing
            && let Some(dead) = store.dead_letter(*id).await?
        {
            return Ok(Some(format!("{} ({})", dead.row.message, dead.row.code)));
        }
    }
    Ok(None)
}

/// For people. `program` is how this one was called, `width` how many columns there are.
pub fn text(outcome: &Outcome, program: &str, width: usize) -> String {
    let mut out = String::new();
    let status = &outcome.found.status;
    line(
        &mut out,
        &format!("{} events for 4 machines, in 4 partitions (seed {})", grouped(status.received), outcome.seed),
    );
    out.push('\n');
    for verdict in Verdict::ALL {
        let count = status.verdicts.get(&verdict).copied().unwrap_or(0);
        let example = outcome.examples.iter().find(|told| told.verdict == verdict);
        row(&mut out, count, verdict.name(), example.map_or("", |told| &told.text), width);
    }
    out.push('\n');
    let kinds: Vec<_> = outcome.found.outbox.iter().map(|(kind, n)| format!("{} {kind}", grouped(*n))).collect();
    row(&mut out, outcome.found.outbox.values().sum(), "messages", &kinds.join(", "), width);
    let entities = outcome.entities as u64;
    if outcome.is_right() {
        let text = "every state, version, balance and total above is what the stream was made to cause";
        row(&mut out, entities, "entities", text, width);
    } else {
        let differences = &outcome.found.differences;
        let text = format!("{} DIFFERENCES from what the stream was made to cause:", differences.len());
        row(&mut out, entities, "entities", &text, width);
        differences.iter().take(MOST_SHOWN).for_each(|difference| line(&mut out, &format!("{INDENT}{difference}")));
    }
    out.push('\n');
    speed(&mut out, outcome);
    next(&mut out, outcome, program);
    out
}

fn speed(out: &mut String, outcome: &Outcome) {
    let (rate, seconds) = (grouped(outcome.per_second() as u64), outcome.report.elapsed.as_secs_f64());
    let batches = grouped(outcome.report.batches);
    line(
        out,
        &format!(
            "{rate} events per second: {seconds:.2} s, in {batches} transactions that were on disk, each before the next"
        ),
    );
}

fn next(out: &mut String, outcome: &Outcome, program: &str) {
    let folder = outcome.folder.path();
    if !outcome.folder.is_kept() {
        line(out, &format!("The data was in {} and is gone. Keep it, and look around:", folder.display()));
        line(out, &format!("\n  {program} demo --dir seqgate-demo"));
        return;
    }
    line(out, &format!("The data is in {}. Look around:\n", folder.display()));
    let config = folder.join("seqgate.toml");
    for command in ["status", "entity explain accounts account-overdrawn", "event show sub-gap.v3", "dead-letter list"]
    {
        line(out, &format!("  {program} --config {} {command}", config.display()));
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// What stands before the third column.
const INDENT: &str = "                      ";

/// A count, what it counts, and a text that goes on below itself.
fn row(out: &mut String, count: u64, name: &str, text: &str, width: usize) {
    let head = format!("{:>9}  {name:<9}  ", grouped(count));
    let mut column = head.len();
    out.push_str(&head);
    for (n, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if n > 0 && column + 1 + length > width.max(60) {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(INDENT);
            column = INDENT.len();
        } else if n > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// For programs.
#[derive(Debug, Serialize)]
pub struct Summary<'a> {
    /// Whether everything ended as it was meant to.
    pub right: bool,
    /// Where it did not.
    pub differences: &'a [String],
    /// Deliveries.
    pub received: u64,
    /// What the stream was made from.
    pub seed: u64,
    /// Deliveries by verdict.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Entities.
    pub entities: usize,
    /// Messages by type.
    pub outbox: &'a BTreeMap<String, u64>,
    /// One for each verdict.
    pub examples: &'a [Told],
    /// Deliveries by the time that the run took.
    pub events_per_second: u64,
    /// The run, without what comes before it.
    pub elapsed_ms: u128,
    /// Compiling the rules.
    pub setup_ms: u128,
    /// Transactions of partitions.
    pub batches: u64,
    /// Of these, decided again.
    pub redone: u64,
    /// Entities that nobody but the sweep found ready.
    pub swept: u64,
    /// Where everything is; `null` where it was removed.
    pub folder: Option<&'a Path>,
}

/// The whole demonstration as one object.
pub fn summary(outcome: &Outcome) -> Summary<'_> {
    let (found, report) = (&outcome.found, &outcome.report);
    let count = |verdict| found.status.verdicts.get(&verdict).copied().unwrap_or(0);
    Summary {
        right: outcome.is_right(),
        differences: &found.differences,
        received: found.status.received,
        seed: outcome.seed,
        verdicts: Verdict::ALL.into_iter().map(|verdict| (verdict, count(verdict))).collect(),
        entities: outcome.entities,
        outbox: &found.outbox,
        examples: &outcome.examples,
        events_per_second: outcome.per_second() as u64,
        elapsed_ms: report.elapsed.as_millis(),
        setup_ms: outcome.ready.as_millis(),
        batches: report.batches,
        redone: report.redone,
        swept: report.swept,
        folder: outcome.folder.is_kept().then(|| outcome.folder.path()),
    }
}

/// 20000 as 20,000.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
