//! Retention, in small steps (R8). What is old is looked for in snapshots, and looked at again in the short transaction that
//! removes it.
//!
//! Neither history nor inbox has an index by time, which every batch would pay for: history lies in the order in which it
//! was written, and the inbox is read through in the order of its key.

use std::collections::BTreeMap;

use seqgate_decide::ids::EntityId;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::batch::{Rows, Template};
use super::codec::Reader;
use super::commit::signed;
use super::failures::failed;
use super::transaction::{Tx, end};
use crate::store::Result;
use crate::store::retention::{Base, Horizons, Place, Step};

/// The most rows that one transaction removes.
const REMOVED: usize = 500;
/// The most rows of inbox or intents that one step looks at.
const SEEN: u32 = 2_000;

pub(super) const OLDEST: &str = "SELECT h.rowid, h.machine, h.key, h.revision, h.decided_at, b.revision, c.through \
     FROM history AS h LEFT JOIN bases AS b ON b.machine = h.machine AND b.key = h.key AND b.promoted = 1 \
     LEFT JOIN bases AS c ON c.machine = h.machine AND c.key = h.key AND c.promoted = 0 \
     WHERE h.rowid > ?1 ORDER BY h.rowid LIMIT ?2";

pub(super) const INBOX: &str = "SELECT id, source, machine, key, received, verdict = 'deferred' FROM inbox \
     WHERE (id, source, machine) > (?1, ?2, ?3) ORDER BY id, source, machine LIMIT ?4";

pub(super) const INTENTS: &str = "SELECT intent, machine, key, taken FROM intents \
     WHERE (intent, machine) > (?1, ?2) ORDER BY intent, machine LIMIT ?3";

/// The verdict tells who waits.
pub(super) static INBOX_GONE: Template = Template::new(
    4,
    &["DELETE FROM inbox WHERE verdict <> 'deferred' AND (id, source, machine) IN \
       (SELECT k.column1, k.column2, k.column3 FROM "],
    " AS k WHERE k.column1 IS NOT NULL AND NOT EXISTS (SELECT 1 FROM conflicts AS c INDEXED BY conflicts_by_event \
     WHERE c.event_id = k.column1 AND c.source = k.column2 AND c.machine = k.column3 AND c.actor IS NULL) \
     AND NOT EXISTS (SELECT 1 FROM dead_letters AS l INDEXED BY dead_letters_open WHERE l.machine = k.column3 \
     AND l.key = k.column4 AND l.status = 'open' AND l.event_id = k.column1 AND l.source = k.column2))",
);

static INTENTS_GONE: Template = Template::new(
    2,
    &["DELETE FROM intents WHERE (intent, machine) IN (SELECT k.column1, k.column2 FROM "],
    " AS k WHERE k.column1 IS NOT NULL)",
);

static STATES: Template = Template::new(
    2,
    &["SELECT e.machine, e.key, e.state FROM "],
    " AS k CROSS JOIN entities AS e ON e.machine = k.column1 AND e.key = k.column2",
);

/// The entity as it is, with its pending timers. `?3`: promoted; `?4`: when its last revision was decided; `?5`: now.
const RECORD: &str = "INSERT OR REPLACE INTO bases (machine, key, promoted, revision, version, state, entered, schema, \
     data, timers, through, recorded) SELECT e.machine, e.key, ?3, e.revision, e.version, e.state, e.entered, e.schema, \
     e.data, (SELECT nullif(json_group_object(t.name, t.due), '{}') FROM timers AS t \
     WHERE t.machine = e.machine AND t.key = e.key AND t.outcome IS NULL), ?4, ?5 \
     FROM entities AS e WHERE e.machine = ?1 AND e.key = ?2";

impl SqliteStore {
    pub(super) async fn prune_step(&self, horizons: &Horizons, from: &Place, now: i64) -> Result<Step> {
        match from {
            Place::History(row) => self.prune_history(horizons, *row, now).await,
            Place::Inbox(id, source, machine) => self.prune_inbox(horizons, [id, source, machine]).await,
            Place::Intents(intent, machine) => self.prune_intents(horizons, [intent, machine]).await,
        }
    }

    pub(super) async fn read_base(&self, id: &EntityId) -> Result<Option<Base>> {
        let row = sqlx::query(
            "SELECT revision, version, state, entered, schema, data, timers, through FROM bases \
             WHERE machine = ?1 AND key = ?2 AND promoted = 1",
        );
        let row = row.bind(id.machine.clone()).bind(id.key.to_vec());
        let Some(row) = row.fetch_optional(&self.readers).await.map_err(failed)? else { return Ok(None) };
        let mut read = Reader::new(&row);
        Ok(Some(Base {
            revision: read.count()?,
            version: read.whole()?,
            state: read.name_opt()?,
            entered: read.int()?,
            schema: read.small()?,
            data: read.bytes()?.to_vec(),
            timers: read.json::<BTreeMap<String, i64>>()?.into_iter().map(|(name, due)| (name.into(), due)).collect(),
            through: read.int()?,
        }))
    }

