//! What waits and what was refused: deferred events, dead letters, conflicts.

use seqgate_decide::ids::Ref;
use seqgate_decide::writes::{
    Actor, ConflictRow, ConflictWrite, DeadRow, DeadStatus, DeadUpdate, DeadWrite, WaitingWrite, Writes,
};

use super::batch::{Rows, Template};
use super::codec::{EVENT, EVENT_COLUMNS, dependencies_text};
use super::failures::failed;
use super::transaction::Tx;
use crate::store::error::Race;
use crate::store::{Result, StoreError};

/// A waiting event's content never changes; what is put again has another standing.
static DEFERRED: Template = Template::new(
    12 + EVENT_COLUMNS,
    &[
        "INSERT INTO deferred (ref, machine, key, arrival, reason, named, since, deadline, ready, pos_source, \
         pos_partition, pos_offset, ",
        EVENT,
        ") SELECT * FROM ",
    ],
    " WHERE column1 IS NOT NULL ON CONFLICT (ref) DO UPDATE SET arrival = excluded.arrival, reason = excluded.reason, \
     named = excluded.named, since = excluded.since, deadline = excluded.deadline, ready = excluded.ready",
);

pub(super) static READY: Template = Template::new(
    1,
    &["UPDATE deferred SET ready = 1 WHERE ref IN (SELECT column1 FROM "],
    " WHERE column1 IS NOT NULL)",
);

pub(super) static GONE: Template =
    Template::new(1, &["DELETE FROM deferred WHERE ref IN (SELECT column1 FROM "], " WHERE column1 IS NOT NULL)");

pub(super) static WAITS_GONE: Template =
    Template::new(1, &["DELETE FROM waits WHERE ref IN (SELECT column1 FROM "], " WHERE column1 IS NOT NULL)");

static WAITS: Template = Template::new(
    6,
    &["INSERT INTO waits (target_machine, target_key, target_version, ref, machine, key) SELECT DISTINCT * FROM "],
    " WHERE column1 IS NOT NULL",
);

static DEAD: Template = Template::new(
    25 + EVENT_COLUMNS,
    &[
        "INSERT OR REPLACE INTO dead_letters (ref, machine, key, kind, class, code, message, raw, pos_source, \
         pos_partition, pos_offset, timer, timer_due, blocks, status, attempts, since, changed, activation, rules, \
         actor, actor_reason, replaced_machine, replaced_source, replaced_id, ",
        EVENT,
        ") SELECT * FROM ",
    ],
    " WHERE column1 IS NOT NULL",
);

pub(super) static DEAD_CHANGED: Template = Template::new(
    12,
    &["UPDATE dead_letters SET changed = k.column2, status = coalesce(k.column3, status), \
       class = coalesce(k.column4, class), code = coalesce(k.column5, code), \
       message = coalesce(k.column6, message), attempts = coalesce(k.column7, attempts), \
       actor = coalesce(k.column8, actor), \
       actor_reason = CASE WHEN k.column8 IS NULL THEN actor_reason ELSE k.column9 END, \
       replaced_machine = coalesce(k.column10, replaced_machine), \
       replaced_source = coalesce(k.column11, replaced_source), \
       replaced_id = coalesce(k.column12, replaced_id) FROM "],
    " AS k WHERE dead_letters.ref = k.column1 AND dead_letters.status = 'open'",
);

static CONFLICTS: Template = Template::new(
    13 + EVENT_COLUMNS,
    &[
        "INSERT OR REPLACE INTO conflicts (ref, machine, key, code, message, copies, actor, actor_reason, since, \
         changed, pos_source, pos_partition, pos_offset, ",
        EVENT,
        ") SELECT * FROM ",
    ],
    " WHERE column1 IS NOT NULL",
);

pub(super) static CONFLICTS_CHANGED: Template = Template::new(
    5,
    &["UPDATE conflicts SET copies = copies + k.column2, actor = coalesce(k.column3, actor), \
       actor_reason = CASE WHEN k.column3 IS NULL THEN actor_reason ELSE k.column4 END, changed = k.column5 FROM "],
    " AS k WHERE conflicts.ref = k.column1",
);

