//! The embedded store's side: what the program wrote, and the baselines that write the same rows to the same schema, with the
//! same SQLite, the same pragmas and the same durability (WAL, `synchronous = FULL`).
//!
//! - `tables`: the rows, and what they say; `replay`: writing them again

mod replay;
mod tables;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use rusqlite::{Connection, OpenFlags};

use crate::lines::Delivery;
use crate::plan::{Facts, plan};
use crate::store::{Offsets, Replayed, Style, TableSize, Yardstick};

pub use tables::Tables;

/// What a store's connections are set to, here and there.
const PRAGMAS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = memory; \
     PRAGMA cache_size = -65536; PRAGMA wal_autocheckpoint = 16000;";

/// A database file that the program made in a folder of its own.
pub struct Sqlite {
    folder: PathBuf,
    file: PathBuf,
}

impl Sqlite {
    /// In this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), file: folder.join("seqgate.db") }
    }
}

fn open(file: &Path) -> anyhow::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags).with_context(|| file.display().to_string())?;
    conn.busy_timeout(Duration::from_secs(10))?;
    Ok(conn)
}

impl Yardstick for Sqlite {
    fn url(&self) -> String {
        "sqlite:seqgate.db".into()
    }

    fn watch(&self) -> anyhow::Result<Box<dyn Offsets>> {
        Ok(Box::new(Watch(open(&self.file)?)))
    }

    fn sizes(&self) -> anyhow::Result<Vec<TableSize>> {
        sizes(&open(&self.file)?)
    }

    fn stored_bytes(&self) -> anyhow::Result<u64> {
        Ok(std::fs::metadata(&self.file)?.len())
    }

    fn replay(&self, style: Style, deliveries: &[Delivery], lines: &Path, batch: usize) -> anyhow::Result<Replayed> {
        let tables = Tables::read(&open(&self.file)?)?;
        let facts: Facts = tables.facts()?;
        let batches = plan(&facts, deliveries, if style == Style::PerEvent { 1 } else { batch });
        let file = self.folder.join(format!("{}.db", style.name()));
        let conn = replay::make(&file, &tables)?;
        let events = std::fs::read(lines)?;
        let elapsed = replay::run(&conn, &tables, deliveries, &batches, (style == Style::PerEvent).then_some(&events))?;
        conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
        let replayed = Replayed { elapsed, sizes: sizes(&conn)?, transactions: batches.len() };
        drop(conn);
        std::fs::remove_file(&file)?;
        Ok(replayed)
    }
}

struct Watch(Connection);

impl Offsets for Watch {
    fn offsets(&mut self) -> anyhow::Result<Vec<(u32, u64)>> {
        let mut statement = self.0.prepare_cached("SELECT part, next_offset FROM partitions WHERE source = 'bench'")?;
        // Offsets are kept with their top bit inverted.
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64 ^ 1 << 63)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// Rows and bytes of all values, of every table.
fn sizes(conn: &Connection) -> anyhow::Result<Vec<TableSize>> {
    let mut sizes = Vec::new();
    for name in tables::names(conn)? {
        let columns = tables::columns(conn, &name)?;
        let bytes: Vec<String> =
            columns.iter().map(|c| format!("coalesce(length(CAST(\"{c}\" AS BLOB)), 0)")).collect();
        let sql = format!("SELECT count(*), coalesce(sum({}), 0) FROM \"{name}\"", bytes.join(" + "));
        let (rows, bytes): (i64, i64) = conn.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        sizes.push(TableSize { name, rows: rows.unsigned_abs(), bytes: bytes.unsigned_abs() });
    }
    Ok(sizes)
}