    async fn prune_history(&self, horizons: &Horizons, from: i64, now: i64) -> Result<Step> {
        let rows = sqlx::query(OLDEST).bind(from).bind(REMOVED as i64);
        let rows = rows.fetch_all(&self.readers).await.map_err(failed)?;
        // Behind a row that is young for every machine, there are none but younger ones.
        let youngest = horizons.values().map(|h| h.history).max().unwrap_or(i64::MIN);
        let mut found: BTreeMap<EntityId, Old> = BTreeMap::new();
        let mut next = (rows.len() == REMOVED).then_some(from);
        for row in &rows {
            let old = Found::read(row)?;
            if old.decided_at > youngest {
                next = None;
                break;
            }
            next = next.map(|_| old.row);
            if let Some(horizon) = horizons.get(&old.entity.machine)
                && old.is_work(horizon.history)
            {
                let span = found.entry(old.entity).or_insert(Old { from: old.revision, to: old.revision });
                (span.from, span.to) = (span.from.min(old.revision), span.to.max(old.revision));
            }
        }
        let mut step = Step { removed: 0, bases: 0, next: next.map(Place::History) };
        if found.is_empty() {
            return Ok(step);
        }
        let mut tx = self.begin().await?;
        let work = async {
            for (id, old) in &found {
                let cutoff = horizons[&id.machine].history;
                step.bases += u64::from(move_base(&mut tx, id, cutoff, now).await?);
                step.removed += remove_revisions(&mut tx, id, old).await?;
            }
            Ok(step)
        };
        let work = work.await;
        end(tx, work).await
    }

    async fn prune_inbox(&self, horizons: &Horizons, from: [&String; 3]) -> Result<Step> {
        let rows = sqlx::query(INBOX).bind(from[0].clone()).bind(from[1].clone()).bind(from[2].clone()).bind(SEEN);
        let rows = rows.fetch_all(&self.readers).await.map_err(failed)?;
        let (mut gone, mut taken, mut next) = (Rows::of(&INBOX_GONE), 0, None);
        for row in &rows {
            let mut read = Reader::new(row);
            let (id, source, machine, key) = (read.text()?, read.text()?, read.text()?, read.bytes()?);
            let (received, waits) = (read.int()?, read.flag()?);
            if !waits && horizons.get(&*machine).is_some_and(|h| received <= h.inbox) {
                if taken == REMOVED {
                    break;
                }
                gone.text(id.as_str()).text(source.as_str()).text(machine.as_str()).bytes(&key);
                taken += 1;
            }
            next = Some(Place::Inbox(id, source, machine));
        }
        next = next.filter(|_| rows.len() == SEEN as usize || taken == REMOVED);
        let mut step = Step { removed: 0, bases: 0, next };
        if taken > 0 {
            let mut tx = self.begin().await?;
            let work = tx.execute(&INBOX_GONE, gone, failed).await;
            step.removed = end(tx, work).await?;
        }
        Ok(step)
    }

    async fn prune_intents(&self, horizons: &Horizons, from: [&String; 2]) -> Result<Step> {
        let rows = sqlx::query(INTENTS).bind(from[0].clone()).bind(from[1].clone()).bind(SEEN);
        let rows = rows.fetch_all(&self.readers).await.map_err(failed)?;
        let (mut old, mut next) = (Vec::new(), None);
        for row in &rows {
            let mut read = Reader::new(row);
            let (intent, id, taken) = (read.text()?, read.entity()?, read.int()?);
            let place = Place::Intents(intent.clone(), id.machine.to_string());
            if horizons.get(&id.machine).is_some_and(|h| taken <= h.intents) {
                if old.len() == REMOVED {
                    break;
                }
                old.push((intent, id));
            }
            next = Some(place);
        }
        next = next.filter(|_| rows.len() == SEEN as usize || old.len() == REMOVED);
        let mut step = Step { removed: 0, bases: 0, next };
        if !old.is_empty() {
            let mut tx = self.begin().await?;
            let work = remove_intents(&mut tx, horizons, &old).await;
            step.removed = end(tx, work).await?;
        }
        Ok(step)
    }
}

/// A row of the history, with what is known of its entity's bases.
struct Found {
    row: i64,
    entity: EntityId,
    revision: u64,
    decided_at: i64,
    base: Option<u64>,
    checkpoint: Option<i64>,
}

/// Revisions of one entity that were found old.
struct Old {
    from: u64,
    to: u64,
}

impl Found {
    fn read(row: &SqliteRow) -> Result<Self> {
        let mut read = Reader::new(row);
        Ok(Self {
            row: read.int()?,
            entity: read.entity()?,
            revision: read.count()?,
            decided_at: read.int()?,
            base: read.count_opt()?,
            checkpoint: read.int_opt()?,
        })
    }

