//! `timer`, `alarm`, `audit`: lists of one kind each.

use clap::Subcommand;

use super::context::{Context, Paging};
use super::output::Object;
use super::show;
use crate::store::views::{AlarmItem, AuditItem, TimerItem};

/// Timers that are pending
#[derive(Debug, Subcommand)]
pub enum Timer {
    /// The earliest first
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        #[command(flatten)]
        paging: Paging,
    },
}

/// Conditions that need a person
#[derive(Debug, Subcommand)]
pub enum Alarm {
    /// The oldest first
    List {
        /// Those that were cleared, too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        paging: Paging,
    },
}

/// What people did
#[derive(Debug, Subcommand)]
pub enum Audit {
    /// The newest first
    List {
        #[command(flatten)]
        paging: Paging,
    },
}

impl Timer {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::List { machine, paging } = self;
        let site = ctx.open().await?;
        let listing = site.store.timers(machine.as_deref(), &ctx.page(&paging)).await?;
        let now = ctx.clock.now();
        let row = |t: &TimerItem| {
            vec![show::entity(&t.entity), t.name.to_string(), show::since(t.due, now), t.revision.to_string()]
        };
        let json = |t: &TimerItem| {
            show::entity_members(&t.entity)
                .put("name", &*t.name)
                .put("due", show::time(t.due))
                .put("overdue", t.due <= now)
                .put("revision", t.revision)
        };
        ctx.list(&listing, &["ENTITY", "TIMER", "DUE", "STARTED BY REV"], row, json)
    }
}

impl Alarm {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::List { all, paging } = self;
        let site = ctx.open().await?;
        let listing = site.store.alarms(!all, &ctx.page(&paging)).await?;
        let now = ctx.clock.now();
        let row = |a: &AlarmItem| {
            let cleared = a.cleared.map(|at| show::since(at, now));
            vec![
                a.kind.clone(),
                a.subject.clone(),
                show::since(a.since, now),
                show::or_dash(cleared),
                a.message.clone(),
            ]
        };
        let json = |a: &AlarmItem| {
            Object::new()
                .put("kind", &a.kind)
                .put("subject", &a.subject)
                .put("message", &a.message)
                .put("since", show::time(a.since))
                .put("cleared", a.cleared.map(show::time))
        };
        ctx.list(&listing, &["KIND", "ABOUT", "SINCE", "CLEARED", "MESSAGE"], row, json)
    }
}

impl Audit {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::List { paging } = self;
        let site = ctx.open().await?;
        let listing = site.store.audit(&ctx.page(&paging)).await?;
        let now = ctx.clock.now();
        let row = |item: &AuditItem| {
            let a = &item.row;
            let (who, why) = (a.by.name.clone(), a.by.reason.clone());
            vec![show::since(a.at, now), who, a.action.clone(), a.subject.clone(), a.outcome.clone(), why]
        };
        let json = |item: &AuditItem| {
            let a = &item.row;
            Object::new()
                .put("id", item.id)
                .put("at", show::time(a.at))
                .put("actor", &a.by.name)
                .put("reason", &a.by.reason)
                .put("action", &a.action)
                .put("subject", &a.subject)
                .put("outcome", &a.outcome)
        };
        ctx.list(&listing, &["WHEN", "WHO", "DID", "TO", "OUTCOME", "WHY"], row, json)
    }
}
