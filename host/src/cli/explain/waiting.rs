//! The sentences about events that wait: gaps, dependencies, early ones, those behind others.

use std::collections::BTreeSet;

use seqgate_decide::envelope::depends::DependsOn;
use seqgate_decide::rules::Dependency;
use seqgate_decide::verdict::DeferReason;
use seqgate_decide::world::Waiting;

use super::story::{Commands, arguments, counts_versions, named, opening};
use super::{Facts, Line, declared};
use crate::cli::show;
use crate::config::units::span;
use crate::store::views::BlockedBy;

/// A sentence for each gap and each event that waits for something of its own; one for all that wait behind others.
pub fn tell(facts: &Facts, now: i64, command: Commands<'_>) -> Vec<Line> {
    let mut lines = Vec::new();
    if counts_versions(facts.ordering) {
        lines.extend(gaps(facts).into_iter().map(|gap| missing(facts, &gap, now, command)));
    }
    for row in &facts.entity.waiting {
        lines.extend(match row.reason {
            DeferReason::Dependency | DeferReason::Waiting => Some(depends(facts, row, now, command)),
            DeferReason::Early => Some(early(facts, row, now)),
            DeferReason::Schema => Some(schema(facts, row, now, command)),
            DeferReason::Gap | DeferReason::Blocked => None,
        });
    }
    lines
}

/// Versions of other entities that an event waits for.
pub fn wants(row: &Waiting) -> impl Iterator<Item = &Dependency> {
    let declared = row.event.depends_on.iter().filter_map(|item| match item {
        DependsOn::Entity(dependency) => Some(dependency),
        DependsOn::Type(_) => None,
    });
    declared.chain(&row.named)
}

/// Missing versions, and the first event that waits behind them.
struct Gap<'a> {
    from: u64,
    to: u64,
    behind: &'a Waiting,
    /// How many wait behind that one.
    more: usize,
}

/// R3.5: versions that are neither consumed, nor waiting, nor dead letters.
fn gaps(facts: &Facts) -> Vec<Gap<'_>> {
    let entity = &facts.entity;
    let mut waiting: Vec<&Waiting> = entity.waiting.iter().filter(|w| w.event.version.is_some()).collect();
    waiting.sort_by_key(|w| w.event.version);
    let dead = entity.dead.iter().filter_map(|d| d.event.as_ref()?.version);
    let stands: BTreeSet<u64> =
        waiting.iter().filter_map(|w| w.event.version).chain(dead).chain([entity.version]).collect();
    let mut found = Vec::new();
    for (n, row) in waiting.iter().enumerate() {
        let pred = row.event.predecessor();
        if pred <= entity.version || stands.contains(&pred) {
            continue;
        }
        let last = stands.range(..pred).next_back().copied().unwrap_or(entity.version).max(entity.version);
        found.push(Gap { from: last + 1, to: pred, behind: row, more: waiting.len() - n - 1 });
    }
    found
}

fn missing(facts: &Facts, gap: &Gap<'_>, now: i64, command: Commands<'_>) -> Line {
    let versions = match (gap.from, gap.to) {
        (from, to) if from == to => format!("Version {from}"),
        (from, to) => format!("Versions {from} to {to}"),
    };
    let more = match gap.more {
        0 => String::new(),
        1 => "; 1 more waits behind it".to_owned(),
        n => format!("; {n} more wait behind it"),
    };
    let (behind, waited) = (named(&gap.behind.event, Some(&gap.behind.position)), span(now - gap.behind.since));
    let text = format!("{versions} never came; {behind} has waited {waited}{more}.");
    let mut commands = vec![command(&format!("gap repair {} --from FILE", arguments(facts)))];
    if facts.entity.revision == 0 {
        // Perhaps nobody ever created it.
        commands.push(command(&format!("deferred dismiss {}", gap.behind.id())));
    }
    Line { text, commands }
}

fn depends(facts: &Facts, row: &Waiting, now: i64, command: Commands<'_>) -> Line {
    let (entity, waited) = (&facts.entity, span(now - row.since));
    let key = show::key(&entity.id.key);
    let what = opening(&row.event, Some(&row.position));
    let mut unmet = Vec::new();
    let mut commands = Vec::new();
    for kind in row.event.depends_on.iter().filter_map(declared).filter(|kind| !entity.seen.contains(*kind)) {
        unmet.push(format!("{kind} of {key}, which was not applied yet"));
    }
    for wanted in wants(row) {
        let (id, version) = (&wanted.entity, wanted.version);
        let other = facts.others.get(id).cloned().unwrap_or_default();
        let (stands, held) = if *id == entity.id { (entity.version, None) } else { (other.version, other.held) };
        if stands >= version {
            continue;
        }
        let held = match held {
            Some(BlockedBy::DeadLetter) => " and is held by a refused event",
            Some(BlockedBy::Schema) => " and is held by its data's layout",
            Some(BlockedBy::Conflict) => " and has a conflict at the next version",
            None => "",
        };
        let stands = if stands == 0 { "has no version yet".to_owned() } else { format!("stands at version {stands}") };
        unmet.push(format!("{} at version {version}, which {stands}{held}", show::entity(id)));
        commands.push(command(&format!("entity explain {} {}", id.machine, show::key_argument(&id.key))));
    }
    let who = if row.reason == DeferReason::Waiting { "the rules let it wait" } else { "it waits" };
    let text = match (&unmet[..], row.ready) {
        ([], true) => {
            format!("{what} has waited {waited}; what it waited for is there, and a running host decides it.")
        }
        ([], false) => format!("{what} has waited {waited} behind an event of {key} that came before it."),
        _ => format!("{what} has waited {waited}: {who} for {}.", unmet.join("; and for ")),
    };
    commands.push(command(&format!("deferred dismiss {}", row.id())));
    Line { text, commands }
}

fn early(facts: &Facts, row: &Waiting, now: i64) -> Line {
    let what = opening(&row.event, Some(&row.position));
    let state = facts.entity.state.as_deref().unwrap_or("where there is no state yet");
    let deadline = match row.deadline {
        Some(deadline) if deadline > now => format!("; it is refused in {}", span(deadline - now)),
        Some(deadline) => format!("; its time was over {} ago, and a running host refuses it", span(now - deadline)),
        None => String::new(),
    };
    let waited = span(now - row.since);
    Line::plain(format!("{what} came early {waited} ago: no edge leads out of {state} by it yet{deadline}."))
}

fn schema(facts: &Facts, row: &Waiting, now: i64, command: Commands<'_>) -> Line {
    let what = opening(&row.event, Some(&row.position));
    let (schema, waited) = (facts.entity.schema, span(now - row.since));
    let text =
        format!("{what} has waited {waited} for rules that read data of schema {schema}; those in force do not.");
    let machine = &facts.entity.id.machine;
    Line { text, commands: vec![command(&format!("rules list --machine {machine}")), command("rules activate DIGEST")] }
}
