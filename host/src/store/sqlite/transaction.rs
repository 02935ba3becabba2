//! The writer's transactions.

use std::sync::atomic::Ordering;

use sqlx::sqlite::SqliteRow;
use sqlx::{Sqlite, SqliteConnection};
use tokio::sync::MutexGuard;

use super::SqliteStore;
use super::batch::{self, Rows, Template};
use super::failures::failed;
use crate::store::{Point, Result, StoreError};

/// An immediate transaction. Dropped without an end, it takes its connection along, and the file is as before.
pub(super) struct Tx<'s> {
    store: &'s SqliteStore,
    slot: MutexGuard<'s, Option<SqliteConnection>>,
    conn: SqliteConnection,
}

/// What a test's hook made of a point.
fn broken(point: Point) -> std::io::Error {
    std::io::Error::other(format!("made to fail at {}", point.name()))
}

impl SqliteStore {
    /// Waits for the transactions before this one, of this process and of others.
    pub(super) async fn begin(&self) -> Result<Tx<'_>> {
        if self.faults.at(Point::BeforeBegin) {
            return Err(StoreError::Io(broken(Point::BeforeBegin).into()));
        }
        let mut slot = self.writer.lock().await;
        let mut conn = match slot.take() {
            Some(conn) => conn,
            None => self.connect().await?,
        };
        self.statements.fetch_add(1, Ordering::Relaxed);
        let begun = sqlx::query("BEGIN IMMEDIATE").execute(&mut conn).await;
        match begun {
            Ok(_) => Ok(Tx { store: self, slot, conn }),
            Err(error) => {
                let error = failed(error);
                if matches!(error, StoreError::Busy(_)) {
                    *slot = Some(conn);
                }
                Err(error)
            }
        }
    }

    /// The database as it is now, for reading.
    pub(super) async fn snapshot(&self) -> Result<Snapshot<'_>> {
        let transaction = self.readers.begin().await.map_err(failed)?;
        Ok(Snapshot { store: self, transaction })
    }

    /// R7: changes only when another connection has written, and the writer's own is the one that does not count.
    pub(super) async fn read_data_version(&self) -> Result<i64> {
        let mut slot = self.writer.lock().await;
        let mut conn = match slot.take() {
            Some(conn) => conn,
            None => self.connect().await?,
        };
        let version = sqlx::query_scalar("PRAGMA data_version").fetch_one(&mut conn).await.map_err(failed)?;
        *slot = Some(conn);
        Ok(version)
    }
}

/// What the database was at one moment, while others write.
pub(super) struct Snapshot<'s> {
    store: &'s SqliteStore,
    transaction: sqlx::Transaction<'static, Sqlite>,
}

impl Snapshot<'_> {
    /// The connection, for statements of a single row.
    pub(super) fn conn(&mut self) -> &mut SqliteConnection {
        self.store.statements.fetch_add(1, Ordering::Relaxed);
        &mut self.transaction
    }

    /// Selects by many keys. No keys, no statement.
    pub(super) async fn select(&mut self, template: &Template, keys: Rows) -> Result<Vec<SqliteRow>> {
        select(self.store, &mut self.transaction, template, keys).await
    }

    /// Lets go of it.
    pub(super) async fn end(self) -> Result<()> {
        self.transaction.commit().await.map_err(failed)
    }
}

async fn select(
    store: &SqliteStore,
    conn: &mut SqliteConnection,
    template: &Template,
    keys: Rows,
) -> Result<Vec<SqliteRow>> {
    if let Some(why) = keys.refused() {
        return Err(StoreError::Data(why.into()));
    }
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let (rows, statements) = batch::select(conn, template, keys).await.map_err(failed)?;
    store.statements.fetch_add(statements, Ordering::Relaxed);
    Ok(rows)
}

impl Tx<'_> {
    /// The connection, for statements of a single row.
    pub(super) fn conn(&mut self) -> &mut SqliteConnection {
        self.store.statements.fetch_add(1, Ordering::Relaxed);
        &mut self.conn
    }

    /// Changes many rows; gives how many. No rows, no statement.
    pub(super) async fn execute(
        &mut self,
        template: &Template,
        rows: Rows,
        failed: impl Fn(sqlx::Error) -> StoreError,
    ) -> Result<u64> {
        if let Some(why) = rows.refused() {
            return Err(StoreError::Data(why.into()));
        }
        if rows.is_empty() {
            return Ok(0);
        }
        let (changed, statements) = batch::execute(&mut self.conn, template, rows).await.map_err(failed)?;
        self.store.statements.fetch_add(statements, Ordering::Relaxed);
        Ok(changed)
    }

    /// Selects by many keys. No keys, no statement.
    pub(super) async fn select(&mut self, template: &Template, keys: Rows) -> Result<Vec<SqliteRow>> {
        select(self.store, &mut self.conn, template, keys).await
    }

    /// Lets a test make this transaction fail.
    pub(super) fn reach(&self, point: Point) -> Result<()> {
        if self.store.faults.at(point) { Err(StoreError::Io(broken(point).into())) } else { Ok(()) }
    }

    /// Puts everything on disk. Until COMMIT is sent nothing is there; from then on, only its answer tells.
    pub(super) async fn commit(mut self) -> Result<()> {
        if self.store.faults.at(Point::BeforeCommit) {
            return Err(StoreError::Unknown(broken(Point::BeforeCommit).into()));
        }
        self.store.statements.fetch_add(1, Ordering::Relaxed);
        let done = sqlx::query("COMMIT").execute(&mut self.conn).await;
        if self.store.faults.at(Point::AfterCommit) {
            return Err(StoreError::Unknown(broken(Point::AfterCommit).into()));
        }
        match done {
            Ok(_) => {
                *self.slot = Some(self.conn);
                Ok(())
            }
            Err(error) => Err(StoreError::Unknown(error.into())),
        }
    }

    /// Takes everything back; a connection that cannot is given up.
    pub(super) async fn rollback(mut self) {
        if sqlx::query("ROLLBACK").execute(&mut self.conn).await.is_ok() {
            *self.slot = Some(self.conn);
        }
    }
}

/// Ends a transaction as its work ended.
pub(super) async fn end<T>(tx: Tx<'_>, work: Result<T>) -> Result<T> {
    match work {
        Ok(value) => tx.commit().await.map(|()| value),
        Err(error) => {
            tx.rollback().await;
            Err(error)
        }
    }
}
