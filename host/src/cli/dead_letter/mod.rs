//! `dead-letter`: what was refused, and what a person decides about it.

mod act;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use seqgate_decide::ids::Ref;
use seqgate_decide::verdict::Verdict;
use seqgate_decide::writes::DeadStatus;

use super::context::{By, Context, Paging, Site, reference};
use super::failure::failed;
use super::output::{Object, plain};
use super::show;
use super::story;
use crate::store::views::{DeadDetail, DeadFilter, DeadItem};

/// Events that were refused
#[derive(Debug, Subcommand)]
pub enum DeadLetter {
    /// The oldest first; closed ones stay listed
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        /// Only those that stand so: open, skipped, compensated, redriven, replaced or superseded
        #[arg(long, value_parser = status)]
        status: Option<DeadStatus>,
        /// Only those refused as: illegal, malformed or fault
        #[arg(long, value_parser = class)]
        class: Option<Verdict>,
        #[command(flatten)]
        paging: Paging,
    },
    /// One of them, whole
    Show {
        /// Its id, as the list shows it
        #[arg(value_parser = reference)]
        id: Ref,
        /// Print a scenario that ends in this refusal, for the machine's `scenarios/`
        #[arg(long)]
        as_test: bool,
    },
    /// Send it through the rules in force again
    Redrive(Meant),
    /// Pass it over: its version is consumed, the state stays
    Skip(Meant),
    /// Let the rules' compensation deal with it
    Compensate(Meant),
    /// Decide a corrected event in its place
    Replace {
        #[command(flatten)]
        meant: Meant,
        /// The corrected CloudEvent, in JSON; `-` reads standard input
        #[arg(long = "with", value_name = "FILE")]
        with: PathBuf,
    },
}

/// The one that is meant, by whom and why.
#[derive(clap::Args, Debug)]
pub struct Meant {
    /// Its id, as the list shows it
    #[arg(value_parser = reference)]
    id: Ref,
    #[command(flatten)]
    by: By,
}

fn status(text: &str) -> Result<DeadStatus, String> {
    let names: Vec<&str> = DeadStatus::ALL.iter().map(|s| s.name()).collect();
    DeadStatus::from_name(text).ok_or_else(|| format!("write one of {}", names.join(", ")))
}

fn class(text: &str) -> Result<Verdict, String> {
    let refusal = |v: &Verdict| matches!(v, Verdict::Illegal | Verdict::Malformed | Verdict::Fault);
    Verdict::from_name(text).filter(refusal).ok_or_else(|| "write illegal, malformed or fault".to_owned())
}

impl DeadLetter {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let site = ctx.open().await?;
        match self {
            Self::List { machine, status, class, paging } => {
                let filter = DeadFilter { machine: machine.map(Arc::from), status, class };
                list(ctx, &site, &filter, &paging).await
            }
            Self::Show { id, as_test } => {
                let detail = find(ctx, &site, id).await?;
                if as_test {
                    return story::dead_letter(&site, &detail).await;
                }
                ctx.answer(|| whole(&detail), || text(ctx, &detail))
            }
            Self::Redrive(meant) => act::redrive(ctx, &site, &meant).await,
            Self::Skip(meant) => act::skip(ctx, &site, &meant).await,
            Self::Compensate(meant) => act::compensate(ctx, &site, &meant).await,
            Self::Replace { meant, with } => act::replace(ctx, &site, &meant, &with).await,
        }
    }
}

async fn find(ctx: &Context, site: &Site, id: Ref) -> anyhow::Result<DeadDetail> {
    let list = ctx.command("dead-letter list");
    let none = || failed("not-found", format!("there is no dead letter {id}; `{list}` shows all"));
    site.store.dead_letter(id).await?.ok_or_else(none)
}

