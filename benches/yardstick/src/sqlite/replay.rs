//! Writing the same rows again, in other transactions.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rusqlite::types::Value;
use rusqlite::{CachedStatement, Connection, params_from_iter};

use super::PRAGMAS;
use super::tables::{Table, Tables};
use crate::lines::Delivery;
use crate::plan::{Batch, Kind};

/// Rows of one statement. More are no faster: binding them is what takes the time.
const TOGETHER: usize = 32;
/// What is there before the first event.
const BEFORE: [&str; 5] = ["_sqlx_migrations", "activations", "partitions", "rules", "sources"];
/// What the transactions below write.
const WRITTEN: [&str; 9] =
    ["conflicts", "dead_letters", "deferred", "entities", "history", "inbox", "intents", "outbox", "timers"];

/// A new database of the same schema, with what was there before the first event.
pub fn make(file: &Path, tables: &Tables) -> anyhow::Result<Connection> {
    let conn = Connection::open(file)?;
    conn.set_prepared_statement_cache_capacity(256);
    conn.execute_batch(PRAGMAS)?;
    conn.execute_batch(&tables.schema)?;
    for name in BEFORE {
        if let Some(table) = tables.all.get(name) {
            insert(&conn, table, table.rows.iter().map(Vec::as_slice), "")?;
        }
    }
    conn.execute_batch("UPDATE partitions SET received = 0, applied = 0, duplicate = 0, deferred = 0")?;
    Ok(conn)
}

/// Runs the transactions, and says how long they took. With `lines`, as a consumer that takes one event at a time: it parses
/// the line, and reads what it needs for its decision.
pub fn run(
    conn: &Connection,
    tables: &Tables,
    deliveries: &[Delivery],
    batches: &[Batch],
    lines: Option<&Vec<u8>>,
) -> anyhow::Result<Duration> {
    let writer = Writer::new(conn, tables, deliveries)?;
    let begun = Instant::now();
    for (n, batch) in batches.iter().enumerate() {
        conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        if let Some(lines) = lines {
            for n in &batch.deliveries {
                let delivery = &deliveries[*n];
                writer.consider(&lines[delivery.offset as usize..delivery.next as usize])?;
            }
        }
        writer.write(batch)?;
        if n + 1 == batches.len() {
            writer.rest()?;
        }
        conn.prepare_cached("COMMIT")?.execute([])?;
    }
    Ok(begun.elapsed())
}

/// Inserts rows by statements of many.
fn insert<'r>(
    conn: &Connection,
    table: &Table,
    rows: impl ExactSizeIterator<Item = &'r [Value]>,
    after: &str,
) -> anyhow::Result<()> {
    let width = table.columns.len();
    let text = |n: usize| {
        let row = format!("({})", vec!["?"; width].join(","));
        format!("INSERT INTO {} ({}) VALUES {} {after}", table.name, table.columns.join(","), vec![row; n].join(","))
    };
    let (mut many, mut one): (Option<CachedStatement<'_>>, Option<CachedStatement<'_>>) = (None, None);
    let rows: Vec<&[Value]> = rows.collect();
    let (full, rest) = rows.as_chunks::<TOGETHER>();
    for chunk in full {
        let statement = match &mut many {
            Some(statement) => statement,
            None => many.insert(conn.prepare_cached(&text(TOGETHER))?),
        };
        statement.execute(params_from_iter(chunk.iter().flat_map(|row| row.iter())))?;
    }
    for row in rest {
        let statement = match &mut one {
            Some(statement) => statement,
            None => one.insert(conn.prepare_cached(&text(1))?),
        };
        statement.execute(params_from_iter(row.iter()))?;
    }
    Ok(())
}

struct Writer<'a> {
    conn: &'a Connection,
    tables: &'a Tables,
    deliveries: &'a [Delivery],
    upsert: String,
    deferred: Deferred,
    history: &'a Table,
    inbox: &'a Table,
}

/// How an event that waited is put together again: its row is gone.
struct Deferred {
    columns: Vec<usize>,
    text: String,
}

