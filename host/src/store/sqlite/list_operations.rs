//! Outbox, timers, alarms, audit.

use seqgate_decide::ids::{EntityId, EventKey};
use seqgate_decide::writes::{Actor, AuditRow, OutboxRow};
use sqlx::AssertSqlSafe;

use super::SqliteStore;
use super::codec::Reader;
use super::cursor;
use super::failures::failed;
use crate::store::Result;
use crate::store::views::{AlarmItem, AuditItem, Listing, OutboxFilter, OutboxItem, OutboxStatus, Page, TimerItem};

/// A page of messages. `?1`: after this id; `?2`: limit; `?3`: machine; `?4`: status. Unsent ones have an index.
pub(super) fn outbox_sql(filter: &OutboxFilter) -> String {
    let mut sql = "SELECT id, status, attempts, error, changed, machine, key, revision, idx, topic, type, message_key, \
         content_type, attributes, data, entity_version, cause_machine, cause_source, cause_id, correlation_id, created \
         FROM outbox"
        .to_owned();
    sql.push_str(match filter.status {
        Some(OutboxStatus::Sent) => " WHERE id > ?1 AND status = ?4",
        Some(_) => " INDEXED BY outbox_unsent_by_status WHERE id > ?1 AND status = ?4 AND status <> 'SENT'",
        None => " WHERE id > ?1",
    });
    if filter.machine.is_some() {
        sql.push_str(" AND machine = ?3");
    }
    sql + " ORDER BY id LIMIT ?2"
}

pub(super) const TIMERS: &str = "SELECT machine, key, name, due, revision FROM timers INDEXED BY timers_due \
     WHERE outcome IS NULL AND (due, machine, key, name) > (?1, ?2, ?3, ?4) AND (?5 IS NULL OR machine = ?5) \
     ORDER BY due, machine, key, name LIMIT ?6";

pub(super) const ALARMS: &str = "SELECT kind, subject, message, since, cleared FROM alarms INDEXED BY alarms_by_age \
     WHERE (since, kind, subject) > (?1, ?2, ?3) ORDER BY since, kind, subject LIMIT ?4";

pub(super) const STANDING: &str = "SELECT kind, subject, message, since, cleared FROM alarms \
     INDEXED BY alarms_standing WHERE cleared IS NULL AND (since, kind, subject) > (?1, ?2, ?3) \
     ORDER BY since, kind, subject LIMIT ?4";

impl SqliteStore {
    pub(super) async fn list_outbox(&self, filter: &OutboxFilter, page: &Page) -> Result<Listing<OutboxItem>> {
        let after: i64 = cursor::start(page)?.unwrap_or_default();
        let rows = sqlx::query(AssertSqlSafe(outbox_sql(filter)))
            .bind(after)
            .bind(cursor::limit(page))
            .bind(filter.machine.clone())
            .bind(filter.status.map(OutboxStatus::name))
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| outbox(&mut Reader::new(row)).map(|item| (item.id, item));
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn list_timers(&self, machine: Option<&str>, page: &Page) -> Result<Listing<TimerItem>> {
        let from: Option<(i64, String, Vec<u8>, String)> = cursor::start(page)?;
        let (due, after, key, name) = from.unwrap_or((i64::MIN, String::new(), Vec::new(), String::new()));
        let rows = sqlx::query(TIMERS)
            .bind(due)
            .bind(after)
            .bind(key)
            .bind(name)
            .bind(machine.map(str::to_owned))
            .bind(cursor::limit(page))
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            let (entity, name, due) = (read.entity()?, read.name()?, read.int()?);
            let (machine, key) = cursor::address(&entity);
            let place = (due, machine, key, name.to_string());
            Ok((place, TimerItem { entity, name, due, revision: read.count()? }))
        };
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn list_alarms(&self, standing: bool, page: &Page) -> Result<Listing<AlarmItem>> {
        let from: Option<(i64, String, String)> = cursor::start(page)?;
        let (since, kind, subject) = from.unwrap_or((i64::MIN, String::new(), String::new()));
        let rows = sqlx::query(if standing { STANDING } else { ALARMS })
            .bind(since)
            .bind(kind)
            .bind(subject)
            .bind(cursor::limit(page))
            .fetch_all(&self.readers)
            .await
            .map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            let (kind, subject, message) = (read.text()?, read.text()?, read.text()?);
            let item = AlarmItem { kind, subject, message, since: read.int()?, cleared: read.int_opt()? };
            Ok(((item.since, item.kind.clone(), item.subject.clone()), item))
        };
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn list_audit(&self, page: &Page) -> Result<Listing<AuditItem>> {
        let before: i64 = cursor::start(page)?.unwrap_or(i64::MAX);
        let rows = sqlx::query(
            "SELECT id, at, actor, reason, action, subject, outcome FROM audit WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
        )
        .bind(before)
        .bind(cursor::limit(page))
        .fetch_all(&self.readers)
        .await
        .map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            let (id, at) = (read.count()?, read.int()?);
            let by = Actor { name: read.text()?, reason: read.text()? };
            let row = AuditRow { at, by, action: read.text()?, subject: read.text()?, outcome: read.text()? };
            Ok((id, AuditItem { id, row }))
        };
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }
}

fn outbox(read: &mut Reader<'_>) -> Result<OutboxItem> {
    let (id, status) = (read.count()?, read.word(OutboxStatus::from_name)?);
    let (attempts, error, changed) = (read.count()?, read.text_opt()?, read.int()?);
    let entity: EntityId = read.entity()?;
    let (revision, index) = (read.count()?, read.small()?);
    let (topic, kind) = (read.text()?, read.text()?);
    let key = read.bytes_opt()?.map(|key| key.to_vec());
    let (content_type, attributes, data) = (read.text()?, read.json()?, read.bytes()?.to_vec());
    let entity_version = read.count_opt()?;
    let (machine, source, cause) = (read.name_opt()?, read.name_opt()?, read.name_opt()?);
    let cause = machine.zip(source).zip(cause).map(|((machine, source), id)| EventKey { machine, source, id });
    let row = OutboxRow {
        entity,
        revision,
        index,
        topic,
        kind,
        key,
        content_type,
        attributes,
        data,
        entity_version,
        cause,
        correlation_id: read.text_opt()?,
        created: read.int()?,
    };
    Ok(OutboxItem { id, row, status, attempts, error, changed })
}
