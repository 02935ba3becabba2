//! Entities, what holds them, and what is missing before them.

use std::collections::BTreeMap;

use seqgate_decide::ids::{EntityId, Ref};
use sqlx::AssertSqlSafe;

use super::SqliteStore;
use super::batch::{Rows, Template};
use super::codec::{Reader, shared, unordered};
use super::cursor::{self, Address};
use super::failures::failed;
use super::load_entities;
use super::transaction::Snapshot;
use crate::store::Result;
use crate::store::views::{Blocked, BlockedBy, EntityDetail, EntityFilter, EntitySummary, Gap, Listing, Page};

/// Every entity that something holds; their addresses come from small indexes. `?1`, `?2`: after this address.
pub(super) const HELD: &str = "SELECT machine, key FROM dead_letters INDEXED BY dead_letters_open \
     WHERE status = 'open' AND blocks = 1 AND (machine, key) > (?1, ?2) \
     UNION SELECT machine, key FROM deferred INDEXED BY deferred_by_reason \
     WHERE reason = 'schema' AND (machine, key) > (?1, ?2) \
     UNION SELECT c.machine, c.key FROM conflicts AS c INDEXED BY conflicts_open CROSS JOIN entities AS e \
     ON e.machine = c.machine AND e.key = c.key WHERE c.actor IS NULL AND (c.machine, c.key) > (?1, ?2) \
     AND coalesce(c.previous, c.event_version - 1) = e.version AND NOT EXISTS (SELECT 1 FROM deferred AS d \
     WHERE d.machine = c.machine AND d.key = c.key AND d.event_version = c.event_version)";

const COLUMNS: &str = "e.machine, e.key, e.version, e.revision, e.state, e.entered, e.rules";

/// A row that only guards is no entity (R7). One whose first events wait, were refused or contradict others is.
const SHOWN: &str = "(e.revision > 0 \
     OR EXISTS (SELECT 1 FROM deferred AS d WHERE d.machine = e.machine AND d.key = e.key) \
     OR EXISTS (SELECT 1 FROM dead_letters AS l INDEXED BY dead_letters_open \
     WHERE l.machine = e.machine AND l.key = e.key AND l.status = 'open') \
     OR EXISTS (SELECT 1 FROM conflicts AS q INDEXED BY conflicts_open \
     WHERE q.machine = e.machine AND q.key = e.key AND q.actor IS NULL))";

/// How many wait, and the first that waits for other rules: SQLite takes bare columns from the row of the minimum.
static WAITING: Template = Template::new(
    2,
    &["SELECT d.machine, d.key, count(*), min(CASE WHEN d.reason = 'schema' THEN d.ref END), d.event_version FROM "],
    " AS k CROSS JOIN deferred AS d ON d.machine = k.column1 AND d.key = k.column2 GROUP BY d.machine, d.key",
);

static DEAD: Template = Template::new(
    2,
    &["SELECT l.machine, l.key, l.ref, l.blocks, l.event_version FROM "],
    " AS k CROSS JOIN dead_letters AS l INDEXED BY dead_letters_open \
     ON l.machine = k.column1 AND l.key = k.column2 AND l.status = 'open' ORDER BY l.since, l.ref",
);

static CONFLICTS: Template = Template::new(
    2,
    &["SELECT c.machine, c.key, c.ref, c.event_version FROM "],
    " AS k CROSS JOIN entities AS e ON e.machine = k.column1 AND e.key = k.column2 \
     CROSS JOIN conflicts AS c INDEXED BY conflicts_open \
     ON c.machine = k.column1 AND c.key = k.column2 AND c.actor IS NULL \
     WHERE coalesce(c.previous, c.event_version - 1) = e.version AND NOT EXISTS (SELECT 1 FROM deferred AS d \
     WHERE d.machine = c.machine AND d.key = c.key AND d.event_version = c.event_version) ORDER BY c.since, c.ref",
);