pub(super) async fn write(tx: &mut Tx<'_>, writes: &Writes) -> Result<()> {
    write_deferred(tx, writes).await?;
    let (mut dead, mut changed, mut open) = (Rows::of(&DEAD), Rows::of(&DEAD_CHANGED), 0);
    for (id, write) in &writes.dead {
        match write {
            DeadWrite::Put(row) => push_dead(&mut dead, *id, row),
            DeadWrite::Update(update) => {
                push_dead_update(&mut changed, *id, update);
                open += 1;
            }
        }
    }
    tx.execute(&DEAD, dead, failed).await?;
    // Only open letters are decided. One that names no entity has no other guard than this: somebody else was faster.
    if tx.execute(&DEAD_CHANGED, changed, failed).await? != open {
        return Err(StoreError::Raced(Race::Row("dead_letters")));
    }
    let (mut conflicts, mut changed) = (Rows::of(&CONFLICTS), Rows::of(&CONFLICTS_CHANGED));
    for (id, write) in &writes.conflicts {
        match write {
            ConflictWrite::Put(row) => push_conflict(&mut conflicts, *id, row),
            ConflictWrite::Update { copies, dismissed, at } => {
                changed.whole(id.0).count(*copies);
                push_actor(&mut changed, dismissed.as_ref());
                changed.int(*at);
            }
        }
    }
    tx.execute(&CONFLICTS, conflicts, failed).await?;
    tx.execute(&CONFLICTS_CHANGED, changed, failed).await.map(drop)
}

async fn write_deferred(tx: &mut Tx<'_>, writes: &Writes) -> Result<()> {
    let (mut put, mut ready) = (Rows::of(&DEFERRED), Rows::of(&READY));
    let (mut gone, mut waits_gone, mut waits) = (Rows::of(&GONE), Rows::of(&WAITS_GONE), Rows::of(&WAITS));
    for ((entity, id), write) in &writes.waiting {
        match write {
            WaitingWrite::Ready => drop(ready.whole(id.0)),
            WaitingWrite::Delete => {
                gone.whole(id.0);
                waits_gone.whole(id.0);
            }
            WaitingWrite::Put { row, waits_for } => {
                put.whole(id.0).entity(entity).count(row.arrival).text(row.reason.name());
                put.text_opt(dependencies_text(&row.named)).int(row.since).int_opt(row.deadline);
                put.int(row.ready.into()).position(Some(&row.position)).event(Some(&row.event));
                waits_gone.whole(id.0);
                for target in waits_for {
                    waits.entity(&target.entity).whole(target.version).whole(id.0).entity(entity);
                }
            }
        }
    }
    tx.execute(&GONE, gone, failed).await?;
    tx.execute(&DEFERRED, put, failed).await?;
    tx.execute(&READY, ready, failed).await?;
    tx.execute(&WAITS_GONE, waits_gone, failed).await?;
    tx.execute(&WAITS, waits, failed).await.map(drop)
}

fn push_actor(rows: &mut Rows, by: Option<&Actor>) {
    rows.text_opt(by.map(|by| by.name.as_str())).text_opt(by.map(|by| by.reason.as_str()));
}

fn push_dead(rows: &mut Rows, id: Ref, row: &DeadRow) {
    rows.whole(id.0);
    match &row.entity {
        Some(entity) => rows.entity(entity),
        None => rows.nulls(2),
    };
    rows.text(row.kind.name()).text(row.class.name()).text(row.code.as_str()).text(row.message.as_str());
    rows.bytes_opt(row.raw.as_deref()).position(row.position.as_ref());
    match &row.timer {
        Some((name, due)) => rows.name(name).int(*due),
        None => rows.nulls(2),
    };
    rows.int(row.blocks.into()).text(row.status.name()).int(row.attempts.into()).int(row.since).int(row.since);
    rows.count_opt(row.rules.map(|r| r.activation)).digest_opt(row.rules.map(|r| r.digest).as_ref());
    push_actor(rows, row.by.as_ref());
    match &row.replaced_by {
        Some(key) => rows.name(&key.machine).name(&key.source).name(&key.id),
        None => rows.nulls(3),
    };
    rows.event(row.event.as_deref());
}

fn push_dead_update(rows: &mut Rows, id: Ref, update: &DeadUpdate) {
    rows.whole(id.0).int(update.at).text_opt(update.status.map(DeadStatus::name));
    match &update.refusal {
        Some((class, code, message)) => rows.text(class.name()).text(code.as_str()).text(message.as_str()),
        None => rows.nulls(3),
    };
    rows.int_opt(update.attempts.map(i64::from));
    push_actor(rows, update.by.as_ref());
    match &update.replaced_by {
        Some(key) => rows.name(&key.machine).name(&key.source).name(&key.id),
        None => rows.nulls(3),
    };
}

fn push_conflict(rows: &mut Rows, id: Ref, row: &ConflictRow) {
    rows.whole(id.0).entity(&row.event.entity).text(row.code).text(row.message.as_str()).count(row.copies);
    push_actor(rows, row.dismissed.as_ref());
    rows.int(row.since).int(row.since).position(row.position.as_ref()).event(Some(&row.event));
}
