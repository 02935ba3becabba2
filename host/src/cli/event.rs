//! `event`: what became of an event, by its id (G6).

use clap::Subcommand;
use seqgate_decide::writes::HistoryRow;

use super::context::{Context, Site};
use super::entity::history_json;
use super::failure::failed;
use super::output::{self, Object, plain};
use super::show;
use crate::store::views::{EventItem, Page, Standing};

/// What became of an event
#[derive(Debug, Subcommand)]
pub enum Event {
    /// Every event of this id, of all machines and sources
    Show {
        /// Its CloudEvents id
        #[arg(allow_hyphen_values = true)]
        id: String,
    },
}

impl Event {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::Show { id } = self;
        let site = ctx.open().await?;
        let mut found = Vec::new();
        for item in site.store.events(&id).await? {
            let history = history(&site, &item).await?;
            found.push((item, history));
        }
        if found.is_empty() {
            let list = ctx.command("dead-letter list --class malformed");
            let message = format!("no event with the id `{id}` was received; malformed ones have no id: `{list}`");
            return Err(failed("not-found", message));
        }
        if ctx.json {
            let items: Vec<Object> = found.iter().map(|(item, history)| json(item, history.as_ref())).collect();
            return output::print(Object::new().put("id", &id).put("items", items).put("next", None::<&str>));
        }
        let now = ctx.clock.now();
        let texts: Vec<String> = found.iter().map(|(item, history)| text(item, history.as_ref(), now)).collect();
        output::print(texts.join("\n"))
    }
}

/// The revision that holds its content.
async fn history(site: &Site, item: &EventItem) -> anyhow::Result<Option<HistoryRow>> {
    let revision = |s: &Standing| if let Standing::History { revision, .. } = s { Some(*revision) } else { None };
    let Some(wanted) = item.standing.iter().find_map(revision) else { return Ok(None) };
    let mut page = Page::first(1000);
    loop {
        let listing = site.store.history(&item.entity, &page).await?;
        if let Some(row) = listing.items.into_iter().find(|row| row.revision == wanted) {
            return Ok(Some(row));
        }
        let Some(next) = listing.next else { return Ok(None) };
        page = Page::after(1000, next);
    }
}

fn json(item: &EventItem, history: Option<&HistoryRow>) -> Object {
    show::entity_members(&item.entity)
        .put("source", &*item.key.source)
        .put("id", &*item.key.id)
        .put("type", &*item.kind)
        .put("version", item.version)
        .put("digest", item.digest.to_string())
        .put("verdict", item.verdict.name())
        .put("reason", item.reason.as_deref())
        .put("first", item.first.as_ref().map(show::position))
        .put("last", item.last.as_ref().map(show::position))
        .put("deliveries", item.deliveries)
        .put("received", show::time(item.received))
        .put("standing", item.standing.iter().map(standing).collect::<Vec<_>>())
        .put("history", history.map(history_json))
}

fn standing(standing: &Standing) -> Object {
    let object = Object::new();
    match standing {
        Standing::History { revision, version, cause, rules } => object
            .put("in", "history")
            .put("revision", revision)
            .put("version", version)
            .put("cause", cause.name())
            .put("rules", rules.to_string()),
        Standing::Waiting { id, reason, since } => object
            .put("in", "deferred")
            .put("id", id.to_string())
            .put("reason", reason.name())
            .put("since", show::time(*since)),
        Standing::DeadLetter { id, status, code } => {
            object.put("in", "dead-letter").put("id", id.to_string()).put("status", status.name()).put("code", code)
        }
        Standing::Conflict { id, code } => object.put("in", "conflict").put("id", id.to_string()).put("code", code),
    }
}

fn text(item: &EventItem, history: Option<&HistoryRow>, now: i64) -> String {
    let version = item.version.map(|v| format!(" at version {v}")).unwrap_or_default();
    let reason = item.reason.as_ref().map(|r| format!(" ({r})")).unwrap_or_default();
    let mut lines = vec![format!("{} of {}{version}, from {}", item.kind, show::entity(&item.entity), item.key.source)];
    let mut line = |name: &str, value: String| lines.push(format!("  {name:<10} {value}"));
    line("verdict", format!("{}{reason}", item.verdict));
    let (first, last) = (show::or_dash(item.first.as_ref()), show::or_dash(item.last.as_ref()));
    line(
        "delivered",
        format!("{} times, first {first} at {}, last {last}", item.deliveries, show::since(item.received, now)),
    );
    for place in &item.standing {
        line(
            "stands in",
            match place {
                Standing::History { revision, version, cause, .. } => {
                    format!("history, revision {revision} (version {version}, {})", cause.name())
                }
                Standing::Waiting { id, reason, since } => {
                    format!("deferred {id}, {reason}, {}", show::since(*since, now))
                }
                Standing::DeadLetter { id, status, code } => format!("dead letter {id}, {}, {code}", status.name()),
                Standing::Conflict { id, code } => format!("conflict {id}, {code}"),
            },
        );
    }
    if let Some(row) = history {
        let (from, to) = (row.previous_state.as_deref(), row.next_state.as_deref());
        line("made", format!("{} → {}", from.unwrap_or("(none)"), to.unwrap_or("(none)")));
        line("rules", row.rules.digest.to_string());
        row.notes.iter().for_each(|note| line("note", note.clone()));
    }
    lines.iter().map(|line| format!("{}\n", plain(line))).collect()
}