/// R3.5: versions that are neither consumed, nor waiting, nor dead letters. A waiting event's predecessor ends a gap when
/// nothing stands at it; the gap starts behind the last version before it at which something does. Numbers in the form of
/// codec's `ordered`, of which neighbours are neighbours too.
pub(super) const GAPS: &str = "SELECT d.machine, d.key, e.version, \
     max(e.version, \
     coalesce((SELECT max(w.event_version) FROM deferred AS w WHERE w.machine = d.machine AND w.key = d.key \
     AND w.event_version <= coalesce(d.previous, d.event_version - 1)), e.version), \
     coalesce((SELECT max(l.event_version) FROM dead_letters AS l INDEXED BY dead_letters_open \
     WHERE l.machine = d.machine AND l.key = d.key AND l.status = 'open' \
     AND l.event_version <= coalesce(d.previous, d.event_version - 1)), e.version)) + 1, \
     coalesce(d.previous, d.event_version - 1) AS pred, d.event_version, d.since \
     FROM deferred AS d INDEXED BY deferred_by_entity CROSS JOIN entities AS e ON e.machine = d.machine AND e.key = d.key \
     WHERE (d.machine, d.key, d.event_version) > (?1, ?2, ?3) AND d.machine >= ?5 AND d.machine <= ?6 \
     AND d.event_version IS NOT NULL AND d.reason IN ('gap', 'blocked') AND pred > e.version \
     AND NOT EXISTS (SELECT 1 FROM deferred AS w WHERE w.machine = d.machine AND w.key = d.key AND w.event_version = pred) \
     AND NOT EXISTS (SELECT 1 FROM dead_letters AS l INDEXED BY dead_letters_open WHERE l.machine = d.machine \
     AND l.key = d.key AND l.status = 'open' AND l.event_version = pred) \
     ORDER BY d.machine, d.key, d.event_version LIMIT ?4";

/// Above every machine's name.
const LAST: &str = "~";

/// A page of entities. `?1`, `?2`: after this address; `?3`: limit; `?4`: machine; `?5`: state.
pub(super) fn entities_sql(filter: &EntityFilter) -> String {
    let from = if filter.blocked {
        format!("({HELD}) AS h CROSS JOIN entities AS e ON e.machine = h.machine AND e.key = h.key")
    } else if filter.state.is_some() {
        "entities AS e INDEXED BY entities_by_state".to_owned()
    } else {
        "entities AS e".to_owned()
    };
    let mut sql = format!("SELECT {COLUMNS} FROM {from} WHERE {SHOWN}");
    if filter.machine.is_some() {
        sql.push_str(" AND e.machine = ?4 AND e.key > CASE WHEN ?1 < ?4 THEN x'' ELSE ?2 END AND ?1 <= ?4");
    } else {
        sql.push_str(" AND (e.machine, e.key) > (?1, ?2)");
    }
    if filter.state.is_some() {
        sql.push_str(" AND e.state = ?5");
    }
    sql + " ORDER BY e.machine, e.key LIMIT ?3"
}

impl SqliteStore {
    pub(super) async fn list_entities(&self, filter: &EntityFilter, page: &Page) -> Result<Listing<EntitySummary>> {
        let (machine, key): Address = cursor::start(page)?.unwrap_or_default();
        let mut snapshot = self.snapshot().await?;
        let rows = sqlx::query(AssertSqlSafe(entities_sql(filter)))
            .bind(machine)
            .bind(key)
            .bind(cursor::limit(page))
            .bind(filter.machine.clone())
            .bind(filter.state.clone())
            .fetch_all(snapshot.conn())
            .await
            .map_err(failed)?;
        let mut found = rows.iter().map(|row| summary(&mut Reader::new(row))).collect::<Result<Vec<_>>>()?;
        surround(&mut snapshot, &mut found).await?;
        snapshot.end().await?;
        Ok(cursor::listing(page, found.into_iter().map(|item| (cursor::address(&item.id), item)).collect()))
    }