impl<'a> Writer<'a> {
    fn new(conn: &'a Connection, tables: &'a Tables, deliveries: &'a [Delivery]) -> anyhow::Result<Self> {
        let (history, entities) = (tables.table("history")?, tables.table("entities")?);
        let all: Vec<String> = entities.columns.iter().skip(2).map(|c| format!("{c} = excluded.{c}")).collect();
        let upsert = format!("ON CONFLICT (machine, key) DO UPDATE SET {}", all.join(", "));
        let columns = [
            "machine",
            "key",
            "source",
            "event_id",
            "type",
            "event_version",
            "previous",
            "event_time",
            "idempotency_key",
            "depends_on",
            "logical_time",
            "content_type",
            "attributes",
            "payload",
            "digest",
            "value_digest",
        ];
        let marks = vec!["?"; columns.len() + 2].join(",");
        let text = format!(
            "INSERT INTO deferred (ref, pos_offset, {}, arrival, reason, since, ready, pos_source, pos_partition) \
             VALUES ({marks}, 1, 'gap', 1800000000000, 0, 'bench', 0)",
            columns.join(", ")
        );
        let deferred = Deferred { columns: columns.iter().map(|c| history.at(c)).collect::<Result<_, _>>()?, text };
        Ok(Self { conn, tables, deliveries, upsert, deferred, history, inbox: tables.table("inbox")? })
    }

    /// What a consumer reads before it decides: whether the event is known, its entity, and what waits for it.
    fn consider(&self, line: &[u8]) -> anyhow::Result<()> {
        let Ok(event) = serde_json::from_slice::<serde_json::Value>(line) else { return Ok(()) };
        let text = |name: &str| event.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let machine = text("machine");
        let key = text("subject").as_bytes();
        let read = |sql: &str, parameters: &[&dyn rusqlite::ToSql]| -> anyhow::Result<usize> {
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query(parameters)?;
            let (mut bytes, mut width) = (0, 0);
            while let Some(row) = rows.next()? {
                width = if width == 0 { row.as_ref().column_count() } else { width };
                bytes += (0..width)
                    .map(|n| row.get_ref(n).map_or(0, |v| v.as_bytes().map_or(8, <[u8]>::len)))
                    .sum::<usize>();
            }
            Ok(bytes)
        };
        let known = read(
            "SELECT digest, value_digest, verdict, first_offset FROM inbox WHERE id = ?1 AND source = ?2 AND machine = ?3",
            &[&text("id"), &text("source"), &machine],
        )?;
        if known == 0 {
            read("SELECT * FROM entities WHERE machine = ?1 AND key = ?2", &[&machine, &key])?;
            read("SELECT * FROM deferred WHERE machine = ?1 AND key = ?2", &[&machine, &key])?;
        }
        Ok(())
    }

