//! Dead letters and conflicts.

use seqgate_decide::ids::{EventKey, Ref};
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::DeadKind;
use seqgate_decide::writes::{DeadRow, DeadStatus, RulesRef};
use sqlx::AssertSqlSafe;

use super::SqliteStore;
use super::codec::{EVENT, Reader, ordered};
use super::cursor;
use super::failures::failed;
use super::list_events::actor;
use crate::store::Result;
use crate::store::views::{ConflictDetail, ConflictItem, DeadDetail, DeadFilter, DeadItem, Listing, Page};

const DEAD: &str = "ref, kind, class, code, message, machine, key, source, event_id, type, event_version, pos_source, \
     pos_partition, pos_offset, blocks, status, attempts, since, changed";

const CONFLICT: &str = "ref, machine, key, source, event_id, type, event_version, code, message, copies, actor, \
     actor_reason, since, pos_source, pos_partition, pos_offset";

/// A page of dead letters. `?1`, `?2`: after this key; `?3`: limit; `?4`: machine; `?5`: status; `?6`: class.
pub(super) fn dead_sql(filter: &DeadFilter) -> String {
    let index = match (&filter.status, &filter.machine) {
        (Some(_), _) => "dead_letters_by_status",
        (None, Some(_)) => "dead_letters_by_machine",
        (None, None) => "dead_letters_by_age",
    };
    let mut sql = format!("SELECT {DEAD} FROM dead_letters INDEXED BY {index} WHERE (since, ref) > (?1, ?2)");
    let mut also = |set: bool, condition: &str| sql.push_str(if set { condition } else { "" });
    also(filter.machine.is_some(), " AND machine = ?4");
    also(filter.status.is_some(), " AND status = ?5");
    also(filter.class.is_some(), " AND class = ?6");
    sql + " ORDER BY since, ref LIMIT ?3"
}

/// A page of conflicts. `?1`, `?2`: after this key; `?3`: limit; `?4`: machine.
pub(super) fn conflicts_sql(machine: bool, open: bool) -> String {
    let (index, condition) =
        if open { ("conflicts_open_by_age", " AND actor IS NULL") } else { ("conflicts_by_age", "") };
    let machine = if machine { " AND machine = ?4" } else { "" };
    format!(
        "SELECT {CONFLICT} FROM conflicts INDEXED BY {index} WHERE (since, ref) > (?1, ?2){condition}{machine} \
         ORDER BY since, ref LIMIT ?3"
    )
}