    pub(super) async fn read_entity(&self, id: &EntityId) -> Result<Option<EntityDetail>> {
        let mut snapshot = self.snapshot().await?;
        let row = sqlx::query(AssertSqlSafe(format!(
            "SELECT {COLUMNS}, e.row_version, e.schema, e.data, e.seen, e.pruned_through, e.emitted, e.erased FROM entities AS e \
             WHERE e.machine = ?1 AND e.key = ?2 AND {SHOWN}"
        )))
        .bind(id.machine.clone())
        .bind(id.key.to_vec())
        .fetch_optional(snapshot.conn())
        .await
        .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let mut read = Reader::new(&row);
        let mut found = vec![summary(&mut read)?];
        surround(&mut snapshot, &mut found).await?;
        let mut keys = Rows::of(&load_entities::TIMERS);
        keys.entity(id);
        let mut timers = BTreeMap::new();
        for row in snapshot.select(&load_entities::TIMERS, keys).await? {
            let mut read = Reader::new(&row);
            read.entity()?;
            timers.insert(read.name()?, read.int()?);
        }
        snapshot.end().await?;
        Ok(Some(EntityDetail {
            summary: found.remove(0),
            row_version: read.count()?,
            schema: read.small()?,
            data: read.bytes()?.to_vec(),
            seen: read.json::<Vec<String>>()?.into_iter().map(Into::into).collect(),
            pruned_through: read.whole()?,
            emitted: shared(read.json()?),
            erased: read.flag()?,
            timers,
        }))
    }

    pub(super) async fn list_gaps(&self, machine: Option<&str>, page: &Page) -> Result<Listing<Gap>> {
        let from: Option<(String, Vec<u8>, i64)> = cursor::start(page)?;
        let (after, key, version) = from.unwrap_or_else(|| (String::new(), Vec::new(), i64::MIN));
        let rows = sqlx::query(GAPS)
            .bind(after)
            .bind(key)
            .bind(version)
            .bind(cursor::limit(page))
            .bind(machine.unwrap_or_default().to_owned())
            .bind(machine.unwrap_or(LAST).to_owned())
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            let (entity, version) = (read.entity()?, read.whole()?);
            let (from, to) = (read.whole()?, read.whole()?);
            let stored = read.int()?;
            let (machine, key) = cursor::address(&entity);
            Ok(((machine, key, stored), Gap { entity, version, from, to, since: read.int()? }))
        };
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }
}

fn summary(read: &mut Reader<'_>) -> Result<EntitySummary> {
    Ok(EntitySummary {
        id: read.entity()?,
        version: read.whole()?,
        revision: read.count()?,
        state: read.name_opt()?,
        entered: read.int()?,
        rules: read.digest_opt()?,
        blocked: None,
        deferred: 0,
        dead_letters: 0,
    })
}

/// Adds what stands around these entities.
async fn surround(snapshot: &mut Snapshot<'_>, items: &mut [EntitySummary]) -> Result<()> {
    let mut keys = Rows::of(&WAITING);
    for item in items.iter() {
        keys.entity(&item.id);
    }
    if keys.is_empty() {
        return Ok(());
    }
    let mut by_id: BTreeMap<EntityId, &mut EntitySummary> =
        items.iter_mut().map(|item| (item.id.clone(), item)).collect();
    let mut hold = |id: EntityId, apply: &mut dyn FnMut(&mut EntitySummary)| {
        if let Some(item) = by_id.get_mut(&id) {
            apply(item);
        }
    };
    for row in snapshot.select(&DEAD, keys.clone()).await? {
        let mut read = Reader::new(&row);
        let (entity, id, blocks, version) = (read.entity()?, Ref(read.whole()?), read.flag()?, read.whole_opt()?);
        hold(entity, &mut |item| {
            item.dead_letters += 1;
            if blocks && item.blocked.is_none() {
                item.blocked = Some(Blocked { by: BlockedBy::DeadLetter, id, version });
            }
        });
    }
    for row in snapshot.select(&WAITING, keys.clone()).await? {
        let mut read = Reader::new(&row);
        let (entity, count, first, version) = (read.entity()?, read.count()?, read.int_opt()?, read.whole_opt()?);
        hold(entity, &mut |item| {
            item.deferred = count;
            let schema = |id| Blocked { by: BlockedBy::Schema, id: Ref(unordered(id)), version };
            item.blocked = item.blocked.take().or(first.map(schema));
        });
    }
    for row in snapshot.select(&CONFLICTS, keys).await? {
        let mut read = Reader::new(&row);
        let (entity, id, version) = (read.entity()?, Ref(read.whole()?), read.whole_opt()?);
        hold(entity, &mut |item| {
            item.blocked.get_or_insert(Blocked { by: BlockedBy::Conflict, id, version });
        });
    }
    Ok(())
}
