//! Entities that come with a life behind them, and entities whose contents are to be forgotten (R5's "import" and "erase").

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::effects;
use crate::ids::{EntityId, MAX_KEY, MAX_NAME, Position, Ref};
use crate::machine::Machines;
use crate::verdict::Verdict;
use crate::world::{DeadKind, World};
use crate::writes::{Actor, Cause, DeadStatus, DeadUpdate, DeadWrite, TimerWrite};

use super::desk::{Desk, Step};
use super::{Decision, Outcome, Undecided, check, refused, release};

/// An entity as another system hands it over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its address.
    pub entity: EntityId,
    /// The last version that the other system took into account.
    pub version: u64,
    /// Its state, by the rules' name.
    pub state: String,
    /// Layout of `data`.
    pub schema: u32,
    /// Its data, as the rules write it.
    pub data: Arc<[u8]>,
    /// Types of events that it has seen, for `dependson`.
    pub seen: BTreeSet<Arc<str>>,
    /// When it entered its state; host time where it is not known.
    pub entered: Option<i64>,
    /// Pending timers, with due times.
    pub timers: BTreeMap<Arc<str>, i64>,
}

/// What a person wants forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erase {
    /// The entity.
    pub entity: EntityId,
    /// Also while it is live.
    pub live: bool,
    /// Open malformed envelopes that name it and stand in nobody's way, with their positions.
    pub envelopes: Vec<(Ref, Position)>,
}

pub(super) fn import(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    import: &Import,
    now: i64,
) -> Result<Decision, Undecided> {
    let mut desk = Desk::open(world, machines, &import.entity, now)?;
    admit(&desk, import)?;
    desk.by = Some(by.clone());
    let entity = &mut desk.entity;
    entity.version = import.version;
    entity.pruned_through = import.version;
    entity.state = desk.machine.graph.state(&import.state).cloned();
    entity.entered = import.entered.unwrap_or(now);
    entity.schema = import.schema;
    entity.data = import.data.clone();
    entity.seen.extend(import.seen.iter().cloned());
    entity.timers.clone_from(&import.timers);
    desk.wake_waiters();
    desk.revise(plain(&desk, Cause::Import, None));
    for (name, due) in &import.timers {
        let write = TimerWrite::Put { due: *due, revision: desk.entity.revision };
        desk.writes.timers.insert((desk.entity.id.clone(), name.clone()), write);
    }
    desk.by = None;
    release::after(&mut desk)?;
    Ok(desk.close(Outcome::plain(Verdict::Applied)))
}

fn plain(desk: &Desk<'_>, cause: Cause, previous_state: Option<Arc<str>>) -> Step<'static> {
    Step {
        cause,
        event: None,
        timer: None,
        time: desk.now,
        consumed: None,
        previous_state,
        effects_digest: effects::digest(&[]),
        code: None,
        notes: Vec::new(),
    }
}

/// Whether the entity may stand as it is handed over.
fn admit(desk: &Desk<'_>, import: &Import) -> Result<(), Undecided> {
    let (graph, description) = (&desk.machine.graph, desk.machine.graph.description());
    if desk.entity.revision > 0 {
        return refused("exists", format!("{} is there already", import.entity));
    }
    if desk.entity.blocked() {
        let message = format!("a dead letter holds {}; decide it first (`dead-letter list`)", import.entity);
        return refused("blocked", message);
    }
    let keys = 1..=MAX_KEY;
    if !keys.contains(&import.entity.key.len()) {
        return refused("key", format!("the key has {} bytes; 1 to {MAX_KEY} are allowed", import.entity.key.len()));
    }
    if import.version == 0 && desk.ordering().uses_versions() {
        return refused("version", "the version is 0; it must be that of the last event taken into account, from 1");
    }
    if graph.state(&import.state).is_none() {
        let states: Vec<&str> = description.states.iter().map(|s| s.name.as_str()).collect();
        return refused(
            "state",
            format!("the rules have no state `{}`; there are: {}", import.state, states.join(", ")),
        );
    }
    if import.schema != description.schema && !description.reads.contains(&import.schema) {
        let message = format!(
            "the rules in force write layout {} and do not read layout {}; convert the data first",
            description.schema, import.schema
        );
        return refused("schema", message);
    }
    if let Err(fault) = check::data(import.data.len()) {
        return refused("data", fault.message);
    }
    if let Some(kind) = import.seen.iter().find(|k| k.is_empty() || k.len() > MAX_NAME) {
        return refused("seen", format!("an event type has {} bytes; 1 to {MAX_NAME} are allowed", kind.len()));
    }
    if let Some(name) = import.timers.keys().find(|name| !graph.knows_timer(name)) {
        return refused("timer", format!("the rules have no timer `{name}`"));
    }
    if !import.timers.is_empty() && graph.is_terminal(&import.state) {
        return refused("timer", format!("`{}` is terminal, where no timer can be pending", import.state));
    }
    Ok(())
}

pub(super) fn erase(
    world: &World,
    machines: &mut Machines,
    by: &Actor,
    erase: &Erase,
    now: i64,
) -> Result<Decision, Undecided> {
    let mut desk = Desk::open(world, machines, &erase.entity, now)?;
    desk.by = Some(by.clone());
    let entity = &desk.entity;
    if entity.revision == 0 && entity.waiting.is_empty() && entity.dead.is_empty() {
        return refused("not-found", format!("nothing of {} is kept", erase.entity));
    }
    let state = entity.state.clone();
    if !erase.live && !state.as_deref().is_some_and(|s| desk.machine.graph.is_terminal(s)) {
        let place = state.as_deref().map_or("no state".to_owned(), |s| format!("`{s}`"));
        let message = format!("{} is live, in {place}: its rules would never run again; say --live", erase.entity);
        return refused("live", message);
    }
    let outcome = Outcome::coded(Verdict::Skipped, "erased", "the entity was erased");
    for row in desk.entity.waiting.clone() {
        desk.remove_waiting(&row);
        desk.change_verdict(Some(&row.position), Verdict::Deferred, Verdict::Skipped);
        desk.inbox_verdict(&row.event.key, &outcome);
        desk.decided.push((row.event.key.clone(), outcome.clone()));
    }
    let closing =
        || DeadUpdate { status: Some(DeadStatus::Skipped), by: Some(by.clone()), at: now, ..DeadUpdate::default() };
    for entry in desk.entity.dead.clone() {
        desk.close_dead(entry.id, closing());
        if entry.kind == DeadKind::Event {
            desk.change_verdict(entry.position.as_ref(), entry.class, Verdict::Skipped);
        }
        if let Some(event) = &entry.event {
            desk.inbox_verdict(&event.key, &outcome);
            desk.decided.push((event.key.clone(), outcome.clone()));
        }
    }
    for (id, position) in &erase.envelopes {
        if !desk.writes.dead.contains_key(id) {
            desk.change_verdict(Some(position), Verdict::Malformed, Verdict::Skipped);
            desk.writes.dead.insert(*id, DeadWrite::Update(closing()));
        }
    }
    desk.drop_timers();
    desk.entity.data = Arc::from([]);
    desk.entity.erased = true;
    desk.revise(plain(&desk, Cause::Erase, state));
    desk.writes.erased.insert(erase.entity.clone());
    // Nothing is left that could wait.
    desk.moved = false;
    Ok(desk.close(Outcome::plain(Verdict::Applied)))
}
