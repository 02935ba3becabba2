//! The log of embedded sources.

use std::collections::BTreeMap;

use super::SqliteStore;
use super::batch::{Rows, Template};
use super::codec::Reader;
use super::commit::signed;
use super::failures::{failed, failed_insert};
use super::transaction::{Tx, end};
use crate::store::log::{Appended, LogEntry, LogSize, NewEntry, OVERHEAD};
use crate::store::{Point, Result};

static APPEND: Template =
    Template::new(4, &["INSERT INTO log (lane, pos, at, event) SELECT * FROM "], " WHERE column1 IS NOT NULL");

const LANE: &str = "INSERT INTO log_lanes (source, part, next_offset, events, bytes) VALUES (?1, ?2, ?3, ?3, ?4) \
     ON CONFLICT (source, part) DO UPDATE SET next_offset = next_offset + ?3, events = events + ?3, bytes = bytes + ?4 \
     RETURNING id, next_offset";

const SIZE: &str = "SELECT coalesce(sum(events), 0), coalesce(sum(bytes), 0) FROM log_lanes WHERE source = ?1";

/// Bytes decide how many rows a read takes: the running sum before a row is what came before it.
pub(super) const READ: &str = "SELECT pos, at, event FROM (SELECT l.pos, l.at, l.event, \
     sum(length(l.event)) OVER (ORDER BY l.pos ROWS UNBOUNDED PRECEDING) - length(l.event) AS before \
     FROM (SELECT g.pos, g.at, g.event FROM log AS g INDEXED BY log_by_position \
     WHERE g.lane = (SELECT id FROM log_lanes WHERE source = ?1 AND part = ?2) AND g.pos >= ?3 \
     ORDER BY g.pos LIMIT ?4) AS l) WHERE before < ?5 ORDER BY pos";

/// The most rows of one read.
const READ_ROWS: i64 = 1024;
/// The most rows that one transaction removes.
const PRUNE_ROWS: i64 = 1000;

/// A lane with what its owner has passed.
const PASSED: &str = "SELECT l.id, p.next_offset FROM log_lanes AS l CROSS JOIN partitions AS p \
     ON p.source = l.source AND p.part = l.part WHERE l.source = ?1 AND l.events > 0 ORDER BY l.part";

pub(super) const PRUNE: &str = "DELETE FROM log WHERE id IN (SELECT id FROM log INDEXED BY log_by_position \
     WHERE lane = ?1 AND pos < ?2 AND at < ?3 ORDER BY pos LIMIT ?4) RETURNING length(event)";

impl SqliteStore {
    pub(super) async fn append_log(&self, source: &str, entries: &[NewEntry], at: i64, most: u64) -> Result<Appended> {
        let mut tx = self.begin().await?;
        let work = append(&mut tx, source, entries, at, most).await;
        end(tx, work).await
    }

    pub(super) async fn read_log_entries(
        &self,
        source: &str,
        partition: u32,
        from: u64,
        bytes: u64,
    ) -> Result<Vec<LogEntry>> {
        let rows = sqlx::query(READ)
            .bind(source.to_owned())
            .bind(partition)
            .bind(signed(from)?)
            .bind(READ_ROWS)
            .bind(signed(bytes.max(1))?)
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            Ok(LogEntry { offset: read.count()?, at: read.int()?, bytes: read.bytes()?.to_vec() })
        };
        rows.iter().map(one).collect()
    }

    pub(super) async fn read_log_size(&self, source: &str) -> Result<LogSize> {
        let row = sqlx::query(SIZE).bind(source.to_owned()).fetch_one(&self.readers).await.map_err(failed)?;
        let mut read = Reader::new(&row);
        Ok(LogSize { events: read.count()?, bytes: read.count()? })
    }

    pub(super) async fn prune_log_entries(&self, source: &str, before: i64, most: u64) -> Result<u64> {
        let mut tx = self.begin().await?;
        let work = prune(&mut tx, source, before, most).await;
        end(tx, work).await
    }
}

async fn size(tx: &mut Tx<'_>, source: &str) -> Result<LogSize> {
    let row = sqlx::query(SIZE).bind(source.to_owned()).fetch_one(tx.conn()).await.map_err(failed)?;
    let mut read = Reader::new(&row);
    Ok(LogSize { events: read.count()?, bytes: read.count()? })
}

async fn append(tx: &mut Tx<'_>, source: &str, entries: &[NewEntry], at: i64, most: u64) -> Result<Appended> {
    let held = size(tx, source).await?;
    if held.bytes.saturating_add(entries.iter().map(NewEntry::size).sum()) > most {
        return Ok(Appended::Full(held));
    }
    let mut lanes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for entry in entries {
        let (events, bytes) = lanes.entry(entry.partition).or_default();
        *events += 1;
        *bytes += entry.size();
    }
    let mut next = BTreeMap::new();
    for (partition, (events, bytes)) in lanes {
        let row = sqlx::query(LANE)
            .bind(source.to_owned())
            .bind(partition)
            .bind(signed(events)?)
            .bind(signed(bytes)?)
            .fetch_one(tx.conn())
            .await
            .map_err(failed)?;
        let mut read = Reader::new(&row);
        let (lane, end) = (read.count()?, read.count()?);
        next.insert(partition, (lane, end - events));
    }
    let (mut rows, mut offsets) = (Rows::of(&APPEND), Vec::with_capacity(entries.len()));
    for entry in entries {
        if let Some((lane, offset)) = next.get_mut(&entry.partition) {
            rows.count(*lane).count(*offset).int(at).bytes(&entry.bytes);
            offsets.push(*offset);
            *offset += 1;
        }
    }
    tx.execute(&APPEND, rows, failed_insert("log")).await?;
    tx.reach(Point::MidWrite)?;
    Ok(Appended::Durable(offsets))
}

async fn prune(tx: &mut Tx<'_>, source: &str, before: i64, most: u64) -> Result<u64> {
    let lanes = sqlx::query(PASSED).bind(source.to_owned()).fetch_all(tx.conn()).await.map_err(failed)?;
    let held = size(tx, source).await?.bytes;
    // Above the limit age does not matter.
    let before = if held > most { i64::MAX } else { before };
    let mut pruned = 0;
    for row in &lanes {
        let mut read = Reader::new(row);
        let (lane, passed) = (read.count()?, read.whole()?);
        let gone: Vec<i64> = sqlx::query_scalar(PRUNE)
            .bind(signed(lane)?)
            .bind(i64::try_from(passed).unwrap_or(i64::MAX))
            .bind(before)
            .bind(PRUNE_ROWS)
            .fetch_all(tx.conn())
            .await
            .map_err(failed)?;
        if gone.is_empty() {
            continue;
        }
        let events = gone.len() as u64;
        let bytes = gone.iter().map(|n| n.unsigned_abs() + OVERHEAD).sum();
        sqlx::query("UPDATE log_lanes SET events = events - ?2, bytes = bytes - ?3 WHERE id = ?1")
            .bind(signed(lane)?)
            .bind(signed(events)?)
            .bind(signed(bytes)?)
            .execute(tx.conn())
            .await
            .map_err(failed)?;
        pruned += events;
    }
    Ok(pruned)
}
