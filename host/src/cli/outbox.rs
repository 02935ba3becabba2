//! `outbox`: messages that transitions emitted.

use std::sync::Arc;

use clap::Subcommand;

use super::context::{Context, Paging};
use super::output::Object;
use super::show;
use crate::store::views::{OutboxFilter, OutboxItem, OutboxStatus};

/// Messages that transitions emitted
#[derive(Debug, Subcommand)]
pub enum Outbox {
    /// In the order in which they were written
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        /// Only those that stand so: PENDING, SENT or FAILED
        #[arg(long, value_parser = status)]
        status: Option<OutboxStatus>,
        #[command(flatten)]
        paging: Paging,
    },
}

fn status(text: &str) -> Result<OutboxStatus, String> {
    OutboxStatus::from_name(&text.to_ascii_uppercase()).ok_or_else(|| "write PENDING, SENT or FAILED".to_owned())
}

impl Outbox {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::List { machine, status, paging } = self;
        let site = ctx.open().await?;
        let filter = OutboxFilter { machine: machine.map(Arc::from), status };
        let listing = site.store.outbox(&filter, &ctx.page(&paging)).await?;
        let now = ctx.clock.now();
        let head = ["ID", "STATUS", "ENTITY", "REV", "TOPIC", "TYPE", "WRITTEN", "TRIES"];
        ctx.list(&listing, &head, |item| row(item, now), json)
    }
}

fn row(item: &OutboxItem, now: i64) -> Vec<String> {
    let message = &item.row;
    vec![
        item.id.to_string(),
        item.status.name().to_owned(),
        show::entity(&message.entity),
        message.revision.to_string(),
        message.topic.clone(),
        message.kind.clone(),
        show::since(message.created, now),
        item.attempts.to_string(),
    ]
}

fn json(item: &OutboxItem) -> Object {
    let message = &item.row;
    let attributes: serde_json::Map<String, serde_json::Value> =
        message.attributes.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let cause = message.cause.as_ref().map(|c| Object::new().put("source", &*c.source).put("id", &*c.id));
    Object::new()
        .put("id", item.id)
        .and(show::entity_members(&message.entity))
        .put("revision", message.revision)
        .put("index", message.index)
        .put("topic", &message.topic)
        .put("type", &message.kind)
        .put("status", item.status.name())
        .put("message_key", message.key.as_deref().map(show::key))
        .put("content_type", &message.content_type)
        .put("attributes", attributes)
        .and(show::data_members(&message.data))
        .put("entity_version", message.entity_version)
        .put("cause", cause)
        .put("correlation_id", message.correlation_id.as_deref())
        .put("attempts", item.attempts)
        .put("error", item.error.as_deref())
        .put("created", show::time(message.created))
        .put("changed", show::time(item.changed))
}
