//! `entity explain`: why an entity stands where it stands, in sentences, each with the command to type next.

mod story;
#[cfg(test)]
mod tests;
mod waiting;

use std::collections::BTreeMap;

use seqgate_decide::envelope::depends::DependsOn;
use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::Description;
use seqgate_decide::setup::Ordering;
use seqgate_decide::world::{Entity, Need, World};
use seqgate_decide::writes::HistoryRow;

use super::context::{Context, Site};
use super::output::Object;
use super::{entity, show};
use crate::store::Wants;
use crate::store::views::{Blocked, BlockedBy, ConflictItem, DeadDetail, Page};

/// How many of the last changes are told.
const LAST: usize = 5;

/// A sentence, and what to type next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    text: String,
    commands: Vec<String>,
}

impl Line {
    fn plain(text: String) -> Self {
        Self { text, commands: Vec::new() }
    }
}

/// What the story is told from.
struct Facts {
    /// The entity with its waiting events, open dead letters and timers.
    entity: Entity,
    ordering: Ordering,
    /// Nothing leaves its state.
    terminal: bool,
    /// What is shown as holding it.
    held: Option<Blocked>,
    /// Its open dead letters, whole.
    dead: Vec<DeadDetail>,
    /// Its open conflicts.
    conflicts: Vec<ConflictItem>,
    /// Entities that its waiting events wait for.
    others: BTreeMap<EntityId, Other>,
    /// The last changes, the oldest first.
    history: Vec<HistoryRow>,
}

/// Another entity, as far as somebody waits for it.
#[derive(Clone, Debug, Default)]
struct Other {
    version: u64,
    held: Option<BlockedBy>,
}

pub async fn run(ctx: &Context, id: &EntityId) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    let Some(facts) = gather(&site, id).await? else { return Err(entity::not_found(ctx, &site, id).await) };
    let lines = story::tell(&facts, ctx.clock.now(), &|rest| ctx.command(rest));
    let json = || {
        let line = |line: &Line| Object::new().put("text", &line.text).put("commands", &line.commands);
        show::entity_members(id).put("story", lines.iter().map(line).collect::<Vec<_>>())
    };
    ctx.answer(json, || text(&lines))
}

fn text(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        text.push_str(&super::output::plain(&line.text));
        match &line.commands[..] {
            [] => text.push('\n'),
            [command] => text.push_str(&format!(" By hand: {command}\n")),
            commands => {
                text.push_str(" By hand:\n");
                commands.iter().for_each(|command| text.push_str(&format!("    {command}\n")));
            }
        }
    }
    text
}

async fn gather(site: &Site, id: &EntityId) -> anyhow::Result<Option<Facts>> {
    let store = &site.store;
    let Some(detail) = entity::find(site, id).await? else { return Ok(None) };
    let entity = load(site, id).await?;
    let mut dead = Vec::new();
    for entry in &entity.dead {
        dead.extend(store.dead_letter(entry.id).await?);
    }
    let mut others = BTreeMap::new();
    for dependency in entity.waiting.iter().flat_map(waiting::wants) {
        if dependency.entity != *id && !others.contains_key(&dependency.entity) {
            let other = store.entity(&dependency.entity).await?;
            let known = other.map(|o| Other { version: o.summary.version, held: o.summary.blocked.map(|b| b.by) });
            others.insert(dependency.entity.clone(), known.unwrap_or_default());
        }
    }
    let ordering = site.config.machine(&id.machine).map_or_else(Ordering::default, |m| m.setup.ordering);
    let (terminal, conflicts) = (terminal(site, &entity).await?, entity::conflicts(site, id).await?);
    let history = history(site, id).await?;
    Ok(Some(Facts { entity, ordering, terminal, held: detail.summary.blocked, dead, conflicts, others, history }))
}

/// The entity as decisions see it, in one snapshot with what stands around it.
async fn load(site: &Site, id: &EntityId) -> anyhow::Result<Entity> {
    let wants: Wants = [Need::Entity(id.clone())].into_iter().collect();
    let mut world = World::new();
    site.store.load(&wants, &mut world).await?;
    Ok(world.get(id).cloned().unwrap_or_else(|| Entity::absent(id.clone())))
}

async fn terminal(site: &Site, entity: &Entity) -> anyhow::Result<bool> {
    let Some(state) = &entity.state else { return Ok(false) };
    let Some((_, digest)) = site.store.active(&entity.id.machine).await? else { return Ok(false) };
    let Some((record, _)) = site.store.rules(digest).await? else { return Ok(false) };
    let description: Option<Description> = serde_json::from_str(&record.description).ok();
    Ok(description.is_some_and(|d| d.states.iter().any(|s| s.name == **state && s.terminal)))
}

async fn history(site: &Site, id: &EntityId) -> anyhow::Result<Vec<HistoryRow>> {
    let (mut page, mut last) = (Page::first(1000), Vec::new());
    loop {
        let mut listing = site.store.history(id, &page).await?;
        last.append(&mut listing.items);
        last.drain(..last.len().saturating_sub(LAST));
        let Some(next) = listing.next else { return Ok(last) };
        page = Page::after(1000, next);
    }
}

/// The types and versions that an event declares.
fn declared(item: &DependsOn) -> Option<&str> {
    match item {
        DependsOn::Type(kind) => Some(kind),
        DependsOn::Entity(_) => None,
    }
}