async fn list(ctx: &Context, site: &Site, filter: &DeadFilter, paging: &Paging) -> anyhow::Result<()> {
    let listing = site.store.dead_letters(filter, &ctx.page(paging)).await?;
    let now = ctx.clock.now();
    let row = |item: &DeadItem| {
        let whose = item.entity.as_ref().map(show::entity).or_else(|| item.position.as_ref().map(ToString::to_string));
        vec![
            item.id.to_string(),
            item.status.name().to_owned(),
            show::or_dash(whose),
            show::or_dash(item.version),
            item.event_kind
                .as_deref()
                .unwrap_or(if item.entity.is_none() { "envelope" } else { item.kind.name() })
                .to_owned(),
            format!("{} ({})", item.class, item.code),
            show::since(item.since, now),
            item.message.clone(),
        ]
    };
    ctx.list(&listing, &["ID", "STATUS", "ENTITY", "VERSION", "WHAT", "REFUSED AS", "SINCE", "MESSAGE"], row, json)
}

fn json(item: &DeadItem) -> Object {
    Object::new()
        .put("id", item.id.to_string())
        .put("kind", item.kind.name())
        .put("status", item.status.name())
        .put("class", item.class.name())
        .put("code", &item.code)
        .put("message", &item.message)
        .and(show::entity_members_or_null(item.entity.as_ref()))
        .put("source", item.event.as_ref().map(|e| &*e.source))
        .put("event", item.event.as_ref().map(|e| &*e.id))
        .put("type", item.event_kind.as_deref())
        .put("version", item.version)
        .put("position", item.position.as_ref().map(show::position))
        .put("blocks", item.blocks)
        .put("attempts", item.attempts)
        .put("since", show::time(item.since))
        .put("changed", show::time(item.changed))
}

fn whole(detail: &DeadDetail) -> Object {
    let row = &detail.row;
    let timer = row.timer.as_ref().map(|(name, due)| Object::new().put("name", &**name).put("due", show::time(*due)));
    let rules = row.rules.map(|r| Object::new().put("activation", r.activation).put("digest", r.digest.to_string()));
    let replaced = row.replaced_by.as_ref().map(|k| Object::new().put("source", &*k.source).put("id", &*k.id));
    json(&item(detail))
        .put("content", row.event.as_deref().map(show::event))
        .put("raw", row.raw.as_deref().map(show::data_members))
        .put("timer", timer)
        .put("rules", rules)
        .put("actor", row.by.as_ref().map(show::actor))
        .put("replaced_by", replaced)
}

fn item(detail: &DeadDetail) -> DeadItem {
    let row = &detail.row;
    DeadItem {
        id: detail.id,
        kind: row.kind,
        class: row.class,
        code: row.code.clone(),
        message: row.message.clone(),
        entity: row.entity.clone(),
        event: row.event.as_ref().map(|e| e.key.clone()),
        event_kind: row.event.as_ref().map(|e| e.kind.clone()),
        version: row.event.as_ref().and_then(|e| e.version),
        position: row.position.clone(),
        blocks: row.blocks,
        status: row.status,
        attempts: row.attempts,
        since: row.since,
        changed: detail.changed,
    }
}

fn text(ctx: &Context, detail: &DeadDetail) -> String {
    let (row, id, now) = (&detail.row, detail.id, ctx.clock.now());
    let mut lines = vec![format!("dead letter {id}, {}", row.status.name())];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<9} {}", plain(&value)));
    line("refused", format!("{} ({}): {}", row.class, row.code, row.message));
    line("since", show::since(row.since, now));
    line("attempts", row.attempts.to_string());
    line("entity", show::or_dash(row.entity.as_ref().map(show::entity)));
    line("received", show::or_dash(row.position.as_ref()));
    if let Some(event) = &row.event {
        let version = event.version.map(|v| format!(" at version {v}")).unwrap_or_default();
        line("event", format!("{} {}{version}, from {}", event.kind, event.key.id, event.key.source));
        line("data", show::data(&event.data));
    }
    if let Some((name, due)) = &row.timer {
        line("timer", format!("{name}, due {}", show::since(*due, now)));
    }
    if let Some(raw) = &row.raw {
        line("bytes", show::data(raw));
    }
    if let Some(by) = &row.by {
        line("closed by", format!("{} {}", by.name, by.reason));
    }
    if row.status == DeadStatus::Open {
        let holds = if row.blocks { "it holds its entity's later events" } else { "it holds nothing up" };
        line(
            "next",
            format!("{holds}; once the cause is mended: {}", ctx.command(&format!("dead-letter redrive {id}"))),
        );
    }
    lines.join("\n")
}