impl SqliteStore {
    pub(super) async fn list_dead_letters(&self, filter: &DeadFilter, page: &Page) -> Result<Listing<DeadItem>> {
        let (since, id): (i64, i64) = cursor::start(page)?.unwrap_or((i64::MIN, i64::MIN));
        let rows = sqlx::query(AssertSqlSafe(dead_sql(filter)))
            .bind(since)
            .bind(id)
            .bind(cursor::limit(page))
            .bind(filter.machine.clone())
            .bind(filter.status.map(DeadStatus::name))
            .bind(filter.class.map(Verdict::name))
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| dead_item(&mut Reader::new(row)).map(|item| ((item.since, ordered(item.id.0)), item));
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn read_dead_letter(&self, id: Ref) -> Result<Option<DeadDetail>> {
        let row = sqlx::query(AssertSqlSafe(format!(
            "SELECT kind, class, code, message, machine, key, raw, pos_source, pos_partition, pos_offset, timer, \
             timer_due, blocks, status, attempts, since, changed, activation, rules, actor, actor_reason, \
             replaced_machine, replaced_source, replaced_id, {EVENT} FROM dead_letters WHERE ref = ?1"
        )))
        .bind(ordered(id.0))
        .fetch_optional(&self.readers)
        .await
        .map_err(failed)?;
        row.map(|row| dead_detail(&mut Reader::new(&row), id)).transpose()
    }

    pub(super) async fn list_conflicts(
        &self,
        machine: Option<&str>,
        open: bool,
        page: &Page,
    ) -> Result<Listing<ConflictItem>> {
        let (since, id): (i64, i64) = cursor::start(page)?.unwrap_or((i64::MIN, i64::MIN));
        let rows = sqlx::query(AssertSqlSafe(conflicts_sql(machine.is_some(), open)))
            .bind(since)
            .bind(id)
            .bind(cursor::limit(page))
            .bind(machine.map(str::to_owned))
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| conflict(&mut Reader::new(row)).map(|item| ((item.since, ordered(item.id.0)), item));
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn read_conflict(&self, id: Ref) -> Result<Option<ConflictDetail>> {
        let row = sqlx::query(AssertSqlSafe(format!("SELECT {CONFLICT}, {EVENT} FROM conflicts WHERE ref = ?1")))
            .bind(ordered(id.0))
            .fetch_optional(&self.readers)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let mut read = Reader::new(&row);
        let item = conflict(&mut read)?;
        let event = read.event(&item.entity)?;
        Ok(Some(ConflictDetail { item, event }))
    }
}

fn dead_item(read: &mut Reader<'_>) -> Result<DeadItem> {
    let (id, kind, class) = (Ref(read.whole()?), read.word(DeadKind::from_name)?, read.word(Verdict::from_name)?);
    let (code, message, entity) = (read.text()?, read.text()?, read.entity_opt()?);
    let event = read.name_opt()?.zip(read.name_opt()?);
    let machine = entity.as_ref().map(|e| e.machine.clone());
    Ok(DeadItem {
        id,
        kind,
        class,
        code,
        message,
        entity,
        event: machine.zip(event).map(|(machine, (source, id))| EventKey { machine, source, id }),
        event_kind: read.name_opt()?,
        version: read.whole_opt()?,
        position: read.position_opt()?,
        blocks: read.flag()?,
        status: read.word(DeadStatus::from_name)?,
        attempts: read.small()?,
        since: read.int()?,
        changed: read.int()?,
    })
}

fn dead_detail(read: &mut Reader<'_>, id: Ref) -> Result<DeadDetail> {
    let (kind, class) = (read.word(DeadKind::from_name)?, read.word(Verdict::from_name)?);
    let (code, message, entity) = (read.text()?, read.text()?, read.entity_opt()?);
    let (raw, position) = (read.bytes_opt()?, read.position_opt()?);
    let timer = read.name_opt()?.zip(read.int_opt()?);
    let (blocks, status) = (read.flag()?, read.word(DeadStatus::from_name)?);
    let (attempts, since, changed) = (read.small()?, read.int()?, read.int()?);
    let (activation, digest) = (read.count_opt()?, read.digest_opt()?);
    let rules = activation.zip(digest).map(|(activation, digest)| RulesRef { activation, digest });
    let by = actor(read)?;
    let (machine, source, name) = (read.name_opt()?, read.name_opt()?, read.name_opt()?);
    let replaced_by = machine.zip(source).zip(name).map(|((machine, source), id)| EventKey { machine, source, id });
    let event = read.event_opt(entity.as_ref())?;
    let row = DeadRow {
        kind,
        class,
        code,
        message,
        entity,
        event,
        raw,
        position,
        timer,
        blocks,
        status,
        attempts,
        since,
        rules,
        by,
        replaced_by,
    };
    Ok(DeadDetail { id, row, changed })
}

fn conflict(read: &mut Reader<'_>) -> Result<ConflictItem> {
    let (id, entity) = (Ref(read.whole()?), read.entity()?);
    let (source, event) = (read.name()?, read.name()?);
    Ok(ConflictItem {
        id,
        key: EventKey { machine: entity.machine.clone(), source, id: event },
        entity,
        kind: read.name()?,
        version: read.whole_opt()?,
        code: read.text()?,
        message: read.text()?,
        copies: read.count()?,
        dismissed: actor(read)?,
        since: read.int()?,
        position: read.position_opt()?,
    })
}
