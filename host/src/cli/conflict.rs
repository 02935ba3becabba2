//! `conflict`: events that say something else under a known id, version or intent.

use clap::Subcommand;
use seqgate_decide::decide::{Action, OpenConflict};
use seqgate_decide::ids::Ref;

use super::context::{By, Context, Paging, Site, reference};
use super::decide::person;
use super::failure::failed;
use super::output::{Object, plain};
use super::show;
use crate::store::views::{ConflictDetail, ConflictItem};

/// Events that contradict others
#[derive(Debug, Subcommand)]
pub enum Conflict {
    /// The oldest first; dismissed ones stay listed
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        /// Only those that nobody dismissed
        #[arg(long)]
        open: bool,
        #[command(flatten)]
        paging: Paging,
    },
    /// One of them, whole
    Show {
        /// Its id, as the list shows it
        #[arg(value_parser = reference)]
        id: Ref,
    },
    /// Close it; where its version is the next, the version is consumed
    Dismiss {
        /// Its id, as the list shows it
        #[arg(value_parser = reference)]
        id: Ref,
        #[command(flatten)]
        by: By,
    },
}

impl Conflict {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let site = ctx.open().await?;
        match self {
            Self::List { machine, open, paging } => {
                let listing = site.store.conflicts(machine.as_deref(), open, &ctx.page(&paging)).await?;
                let now = ctx.clock.now();
                let head = ["ID", "STATUS", "ENTITY", "VERSION", "TYPE", "EVENT", "CODE", "COPIES", "SINCE", "MESSAGE"];
                ctx.list(&listing, &head, |item| row(item, now), json)
            }
            Self::Show { id } => {
                let detail = find(ctx, &site, id).await?;
                let whole = || json(&detail.item).put("content", show::event(&detail.event));
                ctx.answer(whole, || text(ctx, &detail))
            }
            Self::Dismiss { id, by } => {
                let ConflictDetail { item, event } = find(ctx, &site, id).await?;
                if let Some(by) = item.dismissed {
                    return Err(failed("dismissed", format!("the conflict {id} was dismissed before, by {}", by.name)));
                }
                let action = Action::DismissConflict(OpenConflict { id, event, position: item.position });
                person(ctx, &site, &by, &id.to_string(), action).await
            }
        }
    }
}

async fn find(ctx: &Context, site: &Site, id: Ref) -> anyhow::Result<ConflictDetail> {
    let list = ctx.command("conflict list");
    let none = || failed("not-found", format!("there is no conflict {id}; `{list}` shows all"));
    site.store.conflict(id).await?.ok_or_else(none)
}

fn status(item: &ConflictItem) -> &'static str {
    if item.dismissed.is_some() { "dismissed" } else { "open" }
}

fn row(item: &ConflictItem, now: i64) -> Vec<String> {
    vec![
        item.id.to_string(),
        status(item).to_owned(),
        show::entity(&item.entity),
        show::or_dash(item.version),
        item.kind.to_string(),
        item.key.id.to_string(),
        item.code.clone(),
        item.copies.to_string(),
        show::since(item.since, now),
        item.message.clone(),
    ]
}

fn json(item: &ConflictItem) -> Object {
    Object::new()
        .put("id", item.id.to_string())
        .put("status", status(item))
        .and(show::entity_members(&item.entity))
        .put("source", &*item.key.source)
        .put("event", &*item.key.id)
        .put("type", &*item.kind)
        .put("version", item.version)
        .put("code", &item.code)
        .put("message", &item.message)
        .put("copies", item.copies)
        .put("position", item.position.as_ref().map(show::position))
        .put("since", show::time(item.since))
        .put("actor", item.dismissed.as_ref().map(show::actor))
}

fn text(ctx: &Context, detail: &ConflictDetail) -> String {
    let (item, now) = (&detail.item, ctx.clock.now());
    let mut lines = vec![format!("conflict {}, {}", item.id, status(item))];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<9} {}", plain(&value)));
    line("why", format!("{}: {}", item.code, item.message));
    line("entity", show::entity(&item.entity));
    let version = item.version.map(|v| format!(" at version {v}")).unwrap_or_default();
    line("event", format!("{} {}{version}, from {}", item.kind, item.key.id, item.key.source));
    line("data", show::data(&detail.event.data));
    line("received", format!("{}, {} times", show::or_dash(item.position.as_ref()), item.copies));
    line("since", show::since(item.since, now));
    match &item.dismissed {
        Some(by) => line("dismissed", format!("by {} {}", by.name, by.reason)),
        None => {
            let entity = &item.entity;
            let key = show::key_argument(&entity.key);
            line("compare", ctx.command(&format!("entity history {} {key}", entity.machine)));
            line("next", ctx.command(&format!("conflict dismiss {}", item.id)));
        }
    }
    lines.join("\n")
}
