//! One decision's transaction.
//!
//! The fence comes first (R7), then what the decision rested on (activations, guards), then its rows. Each kind of row is
//! one statement, or none where there are no such rows; how many rows there are makes no difference.

use std::collections::BTreeMap;
use std::sync::Arc;

use seqgate_decide::ids::EntityId;
use seqgate_decide::verdict::Verdict;

use super::SqliteStore;
use super::batch::{Rows, Template};
use super::codec::{Reader, ordered, unordered};
use super::failures::{failed, failed_insert, is_unique_violation};
use super::transaction::{Tx, end};
use super::{erase, write_effects, write_entities, write_refusals};
use crate::store::error::Race;
use crate::store::{Commit, Fence, Point, Result, StoreError};

static ACTIVATIONS: Template = Template::new(
    2,
    &["SELECT k.column1, k.column2, \
       coalesce((SELECT max(a.number) FROM activations AS a WHERE a.machine = k.column1), 0) AS active FROM "],
    " AS k WHERE k.column1 IS NOT NULL AND active <> k.column2 ORDER BY k.column1 LIMIT 1",
);

pub(super) static GUARDS: Template = Template::new(
    3,
    &["SELECT k.column1, k.column2, k.column3, coalesce(e.row_version, 0) AS found FROM "],
    " AS k LEFT JOIN entities AS e ON e.machine = k.column1 AND e.key = k.column2 \
     WHERE k.column1 IS NOT NULL AND found <> k.column3 LIMIT 1",
);

static MOVES: Template = Template::new(
    5,
    &["INSERT INTO verdict_moves (source, part, from_verdict, to_verdict, n) SELECT * FROM "],
    " WHERE column1 IS NOT NULL",
);

static SWITCHES: Template = Template::new(
    6,
    &["INSERT INTO partition_switches (machine, number, source, part, start_offset, at) SELECT * FROM "],
    " AS k WHERE column1 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM partition_switches AS s \
     WHERE s.machine = k.column1 AND s.number = k.column2 AND s.source = k.column3 AND s.part = k.column4)",
);

/// Counters in the order of [`Verdict::ALL`].
const FENCE: &str = "UPDATE partitions SET next_offset = ?5, received = received + ?6, applied = applied + ?7, \
     duplicate = duplicate + ?8, stale = stale + ?9, conflict = conflict + ?10, deferred = deferred + ?11, \
     illegal = illegal + ?12, malformed = malformed + ?13, fault = fault + ?14, skipped = skipped + ?15 \
     WHERE source = ?1 AND part = ?2 AND epoch = ?3 AND next_offset = ?4";

impl SqliteStore {
    pub(super) async fn write_commit(&self, commit: &Commit<'_>) -> Result<()> {
        let mut tx = self.begin().await?;
        let work = write(&mut tx, commit).await;
        end(tx, work).await
    }
}

async fn write(tx: &mut Tx<'_>, commit: &Commit<'_>) -> Result<()> {
    if let Some(fence) = &commit.fence {
        pass_fence(tx, fence, commit).await?;
    }
    record_operation(tx, commit).await?;
    check_activations(tx, &commit.activations).await?;
    check_guards(tx, commit).await?;
    write_entities::write(tx, commit).await?;
    tx.reach(Point::MidWrite)?;
    write_refusals::write(tx, commit.writes).await?;
    write_effects::write(tx, commit.writes).await?;
    erase::blank(tx, &commit.writes.erased).await?;
    write_moves(tx, commit).await
}

async fn pass_fence(tx: &mut Tx<'_>, fence: &Fence, commit: &Commit<'_>) -> Result<()> {
    let mut update = sqlx::query(FENCE)
        .bind(fence.source.clone())
        .bind(fence.partition)
        .bind(signed(fence.epoch)?)
        .bind(ordered(fence.expected))
        .bind(ordered(fence.next))
        .bind(signed(fence.received)?);
    for verdict in Verdict::ALL {
        let key = (fence.source.clone(), fence.partition, verdict);
        update = update.bind(signed(commit.writes.counts.get(&key).copied().unwrap_or_default())?);
    }
    if update.execute(tx.conn()).await.map_err(failed)?.rows_affected() == 1 {
        return record_switches(tx, fence, commit).await;
    }
    let found = partition_row(tx, &fence.source, fence.partition).await?;
    Err(fenced(fence, found))
}

