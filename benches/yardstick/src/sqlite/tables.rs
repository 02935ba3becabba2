//! All rows of a database, in memory, and what they say.

use std::collections::{BTreeMap, HashMap};

use anyhow::Context as _;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::lines::EventKey;
use crate::plan::{Change, Event, Facts, Kind};

/// A table.
pub struct Table {
    pub name: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// Where a column is.
    pub fn at(&self, column: &str) -> anyhow::Result<usize> {
        let at = self.columns.iter().position(|c| c == column);
        at.with_context(|| format!("table {} has no column {column}", self.name))
    }
}

/// A database.
pub struct Tables {
    /// Its schema.
    pub schema: String,
    /// The tables, by name.
    pub all: BTreeMap<String, Table>,
}

/// The names of a database's tables.
pub fn names(conn: &Connection) -> anyhow::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = conn.prepare(sql)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The names of a table's columns.
pub fn columns(conn: &Connection, table: &str) -> anyhow::Result<Vec<String>> {
    let statement = conn.prepare(&format!("SELECT * FROM \"{table}\" LIMIT 0"))?;
    Ok(statement.column_names().into_iter().map(str::to_owned).collect())
}

impl Tables {
    /// Reads all of it.
    pub fn read(conn: &Connection) -> anyhow::Result<Self> {
        let mut all = BTreeMap::new();
        for name in names(conn)? {
            let columns = columns(conn, &name)?;
            // Changes in the order of their entities' lives; the rest in the order of keys.
            let order = if name == "history" { " ORDER BY machine, key, revision" } else { "" };
            let mut statement = conn.prepare(&format!("SELECT * FROM \"{name}\"{order}"))?;
            let width = columns.len();
            let rows = statement.query_map([], |row| (0..width).map(|n| row.get(n)).collect())?;
            let rows = rows.collect::<Result<_, _>>()?;
            all.insert(name.clone(), Table { name, columns, rows });
        }
        let sql =
            "SELECT group_concat(sql, '; ') FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'";
        Ok(Self { schema: conn.query_row(sql, [], |row| row.get(0))?, all })
    }

    /// A table by its name.
    pub fn table(&self, name: &str) -> anyhow::Result<&Table> {
        self.all.get(name).with_context(|| format!("the database has no table {name}"))
    }

    /// What the rows say.
    pub fn facts(&self) -> anyhow::Result<Facts> {
        let mut facts = Facts::default();
        let (entities, history) = (self.table("entities")?, self.table("history")?);
        let entity = Key::of(entities, ["machine", "key"])?;
        let by_entity: HashMap<_, usize> =
            entities.rows.iter().enumerate().map(|(n, r)| (entity.of_row(r), n)).collect();
        let of_change = Key::of(history, ["machine", "key"])?;
        let (revision, intent) = (history.at("revision")?, history.at("idempotency_key")?);
        let event = Key::of(history, ["event_id", "source", "machine"])?;
        let mut by_event = HashMap::new();
        let mut by_revision = HashMap::new();
        let mut by_intent = HashMap::new();
        for (n, row) in history.rows.iter().enumerate() {
            let owner = by_entity.get(&of_change.of_row(row)).copied().context("a history row has no entity")?;
            let brought = row[event.0[0]] != Value::Null;
            facts.changes.push(Change { entity: owner, by_event: brought, brought: Vec::new() });
            by_revision.insert((owner, whole(&row[revision])), n);
            by_event.insert(event.of_row(row), n);
            if row[intent] != Value::Null {
                by_intent.insert((text(&row[intent]), row[of_change.0[0]].clone().into_key()), n);
            }
        }
        self.events(&mut facts, &by_event)?;
        let table = self.table("intents")?;
        let key = (table.at("intent")?, table.at("machine")?);
        for (n, row) in table.rows.iter().enumerate() {
            if let Some(change) = by_intent.get(&(text(&row[key.0]), row[key.1].clone().into_key())) {
                facts.changes[*change].brought.push((Kind::Intent, n));
            }
        }
        for (name, kind) in [("outbox", Kind::Message), ("timers", Kind::Timer)] {
            let table = self.table(name)?;
            let (owner, revision) = (Key::of(table, ["machine", "key"])?, table.at("revision")?);
            for (n, row) in table.rows.iter().enumerate() {
                let owner = by_entity.get(&owner.of_row(row)).copied().context("a row has no entity")?;
                let Some(change) = by_revision.get(&(owner, whole(&row[revision]))) else { continue };
                facts.changes[*change].brought.push((kind, n));
                if kind == Kind::Timer && row[table.at("outcome")?] != Value::Null {
                    // It ended with the change behind the one that started it.
                    let next =
                        facts.changes.get(change + 1).filter(|c| c.entity == owner).map_or(*change, |_| change + 1);
                    facts.changes[next].brought.push((Kind::TimerClosed, n));
                }
            }
        }
        self.positions(&mut facts)?;
        Ok(facts)
    }

    fn events(&self, facts: &mut Facts, by_event: &HashMap<Vec<Vec<u8>>, usize>) -> anyhow::Result<()> {
        let inbox = self.table("inbox")?;
        let key = Key::of(inbox, ["id", "source", "machine"])?;
        for row in &inbox.rows {
            let change = by_event.get(&key.of_row(row)).copied();
            let [id, source, machine] = key.0.as_slice() else { unreachable!("three columns") };
            let key = EventKey { id: text(&row[*id]), source: text(&row[*source]), machine: text(&row[*machine]) };
            facts.events.push(Event { key, change });
        }
        Ok(())
    }

    fn positions(&self, facts: &mut Facts) -> anyhow::Result<()> {
        let tables = [("dead_letters", Kind::DeadLetter), ("conflicts", Kind::Conflict), ("deferred", Kind::Waiting)];
        for (name, kind) in tables {
            let table = self.table(name)?;
            let offset = table.at("pos_offset")?;
            for (n, row) in table.rows.iter().enumerate().filter(|(_, row)| row[offset] != Value::Null) {
                let offset = whole(&row[offset]) ^ 1 << 63;
                facts.at.entry(offset).or_default().push((kind, n));
            }
        }
        Ok(())
    }
}

/// Columns that name something.
struct Key(Vec<usize>);

impl Key {
    fn of<const N: usize>(table: &Table, columns: [&str; N]) -> anyhow::Result<Self> {
        Ok(Self(columns.into_iter().map(|c| table.at(c)).collect::<Result<_, _>>()?))
    }

    fn of_row(&self, row: &[Value]) -> Vec<Vec<u8>> {
        self.0.iter().map(|at| row[*at].clone().into_key()).collect()
    }
}

trait IntoKey {
    fn into_key(self) -> Vec<u8>;
}

impl IntoKey for Value {
    fn into_key(self) -> Vec<u8> {
        match self {
            Value::Text(text) => text.into_bytes(),
            Value::Blob(bytes) => bytes,
            Value::Integer(n) => n.to_be_bytes().to_vec(),
            Value::Real(_) | Value::Null => Vec::new(),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        _ => String::new(),
    }
}

fn whole(value: &Value) -> u64 {
    match value {
        Value::Integer(n) => *n as u64,
        _ => 0,
    }
}