    /// Whether a transaction would change anything: it is behind the base, or the base can be moved.
    fn is_work(&self, cutoff: i64) -> bool {
        self.decided_at <= cutoff
            && (self.base.is_some_and(|base| self.revision <= base) || self.checkpoint.is_none_or(|at| at <= cutoff))
    }
}

/// Promotes a checkpoint whose revisions are all old, and records the entity as it is where there is none. Says whether the
/// base is another one now.
async fn move_base(tx: &mut Tx<'_>, id: &EntityId, cutoff: i64, now: i64) -> Result<bool> {
    let entity = |sql| sqlx::query(sql).bind(id.machine.clone()).bind(id.key.to_vec());
    let checkpoint = entity("SELECT through FROM bases WHERE machine = ?1 AND key = ?2 AND promoted = 0")
        .fetch_optional(tx.conn())
        .await
        .map_err(failed)?;
    let mut moved = false;
    match checkpoint.as_ref().map(|row| Reader::new(row).int()).transpose()? {
        Some(through) if through > cutoff => return Ok(false),
        Some(_) => {
            for sql in [
                "DELETE FROM bases WHERE machine = ?1 AND key = ?2 AND promoted = 1",
                "UPDATE bases SET promoted = 1 WHERE machine = ?1 AND key = ?2 AND promoted = 0",
            ] {
                entity(sql).execute(tx.conn()).await.map_err(failed)?;
            }
            moved = true;
        }
        None => {}
    }
    let last = entity(
        "SELECT max(h.decided_at), max(h.revision) > coalesce((SELECT b.revision FROM bases AS b \
         WHERE b.machine = ?1 AND b.key = ?2 AND b.promoted = 1), 0) FROM history AS h \
         WHERE h.machine = ?1 AND h.key = ?2 GROUP BY h.machine, h.key",
    );
    let Some(last) = last.fetch_optional(tx.conn()).await.map_err(failed)? else { return Ok(moved) };
    let mut read = Reader::new(&last);
    let (through, behind) = (read.int()?, read.flag()?);
    if behind {
        let promoted = through <= cutoff;
        entity(RECORD).bind(promoted).bind(through).bind(now).execute(tx.conn()).await.map_err(failed)?;
        moved |= promoted;
    }
    Ok(moved)
}

/// Removes what was found and lies behind the base. What was loaded before must not be decided on after: the guard rises.
async fn remove_revisions(tx: &mut Tx<'_>, id: &EntityId, old: &Old) -> Result<u64> {
    const SPAN: &str = "machine = ?1 AND key = ?2 AND revision BETWEEN ?3 AND min(?4, coalesce((SELECT b.revision \
         FROM bases AS b WHERE b.machine = ?1 AND b.key = ?2 AND b.promoted = 1), 0))";
    const RAISE: &str = "UPDATE entities SET row_version = row_version + 1, pruned_through = max(pruned_through, \
         coalesce((SELECT max(h.consumed) FROM history AS h WHERE {span}), pruned_through)) \
         WHERE machine = ?1 AND key = ?2 AND EXISTS (SELECT 1 FROM history AS h WHERE {span})";
    let raise = RAISE.replace(
        "{span}",
        &SPAN.replace("machine = ?1 AND key = ?2 AND revision", "h.machine = ?1 AND h.key = ?2 AND h.revision"),
    );
    let (from, to) = (signed(old.from)?, signed(old.to)?);
    let mut removed = 0;
    for sql in [raise, format!("DELETE FROM history WHERE {SPAN}")] {
        let statement = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id.machine.clone()).bind(id.key.to_vec());
        let done = statement.bind(from).bind(to).execute(tx.conn()).await.map_err(failed)?;
        removed = done.rows_affected();
        if removed == 0 {
            break;
        }
    }
    Ok(removed)
}

async fn remove_intents(tx: &mut Tx<'_>, horizons: &Horizons, old: &[(String, EntityId)]) -> Result<u64> {
    let mut keys = Rows::of(&STATES);
    for (_, id) in old {
        keys.entity(id);
    }
    let mut live = std::collections::BTreeSet::new();
    for row in tx.select(&STATES, keys).await? {
        let mut read = Reader::new(&row);
        let (id, state) = (read.entity()?, read.name_opt()?);
        if !state.is_some_and(|state| horizons[&id.machine].terminal.contains(&state)) {
            live.insert(id);
        }
    }
    let mut gone = Rows::of(&INTENTS_GONE);
    for (intent, id) in old.iter().filter(|(_, id)| !live.contains(id)) {
        gone.text(intent.as_str()).name(&id.machine);
    }
    tx.execute(&INTENTS_GONE, gone, failed).await
}
