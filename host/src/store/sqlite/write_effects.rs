//! What a transition brings about: messages, timers, alarms, audit rows.

use seqgate_decide::writes::{AlarmWrite, OutboxRow, TimerWrite, Writes};

use super::batch::{Rows, Template};
use super::failures::{failed, failed_insert};
use super::transaction::Tx;
use crate::store::Result;

static OUTBOX: Template = Template::new(
    18,
    &["INSERT INTO outbox (machine, key, revision, idx, topic, type, message_key, content_type, attributes, data, \
       entity_version, cause_source, cause_id, cause_machine, correlation_id, created, status, attempts, changed) \
       SELECT column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, \
       column12, column13, column14, column15, column16, column17, 0, column18 FROM "],
    " WHERE column1 IS NOT NULL",
);

static TIMERS: Template = Template::new(
    5,
    &["INSERT INTO timers (machine, key, name, due, revision) SELECT * FROM "],
    " WHERE column1 IS NOT NULL ON CONFLICT (machine, key, name) DO UPDATE SET due = excluded.due, \
     revision = excluded.revision, outcome = NULL, code = NULL, closed = NULL",
);

/// The `+` keeps SQLite from reading the partial index of pending timers from end to end.
pub(super) static TIMERS_CLOSED: Template = Template::new(
    6,
    &["UPDATE timers SET outcome = k.column4, code = k.column5, closed = k.column6 FROM "],
    " AS k WHERE timers.machine = k.column1 AND timers.key = k.column2 AND timers.name = k.column3 \
     AND +timers.outcome IS NULL",
);

static RAISED: Template = Template::new(
    4,
    &["INSERT INTO alarms (kind, subject, message, since) SELECT * FROM "],
    " WHERE column1 IS NOT NULL ON CONFLICT (kind, subject) DO UPDATE SET message = excluded.message, \
     since = excluded.since, cleared = NULL WHERE cleared IS NOT NULL",
);

pub(super) static CLEARED: Template = Template::new(
    3,
    &["UPDATE alarms SET cleared = k.column3 FROM "],
    " AS k WHERE alarms.kind = k.column1 AND alarms.subject = k.column2 AND +alarms.cleared IS NULL",
);

static AUDIT: Template = Template::new(
    6,
    &["INSERT INTO audit (at, actor, reason, action, subject, outcome) SELECT * FROM "],
    " WHERE column1 IS NOT NULL",
);

pub(super) async fn write(tx: &mut Tx<'_>, writes: &Writes) -> Result<()> {
    let mut rows = Rows::of(&OUTBOX);
    for row in &writes.outbox {
        push_message(&mut rows, row);
    }
    tx.execute(&OUTBOX, rows, failed_insert("outbox")).await?;
    let (mut put, mut closed) = (Rows::of(&TIMERS), Rows::of(&TIMERS_CLOSED));
    for ((entity, name), write) in &writes.timers {
        match write {
            TimerWrite::Put { due, revision } => put.entity(entity).name(name).int(*due).count(*revision),
            TimerWrite::Close { outcome, code, at } => {
                closed.entity(entity).name(name).text(*outcome).text_opt(code.as_deref()).int(*at)
            }
        };
    }
    tx.execute(&TIMERS, put, failed).await?;
    tx.execute(&TIMERS_CLOSED, closed, failed).await?;
    write_alarms(tx, writes).await?;
    let mut rows = Rows::of(&AUDIT);
    for row in &writes.audit {
        rows.int(row.at).text(row.by.name.as_str()).text(row.by.reason.as_str());
        rows.text(row.action.as_str()).text(row.subject.as_str()).text(row.outcome.as_str());
    }
    tx.execute(&AUDIT, rows, failed_insert("audit")).await.map(drop)
}

fn push_message(rows: &mut Rows, row: &OutboxRow) {
    rows.entity(&row.entity)
        .count(row.revision)
        .int(row.index.into())
        .text(row.topic.as_str())
        .text(row.kind.as_str())
        .bytes_opt(row.key.as_deref())
        .text(row.content_type.as_str())
        .json(&row.attributes, row.attributes.is_empty())
        .bytes(&row.data)
        .count_opt(row.entity_version)
        .name_opt(row.cause.as_ref().map(|key| &key.source))
        .name_opt(row.cause.as_ref().map(|key| &key.id))
        .name_opt(row.cause.as_ref().map(|key| &key.machine))
        .text_opt(row.correlation_id.as_deref())
        .int(row.created)
        .text("PENDING")
        .int(row.created);
}

async fn write_alarms(tx: &mut Tx<'_>, writes: &Writes) -> Result<()> {
    let (mut raised, mut cleared) = (Rows::of(&RAISED), Rows::of(&CLEARED));
    for ((kind, subject), write) in &writes.alarms {
        match write {
            AlarmWrite::Raise { message, at } => {
                raised.text(kind.name()).text(subject.as_str()).text(message.as_str()).int(*at)
            }
            AlarmWrite::Clear { at } => cleared.text(kind.name()).text(subject.as_str()).int(*at),
        };
    }
    tx.execute(&RAISED, raised, failed).await?;
    tx.execute(&CLEARED, cleared, failed).await.map(drop)
}