/// A partition's epoch and offset.
pub(super) async fn partition_row(tx: &mut Tx<'_>, source: &str, partition: u32) -> Result<Option<(u64, u64)>> {
    let row: Option<(i64, i64)> =
        sqlx::query_as("SELECT epoch, next_offset FROM partitions WHERE source = ?1 AND part = ?2")
            .bind(source.to_owned())
            .bind(partition)
            .fetch_optional(tx.conn())
            .await
            .map_err(failed)?;
    Ok(row.map(|(epoch, offset)| (epoch.unsigned_abs(), unordered(offset))))
}

pub(super) fn fenced(fence: &Fence, found: Option<(u64, u64)>) -> StoreError {
    StoreError::Fenced {
        source_name: fence.source.clone(),
        partition: fence.partition,
        expected: (fence.epoch, fence.expected),
        found,
    }
}

/// A count for a parameter.
pub(super) fn signed(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|e| StoreError::Data(e.into()))
}

async fn record_switches(tx: &mut Tx<'_>, fence: &Fence, commit: &Commit<'_>) -> Result<()> {
    let mut rows = Rows::of(&SWITCHES);
    for (machine, number) in &commit.switches {
        rows.name(machine).count(*number).name(&fence.source).int(fence.partition.into());
        rows.whole(fence.expected).int(commit.at);
    }
    tx.execute(&SWITCHES, rows, failed).await.map(drop)
}

async fn record_operation(tx: &mut Tx<'_>, commit: &Commit<'_>) -> Result<()> {
    let Some(id) = commit.operation else { return Ok(()) };
    let insert = sqlx::query("INSERT INTO operations (id, at) VALUES (?1, ?2)").bind(id.0.to_vec()).bind(commit.at);
    match insert.execute(tx.conn()).await {
        Ok(_) => Ok(()),
        Err(e) if is_unique_violation(&e) => Err(StoreError::AlreadyCommitted),
        Err(e) => Err(failed(e)),
    }
}

/// R8: no decision by activation n commits after n + 1. The writer is exclusive, so reading is enough.
async fn check_activations(tx: &mut Tx<'_>, activations: &BTreeMap<Arc<str>, u64>) -> Result<()> {
    let mut keys = Rows::of(&ACTIVATIONS);
    for (machine, number) in activations {
        keys.name(machine).count(*number);
    }
    match tx.select(&ACTIVATIONS, keys).await?.first() {
        None => Ok(()),
        Some(row) => {
            let mut read = Reader::new(row);
            let (machine, decided) = (read.name()?, read.count()?);
            Err(StoreError::RulesChanged { machine, decided, active: read.count()? })
        }
    }
}

/// R7: whatever was read is as it was.
async fn check_guards(tx: &mut Tx<'_>, commit: &Commit<'_>) -> Result<()> {
    let mut guards: BTreeMap<&EntityId, u64> = commit.guards.iter().map(|(id, guard)| (id, *guard)).collect();
    for (id, entity) in &commit.writes.entities {
        guards.entry(id).or_insert(entity.row_version);
    }
    let mut keys = Rows::of(&GUARDS);
    for (id, guard) in guards {
        keys.entity(id).count(guard);
    }
    match tx.select(&GUARDS, keys).await?.first() {
        None => Ok(()),
        Some(row) => {
            let mut read = Reader::new(row);
            let (entity, expected) = (read.entity()?, read.count()?);
            Err(StoreError::Raced(Race::Entity { entity, expected, found: read.count()? }))
        }
    }
}

/// Later verdicts, and first verdicts of deliveries that no owner's batch took, are appended (R7).
async fn write_moves(tx: &mut Tx<'_>, commit: &Commit<'_>) -> Result<()> {
    let mut rows = Rows::of(&MOVES);
    let own = |source: &Arc<str>, partition: u32| {
        commit.fence.as_ref().is_some_and(|f| f.source == *source && f.partition == partition)
    };
    for ((source, partition, verdict), n) in &commit.writes.counts {
        if !own(source, *partition) {
            rows.name(source).int((*partition).into()).text("").text(verdict.name()).count(*n);
        }
    }
    for ((source, partition, from, to), n) in &commit.writes.moves {
        rows.name(source).int((*partition).into()).text(from.name()).text(to.name()).count(*n);
    }
    tx.execute(&MOVES, rows, failed_insert("verdict_moves")).await.map(drop)
}
