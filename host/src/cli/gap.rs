//! `gap`: versions that never came, and bringing them by hand.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use seqgate_decide::decide::{Input, Outcome};
use seqgate_decide::envelope::Decoded;
use seqgate_decide::event::Event;
use seqgate_decide::ids::{EntityId, Position};

use super::context::{By, Context, Named, Paging, Site};
use super::decide::{decoded, in_words, outcome_members, read};
use super::failure::failed;
use super::output::{self, Object, plain};
use super::show;
use crate::runner::Act;
use crate::store::views::Gap as Missing;

/// Versions that never came
#[derive(Debug, Subcommand)]
pub enum Gap {
    /// Missing versions, by machine and key
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Decide an entity's events from a file; what was decided before is a duplicate
    Repair {
        #[command(flatten)]
        named: Named,
        /// A file with a CloudEvent a line, of this entity among others; `-` reads standard input
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
        #[command(flatten)]
        by: By,
    },
}

impl Gap {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let site = ctx.open().await?;
        match self {
            Self::List { machine, paging } => {
                let listing = site.store.gaps(machine.as_deref(), &ctx.page(&paging)).await?;
                let now = ctx.clock.now();
                let head = ["ENTITY", "VERSION", "MISSING", "SINCE"];
                ctx.list(&listing, &head, |item| row(item, now), json)
            }
            Self::Repair { named, from, by } => repair(ctx, &site, &named.id()?, &from, &by).await,
        }
    }
}

fn row(item: &Missing, now: i64) -> Vec<String> {
    let missing = if item.from == item.to { item.from.to_string() } else { format!("{} to {}", item.from, item.to) };
    vec![show::entity(&item.entity), item.version.to_string(), missing, show::since(item.since, now)]
}

fn json(item: &Missing) -> Object {
    show::entity_members(&item.entity)
        .put("version", item.version)
        .put("from", item.from)
        .put("to", item.to)
        .put("since", show::time(item.since))
}

/// An event of the entity, with the byte position of its line.
struct Line {
    offset: u64,
    event: std::sync::Arc<Event>,
}

/// The entity's events in a file, and how many lines could not be read.
fn lines(ctx: &Context, site: &Site, id: &EntityId, file: &Path) -> anyhow::Result<(Vec<Line>, usize)> {
    let (bytes, now) = (read(file)?, ctx.clock.now());
    let (mut found, mut unreadable, mut offset) = (Vec::new(), 0, 0);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        match decoded(site, text, Some(&id.machine), now) {
            Decoded::Event(event) if event.entity == *id => found.push(Line { offset, event }),
            Decoded::Event(_) => {}
            Decoded::Malformed(_) if text.trim_ascii().is_empty() => {}
            Decoded::Malformed(_) => unreadable += 1,
        }
        offset += line.len() as u64;
    }
    Ok((found, unreadable))
}

async fn repair(ctx: &Context, site: &Site, id: &EntityId, file: &Path, by: &By) -> anyhow::Result<()> {
    site.machine(&id.machine)?;
    let (lines, unreadable) = lines(ctx, site, id, file)?;
    if lines.is_empty() {
        let passed =
            if unreadable > 0 { format!(" ({unreadable} lines are no readable events)") } else { String::new() };
        let message = format!("{} holds no event of {}{passed}", file.display(), show::entity(id));
        return Err(failed("nothing-found", message));
    }
    let (engine, mut machines) = site.decider(ctx).await?;
    let source: std::sync::Arc<str> = format!("repair:{}", id.machine).into();
    let mut decided: Vec<(Line, Outcome)> = Vec::new();
    for line in lines {
        let position = Position { source: source.clone(), partition: 0, offset: line.offset };
        let input = Input::Event { event: line.event.clone(), position: position.clone(), redelivered: false };
        let decision = engine.act(&mut machines, &input, Act::Delivered(position)).await?;
        decided.push((line, decision.outcome));
    }
    let mut counts = std::collections::BTreeMap::new();
    decided.iter().for_each(|(_, outcome)| *counts.entry(outcome.verdict).or_insert(0u64) += 1);
    let outcome = super::run::in_words(&counts);
    site.audit(ctx, by.actor(), "gap repair", show::entity(id), outcome.clone()).await?;
    let after = site.store.entity(id).await?.map(|e| e.summary.version).unwrap_or_default();
    if ctx.json {
        let items: Vec<Object> = decided.iter().map(|(line, outcome)| event_json(line, outcome)).collect();
        let answer = show::entity_members(id).put("version", after).put("unreadable", unreadable);
        return output::print(answer.put("items", items));
    }
    let mut text = String::new();
    for (line, outcome) in &decided {
        let (event, version) = (&line.event, show::or_dash(line.event.version));
        let one = format!("version {version}  {} {}: {}", event.kind, event.key.id, in_words(outcome));
        text.push_str(&format!("{}\n", plain(&one)));
    }
    text.push_str(&format!("{}: {outcome}; it stands at version {after}\n", show::entity(id)));
    if unreadable > 0 {
        text.push_str(&format!("{unreadable} lines of the file are no readable events\n"));
    }
    output::print(text)
}

fn event_json(line: &Line, outcome: &Outcome) -> Object {
    let event = &line.event;
    Object::new()
        .put("offset", line.offset)
        .put("source", &*event.key.source)
        .put("event", &*event.key.id)
        .put("type", &*event.kind)
        .put("version", event.version)
        .and(outcome_members(outcome))
}
