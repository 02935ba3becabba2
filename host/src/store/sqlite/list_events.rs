//! Events: by id, as history, waiting.

use seqgate_decide::ids::{Digest, EntityId, EventKey, Ref};
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::world::Waiting;
use seqgate_decide::writes::{Actor, Cause, DeadStatus, HistoryRow, RulesRef};
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::SqliteStore;
use super::codec::{EVENT, Reader, ordered};
use super::cursor;
use super::failures::failed;
use super::load_entities::{WAITING, waiting};
use crate::store::Result;
use crate::store::views::{DeferredFilter, EventItem, Listing, Page, Standing};

const INBOX: &str = "SELECT machine, source, id, key, type, version, digest, verdict, reason, first_source, \
     first_partition, first_offset, coalesce(last_source, first_source), coalesce(last_partition, first_partition), \
     coalesce(last_offset, first_offset), deliveries, received FROM inbox WHERE id = ?1 ORDER BY source, machine";

/// By version where the event has one, else among its entity's revisions.
pub(super) const BY_VERSION: &str = "SELECT revision, version, cause, rules FROM history INDEXED BY history_by_version \
     WHERE machine = ?1 AND key = ?2 AND consumed = ?3 AND source = ?4 AND event_id = ?5";
pub(super) const BY_ENTITY: &str = "SELECT revision, version, cause, rules FROM history INDEXED BY history_by_revision \
     WHERE machine = ?1 AND key = ?2 AND source = ?4 AND event_id = ?5 ORDER BY revision";

/// A page of waiting events. `?1`, `?2`: after this key; `?3`: limit; `?4`: machine; `?5`: key; `?6`: reason.
pub(super) fn deferred_sql(filter: &DeferredFilter) -> String {
    let mut sql = match (&filter.entity, &filter.reason) {
        (Some(_), _) => "SELECT ref AS r, coalesce(event_version, arrival) AS s FROM deferred INDEXED BY \
             deferred_by_entity WHERE machine = ?4 AND key = ?5"
            .to_owned(),
        (None, Some(_)) => "SELECT ref AS r, since AS s FROM deferred INDEXED BY deferred_by_reason WHERE 1".to_owned(),
        (None, None) => "SELECT ref AS r, since AS s FROM deferred INDEXED BY deferred_by_age WHERE 1".to_owned(),
    };
    if filter.entity.is_none() && filter.machine.is_some() {
        sql.push_str(" AND machine = ?4");
    }
    if filter.reason.is_some() {
        sql.push_str(" AND reason = ?6");
    }
    let after = if filter.entity.is_some() { "coalesce(event_version, arrival)" } else { "since" };
    format!(
        "SELECT {WAITING}, s FROM ({sql} AND ({after}, ref) > (?1, ?2) ORDER BY {after}, ref LIMIT ?3) \
         CROSS JOIN deferred AS d ON d.ref = r ORDER BY s, r"
    )
}

impl SqliteStore {
    pub(super) async fn list_history(&self, id: &EntityId, page: &Page) -> Result<Listing<HistoryRow>> {
        let after: i64 = cursor::start(page)?.unwrap_or_default();
        let rows = sqlx::query(AssertSqlSafe(format!(
            "SELECT revision, version, consumed, cause, timer, time, decided_at, previous_state, next_state, \
             data_digest, effects_digest, schema, activation, rules, code, notes, actor, actor_reason, {EVENT} \
             FROM history WHERE machine = ?1 AND key = ?2 AND revision > ?3 ORDER BY revision LIMIT ?4"
        )))
        .bind(id.machine.clone())
        .bind(id.key.to_vec())
        .bind(after)
        .bind(cursor::limit(page))
        .fetch_all(&self.readers)
        .await
        .map_err(failed)?;
        let one = |row| history(&mut Reader::new(row), id).map(|item| (item.revision, item));
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn read_events(&self, id: &str) -> Result<Vec<EventItem>> {
        let mut snapshot = self.snapshot().await?;
        let rows = sqlx::query(INBOX).bind(id.to_owned()).fetch_all(snapshot.conn()).await.map_err(failed)?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut item = inbox(&mut Reader::new(row))?;
            item.standing = standing(snapshot.conn(), &item).await?;
            found.push(item);
        }
        snapshot.end().await?;
        Ok(found)
    }

