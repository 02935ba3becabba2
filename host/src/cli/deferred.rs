//! `deferred`: events that wait.

use std::sync::Arc;

use clap::Subcommand;
use seqgate_decide::decide::Action;
use seqgate_decide::ids::{EntityId, Ref};
use seqgate_decide::verdict::DeferReason;
use seqgate_decide::world::Waiting;

use super::context::{By, Context, Paging, reference};
use super::decide::person;
use super::failure::{failed, usage};
use super::output::Object;
use super::show;
use crate::store::views::DeferredFilter;

/// Events that wait
#[derive(Debug, Subcommand)]
pub enum Deferred {
    /// The longest-waiting first; an entity's by version
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        /// Only of this entity (with --machine)
        #[arg(long, requires = "machine")]
        key: Option<String>,
        /// The key is given as hexadecimal digits
        #[arg(long, requires = "key")]
        key_hex: bool,
        /// Only those that wait for: gap, dependency, waiting, early, blocked or schema
        #[arg(long, value_parser = reason)]
        reason: Option<DeferReason>,
        #[command(flatten)]
        paging: Paging,
    },
    /// Take a bogus one out
    Dismiss {
        /// Its id, as the list shows it
        #[arg(value_parser = reference)]
        id: Ref,
        #[command(flatten)]
        by: By,
    },
}

fn reason(text: &str) -> Result<DeferReason, String> {
    let names: Vec<&str> = DeferReason::ALL.iter().map(|r| r.name()).collect();
    DeferReason::from_name(text).ok_or_else(|| format!("write one of {}", names.join(", ")))
}

impl Deferred {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let site = ctx.open().await?;
        match self {
            Self::List { machine, key, key_hex, reason, paging } => {
                let bytes = key.map(|key| match key_hex {
                    true => show::unhex(&key).ok_or_else(|| usage("usage", format!("`{key}` is no hexadecimal key"))),
                    false => Ok(key.into_bytes()),
                });
                let machine: Option<Arc<str>> = machine.map(Arc::from);
                let entity = bytes.transpose()?.zip(machine.clone()).map(|(key, machine)| EntityId::new(machine, key));
                let filter = DeferredFilter { machine, entity, reason };
                let listing = site.store.deferred(&filter, &ctx.page(&paging)).await?;
                let now = ctx.clock.now();
                let head = ["ID", "ENTITY", "VERSION", "TYPE", "EVENT", "REASON", "SINCE", "RECEIVED"];
                ctx.list(&listing, &head, |item| row(item, now), json)
            }
            Self::Dismiss { id, by } => {
                let Some(waiting) = site.store.deferred_one(id).await? else {
                    let list = ctx.command("deferred list");
                    return Err(failed("not-found", format!("no event {id} waits; `{list}` shows those that do")));
                };
                let action = Action::DismissWaiting(waiting.event.entity.clone(), id);
                person(ctx, &site, &by, &id.to_string(), action).await
            }
        }
    }
}

fn row(item: &Waiting, now: i64) -> Vec<String> {
    let event = &item.event;
    vec![
        item.id().to_string(),
        show::entity(&event.entity),
        show::or_dash(event.version),
        event.kind.to_string(),
        event.key.id.to_string(),
        item.reason.name().to_owned(),
        show::since(item.since, now),
        item.position.to_string(),
    ]
}

fn json(item: &Waiting) -> Object {
    let event = &item.event;
    let wants = |d: &seqgate_decide::rules::Dependency| show::entity_members(&d.entity).put("version", d.version);
    Object::new()
        .put("id", item.id().to_string())
        .and(show::entity_members(&event.entity))
        .put("source", &*event.key.source)
        .put("event", &*event.key.id)
        .put("type", &*event.kind)
        .put("version", event.version)
        .put("previous", event.previous)
        .put("reason", item.reason.name())
        .put("depends_on", event.depends_on_text())
        .put("named", item.named.iter().map(wants).collect::<Vec<_>>())
        .put("since", show::time(item.since))
        .put("deadline", item.deadline.map(show::time))
        .put("ready", item.ready)
        .put("position", show::position(&item.position))
}
