//! `entity`: one state machine's instance, as it stands and as it came to be.

mod erase;
mod import;
mod line;
mod reconcile;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use clap::Subcommand;
use seqgate_decide::ids::EntityId;
use seqgate_decide::writes::HistoryRow;

use super::context::{Context, Named, Paging, Site};
use super::failure::failed;
use super::output::Object;
use super::show;
use crate::store::views::{Blocked, BlockedBy, ConflictItem, EntityDetail, EntityFilter, EntitySummary, Page};

/// One state machine's instance
#[derive(Debug, Subcommand)]
pub enum Entity {
    /// Entities by machine and key
    List {
        /// Only of this machine
        #[arg(long)]
        machine: Option<String>,
        /// Only in this state
        #[arg(long)]
        state: Option<String>,
        /// Only those that something holds
        #[arg(long)]
        blocked: bool,
        #[command(flatten)]
        paging: Paging,
    },
    /// How it stands
    Show(Named),
    /// Every change that was made to it
    History {
        #[command(flatten)]
        named: Named,
        /// Print all of it as a scenario, for the machine's `scenarios/`
        #[arg(long, conflicts_with_all = ["limit", "cursor"])]
        as_scenario: bool,
        #[command(flatten)]
        paging: Paging,
    },
    /// Why it stands where it stands, and what to do
    Explain(Named),
    /// Take entities over from another system
    Import(import::Import),
    /// Compare the entities with another system's
    Reconcile(reconcile::Reconcile),
    /// Remove its data and payloads; what comes later is skipped
    Erase(erase::Erase),
}

impl Entity {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        match self {
            Self::List { machine, state, blocked, paging } => {
                let filter = EntityFilter { machine: machine.map(Arc::from), state: state.map(Arc::from), blocked };
                list(ctx, &filter, &paging).await
            }
            Self::Show(named) => show_one(ctx, &named.id()?).await,
            Self::History { named, as_scenario: true, .. } => {
                super::story::history(ctx, &ctx.open().await?, &named.id()?).await
            }
            Self::History { named, paging, .. } => history(ctx, &named.id()?, &paging).await,
            Self::Import(command) => command.run(ctx).await,
            Self::Reconcile(command) => command.run(ctx).await,
            Self::Erase(command) => command.run(ctx).await,
            Self::Explain(named) => super::explain::run(ctx, &named.id()?).await,
        }
    }
}

/// What nobody has heard of.
pub async fn not_found(ctx: &Context, site: &Site, id: &EntityId) -> anyhow::Error {
    if let Err(error) = site.machine(&id.machine) {
        return error;
    }
    let list = ctx.command(&format!("entity list --machine {}", id.machine));
    let prefix = EntityFilter { machine: Some(id.machine.clone()), ..EntityFilter::default() };
    let some = match site.store.entities(&prefix, &Page::first(3)).await {
        Ok(found) if !found.items.is_empty() => {
            let keys: Vec<String> = found.items.iter().map(|e| show::key(&e.id.key)).collect();
            format!("there are {}, …", keys.join(", "))
        }
        _ => "the machine has none yet".to_owned(),
    };
    let message = format!("no event of {} was decided; {some} (`{list}`)", show::entity(id));
    failed("not-found", message)
}

/// An entity as it is shown. One of which there is nothing but contradicting events has no row, and is shown as R5 says.
pub async fn find(site: &Site, id: &EntityId) -> anyhow::Result<Option<EntityDetail>> {
    if let Some(detail) = site.store.entity(id).await? {
        return Ok(Some(detail));
    }
    let conflicts = conflicts(site, id).await?;
    if conflicts.is_empty() {
        return Ok(None);
    }
    let first = conflicts.iter().find(|c| c.version == Some(1));
    let blocked = first.map(|c| Blocked { by: BlockedBy::Conflict, id: c.id, version: c.version });
    let summary = EntitySummary {
        id: id.clone(),
        version: 0,
        revision: 0,
        state: None,
        entered: 0,
        rules: None,
        blocked,
        deferred: 0,
        dead_letters: 0,
    };
    Ok(Some(EntityDetail {
        summary,
        row_version: 0,
        schema: 0,
        data: Vec::new(),
        seen: BTreeSet::new(),
        pruned_through: 0,
        erased: false,
        emitted: BTreeMap::new(),
        timers: BTreeMap::new(),
    }))
}

/// An entity's open conflicts.
pub async fn conflicts(site: &Site, id: &EntityId) -> anyhow::Result<Vec<ConflictItem>> {
    let (mut page, mut found) = (Page::first(1000), Vec::new());
    loop {
        let listing = site.store.conflicts(Some(&id.machine), true, &page).await?;
        found.extend(listing.items.into_iter().filter(|c| c.entity == *id));
        let Some(next) = listing.next else { return Ok(found) };
        page = Page::after(1000, next);
    }
}

async fn list(ctx: &Context, filter: &EntityFilter, paging: &Paging) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    if let Some(machine) = &filter.machine {
        site.machine(machine)?;
    }
    let listing = site.store.entities(filter, &ctx.page(paging)).await?;
    let now = ctx.clock.now();
    let row = |e: &EntitySummary| {
        let held = e.blocked.as_ref().map(|b| format!("{} {}", b.by.name(), b.id));
        let since = if e.state.is_some() { show::since(e.entered, now) } else { "-".to_owned() };
        vec![
            e.id.machine.to_string(),
            show::key(&e.id.key),
            show::or_dash(e.state.as_deref()),
            e.version.to_string(),
            e.revision.to_string(),
            since,
            e.deferred.to_string(),
            show::or_dash(held),
        ]
    };
    let head = ["MACHINE", "KEY", "STATE", "VERSION", "REV", "SINCE", "WAITING", "HELD BY"];
    ctx.list(&listing, &head, row, summary)
}

