//! Entities, history, inbox, intents.

use std::collections::BTreeMap;

use seqgate_decide::world::Entity;
use seqgate_decide::writes::{HistoryRow, InboxRow, InboxWrite, Writes};

use super::batch::{Rows, Template};
use super::codec::{EVENT, EVENT_COLUMNS};
use super::failures::{failed, failed_insert};
use super::transaction::Tx;
use crate::store::{Commit, Result};

pub(super) static ENTITIES: Template = Template::new(
    15,
    &["INSERT INTO entities (machine, key, row_version, version, revision, state, entered, schema, data, seen, \
       pruned_through, arrivals, emitted, rules, erased) SELECT * FROM "],
    " WHERE column1 IS NOT NULL ON CONFLICT (machine, key) DO UPDATE SET row_version = excluded.row_version, \
     version = excluded.version, revision = excluded.revision, state = excluded.state, entered = excluded.entered, \
     schema = excluded.schema, data = excluded.data, seen = excluded.seen, pruned_through = excluded.pruned_through, \
     arrivals = excluded.arrivals, emitted = excluded.emitted, rules = excluded.rules, \
     erased = excluded.erased",
);

/// Version and pruned_through 0, in the form of codec's `ordered`.
pub(super) static TOUCHED: Template = Template::new(
    2,
    &["INSERT INTO entities (machine, key, row_version, version, revision, entered, schema, data, pruned_through, \
       arrivals) SELECT column1, column2, 1, -9223372036854775807 - 1, 0, 0, 0, x'', -9223372036854775807 - 1, 0 FROM "],
    " WHERE column1 IS NOT NULL ON CONFLICT (machine, key) DO UPDATE SET row_version = row_version + 1",
);

pub(super) static HISTORY: Template = Template::new(
    20 + EVENT_COLUMNS,
    &[
        "INSERT INTO history (machine, key, revision, version, consumed, cause, timer, time, decided_at, \
         previous_state, next_state, data_digest, effects_digest, schema, activation, rules, code, notes, actor, \
         actor_reason, ",
        EVENT,
        ") SELECT * FROM ",
    ],
    " WHERE column1 IS NOT NULL",
);

pub(super) static INBOX: Template = Template::new(
    18,
    &["INSERT INTO inbox (id, source, machine, key, type, version, digest, value_digest, verdict, reason, \
       first_source, first_partition, first_offset, last_source, last_partition, last_offset, deliveries, received) \
       SELECT * FROM "],
    " WHERE column1 IS NOT NULL",
);

pub(super) static INBOX_AGAIN: Template = Template::new(
    9,
    &["UPDATE inbox SET deliveries = deliveries + k.column4, \
       last_source = coalesce(k.column5, last_source), \
       last_partition = CASE WHEN k.column5 IS NULL THEN last_partition ELSE k.column6 END, \
       last_offset = CASE WHEN k.column5 IS NULL THEN last_offset ELSE k.column7 END, \
       verdict = coalesce(k.column8, verdict), \
       reason = CASE WHEN k.column8 IS NULL THEN reason ELSE k.column9 END FROM "],
    " AS k WHERE inbox.id = k.column1 AND inbox.source = k.column2 AND inbox.machine = k.column3",
);

static INTENTS: Template = Template::new(
    6,
    &["INSERT INTO intents (intent, machine, key, type, data_digest, taken) SELECT * FROM "],
    " WHERE column1 IS NOT NULL",
);