    fn write(&self, batch: &Batch) -> anyhow::Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE partitions SET next_offset = ?1, received = received + ?2 WHERE source = 'bench' AND part = ?3",
            )?
            .execute((ordered(batch.next), batch.deliveries.len() as i64, batch.partition))?;
        let entities = self.tables.table("entities")?;
        insert(self.conn, entities, batch.entities.iter().map(|n| entities.rows[*n].as_slice()), &self.upsert)?;
        let changes = batch.changes.iter().map(|n| self.history.rows[*n].as_slice());
        insert(self.conn, self.history, changes, "")?;
        self.inbox(batch)?;
        self.waiting(batch)?;
        self.brought(batch)
    }

    fn inbox(&self, batch: &Batch) -> anyhow::Result<()> {
        let at = |column: &str| self.inbox.at(column);
        let (verdict, deliveries) = (at("verdict")?, at("deliveries")?);
        let (first, last) = (at("first_source")?, at("last_source")?);
        let reason = at("reason")?;
        let mut new: Vec<Vec<Value>> = Vec::new();
        for (event, row) in batch.inbox.iter().filter(|(_, row)| row.new) {
            let mut values = self.inbox.rows[*event].clone();
            values[deliveries] = Value::Integer(row.deliveries.into());
            if row.waits {
                values[verdict] = Value::Text("deferred".into());
                values[reason] = Value::Text("gap".into());
            }
            match row.last {
                Some(n) => values[last + 2] = Value::Integer(ordered(self.deliveries[n].offset)),
                None => values[last..last + 3].fill(Value::Null),
            }
            debug_assert!(values[first] != Value::Null);
            new.push(values);
        }
        insert(self.conn, self.inbox, new.iter().map(Vec::as_slice), "")?;
        let key = [at("id")?, at("source")?, at("machine")?];
        let mut again = self.conn.prepare_cached(
            "UPDATE inbox SET deliveries = deliveries + ?4, last_source = coalesce(?5, last_source), \
             last_partition = coalesce(?6, last_partition), last_offset = coalesce(?7, last_offset), \
             verdict = coalesce(?8, verdict), reason = CASE WHEN ?8 IS NULL THEN reason ELSE ?9 END \
             WHERE id = ?1 AND source = ?2 AND machine = ?3",
        )?;
        for (event, row) in batch.inbox.iter().filter(|(_, row)| !row.new) {
            let final_row = &self.inbox.rows[*event];
            let position = row.last.map(|n| ordered(self.deliveries[n].offset));
            let decided = row.decided.then(|| (&final_row[verdict], &final_row[reason]));
            again.execute((
                &final_row[key[0]],
                &final_row[key[1]],
                &final_row[key[2]],
                row.deliveries,
                position.map(|_| &final_row[last]),
                position.map(|_| &final_row[last + 1]),
                position,
                decided.map(|(verdict, _)| verdict),
                decided.map(|(_, reason)| reason),
            ))?;
        }
        Ok(())
    }

    fn waiting(&self, batch: &Batch) -> anyhow::Result<()> {
        let mut gone = self.conn.prepare_cached("DELETE FROM deferred WHERE ref = ?1")?;
        for change in &batch.waited {
            gone.execute([*change as i64])?;
        }
        let mut put = self.conn.prepare_cached(&self.deferred.text)?;
        for (change, delivery) in &batch.wait {
            let row = &self.history.rows[*change];
            let own = [Value::Integer(*change as i64), Value::Integer(ordered(self.deliveries[*delivery].offset))];
            put.execute(params_from_iter(own.iter().chain(self.deferred.columns.iter().map(|at| &row[*at]))))?;
        }
        Ok(())
    }

    fn brought(&self, batch: &Batch) -> anyhow::Result<()> {
        let kinds = [
            (Kind::Intent, "intents"),
            (Kind::Message, "outbox"),
            (Kind::DeadLetter, "dead_letters"),
            (Kind::Conflict, "conflicts"),
            (Kind::Waiting, "deferred"),
        ];
        for (kind, name) in kinds {
            let table = self.tables.table(name)?;
            let rows: Vec<&[Value]> =
                batch.brought.iter().filter(|(k, _)| *k == kind).map(|(_, n)| table.rows[*n].as_slice()).collect();
            insert(self.conn, table, rows.into_iter(), "")?;
        }
        self.timers(batch)
    }

    /// A timer that started and ended in the same transaction is written once.
    fn timers(&self, batch: &Batch) -> anyhow::Result<()> {
        let table = self.tables.table("timers")?;
        let closed: Vec<usize> =
            batch.brought.iter().filter(|(k, _)| *k == Kind::TimerClosed).map(|(_, n)| *n).collect();
        let started: Vec<usize> = batch.brought.iter().filter(|(k, _)| *k == Kind::Timer).map(|(_, n)| *n).collect();
        let outcome = table.at("outcome")?;
        let open: Vec<Vec<Value>> = started
            .iter()
            .map(|n| {
                let mut row = table.rows[*n].clone();
                if closed.binary_search(n).is_err() {
                    row[outcome..outcome + 3].fill(Value::Null);
                }
                row
            })
            .collect();
        insert(self.conn, table, open.iter().map(Vec::as_slice), "")?;
        let mut close = self.conn.prepare_cached(
            "UPDATE timers SET outcome = ?4, code = ?5, closed = ?6 WHERE machine = ?1 AND key = ?2 AND name = ?3",
        )?;
        for n in closed.iter().filter(|n| started.binary_search(n).is_err()) {
            let row = &table.rows[*n];
            close.execute(params_from_iter(row[..3].iter().chain(&row[outcome..outcome + 3])))?;
        }
        Ok(())
    }

    /// What no transaction above wrote: a few rows of bookkeeping, and the partitions' sums.
    fn rest(&self) -> anyhow::Result<()> {
        for table in self.tables.all.values() {
            let name = table.name.as_str();
            if !BEFORE.contains(&name) && !WRITTEN.contains(&name) {
                insert(self.conn, table, table.rows.iter().map(Vec::as_slice), "")?;
            }
        }
        let partitions = self.tables.table("partitions")?;
        self.conn.execute("DELETE FROM partitions", []).context("partitions")?;
        insert(self.conn, partitions, partitions.rows.iter().map(Vec::as_slice), "")
    }
}

/// The whole unsigned range, in order, in a signed column.
fn ordered(value: u64) -> i64 {
    (value ^ 1 << 63) as i64
}