    pub(super) async fn list_deferred(&self, filter: &DeferredFilter, page: &Page) -> Result<Listing<Waiting>> {
        let (after, id): (i64, i64) = cursor::start(page)?.unwrap_or((i64::MIN, i64::MIN));
        let machine = filter.entity.as_ref().map(|e| e.machine.clone()).or_else(|| filter.machine.clone());
        let rows = sqlx::query(AssertSqlSafe(deferred_sql(filter)))
            .bind(after)
            .bind(id)
            .bind(cursor::limit(page))
            .bind(machine)
            .bind(filter.entity.as_ref().map(|e| e.key.to_vec()))
            .bind(filter.reason.map(DeferReason::name))
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            let item = waiting(&mut read)?;
            Ok(((read.int()?, ordered(item.id().0)), item))
        };
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn read_deferred(&self, id: Ref) -> Result<Option<Waiting>> {
        let row = sqlx::query(AssertSqlSafe(format!("SELECT {WAITING} FROM deferred AS d WHERE d.ref = ?1")))
            .bind(ordered(id.0))
            .fetch_optional(&self.readers)
            .await
            .map_err(failed)?;
        row.map(|row| waiting(&mut Reader::new(&row))).transpose()
    }
}

fn history(read: &mut Reader<'_>, id: &EntityId) -> Result<HistoryRow> {
    Ok(HistoryRow {
        entity: id.clone(),
        revision: read.count()?,
        version: read.whole()?,
        consumed: read.whole_opt()?,
        cause: read.word(Cause::from_name)?,
        timer: read.name_opt()?,
        time: read.int()?,
        decided_at: read.int()?,
        previous_state: read.name_opt()?,
        next_state: read.name_opt()?,
        data_digest: read.digest()?,
        effects_digest: read.digest()?,
        schema: read.small()?,
        rules: RulesRef { activation: read.count()?, digest: read.digest()? },
        code: read.text_opt()?,
        notes: read.json()?,
        by: actor(read)?,
        event: read.event_opt(Some(id))?,
    })
}

/// Two columns: name, reason.
pub(super) fn actor(read: &mut Reader<'_>) -> Result<Option<Actor>> {
    let (name, reason) = (read.text_opt()?, read.text_opt()?);
    Ok(name.map(|name| Actor { name, reason: reason.unwrap_or_default() }))
}

fn inbox(read: &mut Reader<'_>) -> Result<EventItem> {
    let key = EventKey { machine: read.name()?, source: read.name()?, id: read.name()? };
    Ok(EventItem {
        entity: EntityId { machine: key.machine.clone(), key: read.bytes()? },
        key,
        kind: read.name()?,
        version: read.whole_opt()?,
        digest: read.digest()?,
        verdict: read.word(Verdict::from_name)?,
        reason: read.text_opt()?,
        first: read.position_opt()?,
        last: read.position_opt()?,
        deliveries: read.count()?,
        received: read.int()?,
        standing: Vec::new(),
    })
}

async fn standing(conn: &mut SqliteConnection, item: &EventItem) -> Result<Vec<Standing>> {
    let mut found = Vec::new();
    let history = sqlx::query(if item.version.is_some() { BY_VERSION } else { BY_ENTITY })
        .bind(item.entity.machine.clone())
        .bind(item.entity.key.to_vec())
        .bind(item.version.map(ordered))
        .bind(item.key.source.clone())
        .bind(item.key.id.clone());
    for row in history.fetch_all(&mut *conn).await.map_err(failed)? {
        let mut read = Reader::new(&row);
        let (revision, version) = (read.count()?, read.whole()?);
        let (cause, rules): (Cause, Digest) = (read.word(Cause::from_name)?, read.digest()?);
        found.push(Standing::History { revision, version, cause, rules });
    }
    let id = Ref::of_event(&item.key);
    let waits = sqlx::query("SELECT reason, since FROM deferred WHERE ref = ?1").bind(ordered(id.0));
    if let Some(row) = waits.fetch_optional(&mut *conn).await.map_err(failed)? {
        let mut read = Reader::new(&row);
        found.push(Standing::Waiting { id, reason: read.word(DeferReason::from_name)?, since: read.int()? });
    }
    let dead = sqlx::query("SELECT status, code FROM dead_letters WHERE ref = ?1").bind(ordered(id.0));
    if let Some(row) = dead.fetch_optional(&mut *conn).await.map_err(failed)? {
        let mut read = Reader::new(&row);
        found.push(Standing::DeadLetter { id, status: read.word(DeadStatus::from_name)?, code: read.text()? });
    }
    let conflicts = sqlx::query(
        "SELECT ref, code FROM conflicts WHERE event_id = ?1 AND source = ?2 AND machine = ?3 ORDER BY since, ref",
    )
    .bind(item.key.id.clone())
    .bind(item.key.source.clone())
    .bind(item.key.machine.clone());
    for row in conflicts.fetch_all(&mut *conn).await.map_err(failed)? {
        let mut read = Reader::new(&row);
        found.push(Standing::Conflict { id: Ref(read.whole()?), code: read.text()? });
    }
    Ok(found)
}