pub(super) async fn write(tx: &mut Tx<'_>, commit: &Commit<'_>) -> Result<()> {
    let (writes, guards) = (commit.writes, &commit.guards);
    let mut rows = Rows::of(&ENTITIES);
    for (id, entity) in &writes.entities {
        push_entity(&mut rows, entity, guards.get(id).copied().unwrap_or(entity.row_version));
    }
    tx.execute(&ENTITIES, rows, failed).await?;
    let mut rows = Rows::of(&TOUCHED);
    for id in writes.touched.iter().filter(|id| !writes.entities.contains_key(*id)) {
        rows.entity(id);
    }
    tx.execute(&TOUCHED, rows, failed).await?;
    let mut rows = Rows::of(&HISTORY);
    for row in &writes.history {
        push_history(&mut rows, row);
    }
    tx.execute(&HISTORY, rows, failed_insert("history")).await?;
    write_inbox(tx, writes).await?;
    let mut rows = Rows::of(&INTENTS);
    for ((machine, intent), taken) in &writes.intents {
        rows.name(intent)
            .name(machine)
            .bytes(&taken.entity.key)
            .name(&taken.kind)
            .digest(&taken.data_digest)
            .int(commit.at);
    }
    tx.execute(&INTENTS, rows, failed_insert("intents")).await.map(drop)
}

fn push_entity(rows: &mut Rows, entity: &Entity, guard: u64) {
    rows.entity(&entity.id)
        .count(guard.saturating_add(1))
        .whole(entity.version)
        .count(entity.revision)
        .name_opt(entity.state.as_ref())
        .int(entity.entered)
        .int(entity.schema.into())
        .bytes(&entity.data);
    let seen: Vec<&str> = entity.seen.iter().map(AsRef::as_ref).collect();
    let emitted: BTreeMap<&str, u64> = entity.emitted.iter().map(|(topic, n)| (topic.as_ref(), *n)).collect();
    rows.json(&seen, seen.is_empty())
        .whole(entity.pruned_through)
        .count(entity.arrivals)
        .json(&emitted, emitted.is_empty())
        .digest_opt(entity.rules.as_ref())
        .int(entity.erased.into());
}

fn push_history(rows: &mut Rows, row: &HistoryRow) {
    rows.entity(&row.entity)
        .count(row.revision)
        .whole(row.version)
        .whole_opt(row.consumed)
        .text(row.cause.name())
        .name_opt(row.timer.as_ref())
        .int(row.time)
        .int(row.decided_at)
        .name_opt(row.previous_state.as_ref())
        .name_opt(row.next_state.as_ref())
        .digest(&row.data_digest)
        .digest(&row.effects_digest)
        .int(row.schema.into())
        .count(row.rules.activation)
        .digest(&row.rules.digest)
        .text_opt(row.code.as_deref())
        .json(&row.notes, row.notes.is_empty())
        .text_opt(row.by.as_ref().map(|by| by.name.as_str()))
        .text_opt(row.by.as_ref().map(|by| by.reason.as_str()))
        .event(row.event.as_deref());
}

async fn write_inbox(tx: &mut Tx<'_>, writes: &Writes) -> Result<()> {
    let (mut new, mut again) = (Rows::of(&INBOX), Rows::of(&INBOX_AGAIN));
    for (key, write) in &writes.inbox {
        match write {
            InboxWrite::Insert(row) => {
                new.name(&key.id).name(&key.source).name(&key.machine);
                push_inbox(&mut new, row);
            }
            InboxWrite::Update { deliveries, last, verdict } => {
                again.name(&key.id).name(&key.source).name(&key.machine);
                again.count(*deliveries).position(last.as_ref());
                match verdict {
                    Some((verdict, reason)) => again.text(verdict.name()).text_opt(reason.as_deref()),
                    None => again.nulls(2),
                };
            }
        }
    }
    tx.execute(&INBOX, new, failed_insert("inbox")).await?;
    // A row that retention took meanwhile is not there to be amended.
    tx.execute(&INBOX_AGAIN, again, failed).await.map(drop)
}

fn push_inbox(rows: &mut Rows, row: &InboxRow) {
    rows.bytes(&row.entity.key)
        .name(&row.kind)
        .whole_opt(row.version)
        .digests(&row.digest, &row.value_digest)
        .text(row.verdict.name())
        .text_opt(row.reason.as_deref())
        .position(row.first.as_ref())
        .position(row.last.as_ref().filter(|last| Some(*last) != row.first.as_ref()))
        .count(row.deliveries)
        .int(row.received);
}
