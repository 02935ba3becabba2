//! Entities with all that stands around them.

use std::collections::{BTreeMap, BTreeSet};

use seqgate_decide::ids::{EntityId, Ref};
use seqgate_decide::rules::Reason;
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::world::{DeadEntry, DeadKind, Entity, Waiter, Waiting};

use super::batch::{Rows, Template};
use super::codec::{Reader, damaged, dependencies, shared};
use super::transaction::Snapshot;
use crate::store::Result;

pub(super) static ENTITIES: Template = Template::new(
    2,
    &["SELECT e.machine, e.key, e.row_version, e.version, e.revision, e.state, e.entered, e.schema, e.data, e.seen, \
       e.pruned_through, e.arrivals, e.emitted, e.rules, e.erased FROM "],
    " AS k CROSS JOIN entities AS e ON e.machine = k.column1 AND e.key = k.column2",
);

pub(super) static TIMERS: Template = Template::new(
    2,
    &["SELECT t.machine, t.key, t.name, t.due FROM "],
    " AS k CROSS JOIN timers AS t ON t.machine = k.column1 AND t.key = k.column2 WHERE t.outcome IS NULL",
);

/// A waiting event's columns, as [`waiting`] reads them.
pub(super) const WAITING: &str = "d.machine, d.key, d.arrival, d.reason, d.named, d.since, d.deadline, d.ready, \
     d.pos_source, d.pos_partition, d.pos_offset, d.source, d.event_id, d.type, d.event_version, d.previous, \
     d.event_time, d.idempotency_key, d.depends_on, d.logical_time, d.content_type, d.attributes, d.payload, d.digest, \
     d.value_digest";

pub(super) static DEFERRED: Template = Template::new(
    2,
    &["SELECT ", WAITING, " FROM "],
    " AS k CROSS JOIN deferred AS d ON d.machine = k.column1 AND d.key = k.column2",
);

pub(super) static DEAD: Template = Template::new(
    2,
    &[
        "SELECT d.ref, d.machine, d.key, d.kind, d.blocks, d.class, d.code, d.message, d.attempts, d.timer, d.timer_due, d.pos_source, \
       d.pos_partition, d.pos_offset, d.source, d.event_id, d.type, d.event_version, d.previous, d.event_time, \
       d.idempotency_key, d.depends_on, d.logical_time, d.content_type, d.attributes, d.payload, d.digest, \
       d.value_digest FROM ",
    ],
    " AS k CROSS JOIN dead_letters AS d INDEXED BY dead_letters_open \
     ON d.machine = k.column1 AND d.key = k.column2 AND d.status = 'open' \
     WHERE d.blocks OR d.kind <> 'event' ORDER BY d.since, d.ref",
);

pub(super) static WAITERS: Template = Template::new(
    2,
    &["SELECT w.target_machine, w.target_key, w.machine, w.key, w.ref, w.target_version FROM "],
    " AS k CROSS JOIN waits AS w ON w.target_machine = k.column1 AND w.target_key = k.column2",
);

/// All of `wanted`; the ones without a row are absent, but may have waiters.
pub(super) async fn load(snapshot: &mut Snapshot<'_>, wanted: &BTreeSet<EntityId>) -> Result<Vec<Entity>> {
    let mut keys = Rows::of(&ENTITIES);
    let mut found: BTreeMap<EntityId, Entity> = BTreeMap::new();
    for id in wanted {
        keys.entity(id);
        found.insert(id.clone(), Entity::absent(id.clone()));
    }
    for row in snapshot.select(&ENTITIES, keys.clone()).await? {
        let entity = entity(&mut Reader::new(&row))?;
        found.insert(entity.id.clone(), entity);
    }
    let missing = |id: &EntityId| damaged(format!("rows of {id} came unasked"));
    for row in snapshot.select(&TIMERS, keys.clone()).await? {
        let mut read = Reader::new(&row);
        let id = read.entity()?;
        let entity = found.get_mut(&id).ok_or_else(|| missing(&id))?;
        entity.timers.insert(read.name()?, read.int()?);
    }
    for row in snapshot.select(&DEFERRED, keys.clone()).await? {
        let waiting = waiting(&mut Reader::new(&row))?;
        let id = &waiting.event.entity;
        found.get_mut(id).ok_or_else(|| missing(id))?.waiting.push(waiting);
    }
    for row in snapshot.select(&DEAD, keys.clone()).await? {
        let (id, dead) = dead(&mut Reader::new(&row))?;
        found.get_mut(&id).ok_or_else(|| missing(&id))?.dead.push(dead);
    }
    for row in snapshot.select(&WAITERS, keys).await? {
        let mut read = Reader::new(&row);
        let id = read.entity()?;
        let waiter = Waiter { entity: read.entity()?, event: Ref(read.whole()?), version: read.whole()? };
        found.get_mut(&id).ok_or_else(|| missing(&id))?.waiters.push(waiter);
    }
    for entity in found.values_mut() {
        entity.waiting.sort_by_key(|w| w.arrival);
        entity.waiters.sort();
    }
    Ok(found.into_values().collect())
}

fn entity(read: &mut Reader<'_>) -> Result<Entity> {
    let mut entity = Entity::absent(read.entity()?);
    entity.row_version = read.count()?;
    entity.version = read.whole()?;
    entity.revision = read.count()?;
    entity.state = read.name_opt()?;
    entity.entered = read.int()?;
    entity.schema = read.small()?;
    entity.data = read.bytes()?;
    entity.seen = read.json::<Vec<String>>()?.into_iter().map(Into::into).collect();
    entity.pruned_through = read.whole()?;
    entity.arrivals = read.count()?;
    entity.emitted = shared(read.json()?);
    entity.rules = read.digest_opt()?;
    entity.erased = read.flag()?;
    Ok(entity)
}

/// The columns of [`WAITING`].
pub(super) fn waiting(read: &mut Reader<'_>) -> Result<Waiting> {
    let id = read.entity()?;
    Ok(Waiting {
        arrival: read.count()?,
        reason: read.word(DeferReason::from_name)?,
        named: dependencies(read.json()?)?,
        since: read.int()?,
        deadline: read.int_opt()?,
        ready: read.flag()?,
        position: read.position()?,
        event: read.event(&id)?,
    })
}

fn dead(read: &mut Reader<'_>) -> Result<(EntityId, DeadEntry)> {
    let name = Ref(read.whole()?);
    let id = read.entity()?;
    let kind = read.word(DeadKind::from_name)?;
    let blocks = read.flag()?;
    let class = read.word(Verdict::from_name)?;
    let reason = Reason { code: read.text()?, message: read.text()? };
    let attempts = read.small()?;
    let timer = (read.name_opt()?, read.int_opt()?);
    let position = read.position_opt()?;
    let event = read.event_opt(Some(&id))?;
    let timer = timer.0.zip(timer.1);
    Ok((id, DeadEntry { id: name, kind, blocks, class, reason, event, position, attempts, timer }))
}