fn summary(e: &EntitySummary) -> Object {
    show::entity_members(&e.id)
        .put("version", e.version)
        .put("revision", e.revision)
        .put("state", e.state.as_deref())
        .put("entered", e.state.is_some().then(|| show::time(e.entered)))
        .put("rules", e.rules.map(|d| d.to_string()))
        .put("blocked", e.blocked.as_ref().map(blocked))
        .put("deferred", e.deferred)
        .put("dead_letters", e.dead_letters)
}

fn blocked(by: &Blocked) -> Object {
    Object::new().put("reason", by.by.name()).put("id", by.id.to_string()).put("version", by.version)
}

async fn show_one(ctx: &Context, id: &EntityId) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    let Some(detail) = find(&site, id).await? else { return Err(not_found(ctx, &site, id).await) };
    ctx.answer(|| json(&detail), || text(ctx, &detail))
}

fn json(detail: &EntityDetail) -> Object {
    let times = |timers: &BTreeMap<Arc<str>, i64>| -> Vec<Object> {
        timers.iter().map(|(name, due)| Object::new().put("name", &**name).put("due", show::time(*due))).collect()
    };
    let seen: Vec<&str> = detail.seen.iter().map(|s| &**s).collect();
    let emitted: BTreeMap<&str, u64> = detail.emitted.iter().map(|(t, n)| (&**t, *n)).collect();
    summary(&detail.summary)
        .put("schema", detail.schema)
        .and(show::data_members(&detail.data))
        .put("timers", times(&detail.timers))
        .put("seen", seen)
        .put("emitted", emitted)
        .put("pruned_through", detail.pruned_through)
        .put("erased", detail.erased)
}

fn text(ctx: &Context, detail: &EntityDetail) -> String {
    let (e, now) = (&detail.summary, ctx.clock.now());
    let mut lines = vec![show::entity(&e.id)];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<10} {value}"));
    match &e.state {
        Some(state) => line("state", format!("{state}, since {}", show::since(e.entered, now))),
        None => line("state", "none yet".to_owned()),
    }
    line("version", format!("{} (revision {})", e.version, e.revision));
    line("data", show::data(&detail.data));
    line("rules", show::or_dash(e.rules));
    if let Some(held) = &e.blocked {
        let at = held.version.map(|v| format!(" at version {v}")).unwrap_or_default();
        line("held by", format!("{} {}{at}", held.by.name(), held.id));
    }
    for (name, due) in &detail.timers {
        line("timer", format!("{name}, due {}", show::since(*due, now)));
    }
    if e.deferred > 0 {
        line("waiting", format!("{} events", e.deferred));
    }
    if e.blocked.is_some() || e.deferred > 0 {
        let key = show::key_argument(&e.id.key);
        line("why", ctx.command(&format!("entity explain {} {key}", e.id.machine)));
    }
    lines.join("\n")
}

async fn history(ctx: &Context, id: &EntityId, paging: &Paging) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    let listing = site.store.history(id, &ctx.page(paging)).await?;
    if listing.items.is_empty() && site.store.entity(id).await?.is_none() {
        return Err(not_found(ctx, &site, id).await);
    }
    let row = |row: &HistoryRow| {
        let what =
            row.event.as_ref().map(|e| e.kind.to_string()).or_else(|| row.timer.as_ref().map(ToString::to_string));
        let from = row.previous_state.as_deref().unwrap_or("(none)");
        let to = row.next_state.as_deref().unwrap_or("(none)");
        vec![
            row.revision.to_string(),
            row.version.to_string(),
            row.cause.name().to_owned(),
            show::or_dash(what),
            if from == to { to.to_owned() } else { format!("{from} → {to}") },
            show::seconds(row.time),
            show::or_dash(row.event.as_ref().map(|e| e.key.id.clone())),
            row.code.iter().chain(&row.notes).cloned().collect::<Vec<_>>().join("; "),
        ]
    };
    if paging.is_first()
        && !ctx.json
        && let Some(base) = site.store.base(id).await?
    {
        let state = base.state.as_deref().unwrap_or("(none)");
        super::output::print(format!(
            "Revisions up to {} are past their retention. It was {state}, version {}, at {}.",
            base.revision,
            base.version,
            show::seconds(base.through)
        ))?;
    }
    ctx.list(&listing, &["REV", "VERSION", "CAUSE", "WHAT", "STATE", "TIME", "EVENT", "NOTES"], row, history_json)
}

/// A revision, whole.
pub fn history_json(row: &HistoryRow) -> Object {
    Object::new()
        .put("revision", row.revision)
        .put("version", row.version)
        .put("consumed", row.consumed)
        .put("cause", row.cause.name())
        .put("timer", row.timer.as_deref())
        .put("time", show::time(row.time))
        .put("decided_at", show::time(row.decided_at))
        .put("previous_state", row.previous_state.as_deref())
        .put("next_state", row.next_state.as_deref())
        .put("schema", row.schema)
        .put("activation", row.rules.activation)
        .put("rules", row.rules.digest.to_string())
        .put("data_digest", row.data_digest.to_string())
        .put("effects_digest", row.effects_digest.to_string())
        .put("code", row.code.as_deref())
        .put("notes", &row.notes)
        .put("actor", row.by.as_ref().map(show::actor))
        .put("event", row.event.as_deref().map(show::event))
}
