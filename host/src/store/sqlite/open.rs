//! Opening a file: what it is, its schema, the connections.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqlSafeStr as _, SqliteConnection, raw_sql};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::SqliteStore;
use super::failures::failed;
use crate::store::{Result, Settings, StoreError};

/// `SEQG`, in the file's header: this database is ours.
pub(super) const APPLICATION_ID: i64 = 0x5345_5147;

/// Keys come in no order, so that a batch writes a page for nearly every row: the longer the log, the more writes of one
/// page meet in it before they reach the file (at 4,000 pages a quarter of the throughput is lost). 64 MiB of log.
const CHECKPOINT_PAGES: &str = "16000";

/// About ten statements of a batch in all sizes, and those of single rows.
const STATEMENTS: usize = 512;

const MIGRATIONS: &[(i64, &str, &str)] = &[
    (1, "tables", include_str!("../migrations/sqlite/0001_tables.sql")),
    (2, "log", include_str!("../migrations/sqlite/0002_log.sql")),
    (3, "live", include_str!("../migrations/sqlite/0003_live.sql")),
];

/// The file that a URL names.
pub(crate) fn database_file(url: &str) -> Result<PathBuf> {
    parse(url).map(|options| options.get_filename().to_owned())
}

pub(super) fn parse(url: &str) -> Result<SqliteConnectOptions> {
    let refused = || StoreError::Url { url: url.to_owned() };
    let options = SqliteConnectOptions::from_str(url).map_err(|_| refused())?;
    // What lives in memory is another database for each connection.
    let in_memory = url.contains(":memory:") || url.contains("mode=memory");
    if in_memory || options.get_filename().as_os_str().is_empty() { Err(refused()) } else { Ok(options) }
}

impl SqliteStore {
    /// Opens or makes the file that `url` names.
    pub(crate) async fn open(url: &str, settings: Settings) -> Result<Self> {
        let options = parse(url)?;
        let plain = options.busy_timeout(settings.busy_timeout).foreign_keys(false).disable_statement_logging();
        let options = plain
            .clone()
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            // What is replaced or removed is overwritten, always: an erasure comes long after entities' older data was
            // freed. It costs writes only where values larger than a page are freed.
            .pragma("secure_delete", "on")
            .pragma("temp_store", "memory")
            .pragma("cache_size", "-65536")
            .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            .statement_cache_capacity(STATEMENTS);
        let writer = first_connection(plain, options.clone(), settings.busy_timeout).await?;
        let readers = SqlitePoolOptions::new()
            .max_connections(settings.readers.max(1))
            .acquire_timeout(settings.busy_timeout.max(Duration::from_millis(100)))
            .test_before_acquire(false)
            .connect_lazy_with(options.clone().pragma("query_only", "on"));
        Ok(Self {
            options,
            writer: Mutex::new(Some(writer)),
            readers,
            faults: settings.faults,
            statements: AtomicU64::new(0),
        })
    }

    /// A new connection that writes.
    pub(super) async fn connect(&self) -> Result<SqliteConnection> {
        self.options.connect().await.map_err(failed)
    }

    /// Ends all connections.
    pub(super) async fn close_all(&self) -> Result<()> {
        self.readers.close().await;
        if let Some(writer) = self.writer.lock().await.take() {
            writer.close().await.map_err(failed)?;
        }
        Ok(())
    }
}

/// Looks at the file, connects and migrates. Changing a new file's journal mode takes an exclusive lock for which SQLite
/// does not wait, so another process that opens it at the same time is waited for here.
async fn first_connection(
    plain: SqliteConnectOptions,
    options: SqliteConnectOptions,
    patience: Duration,
) -> Result<SqliteConnection> {
    const PAUSE: Duration = Duration::from_millis(10);
    let end = Instant::now() + patience;
    loop {
        match try_connection(plain.clone(), &options).await {
            Err(StoreError::Busy(_)) if Instant::now() < end => tokio::time::sleep(PAUSE).await,
            outcome => return outcome,
        }
    }
}

async fn try_connection(plain: SqliteConnectOptions, options: &SqliteConnectOptions) -> Result<SqliteConnection> {
    refuse_foreign(plain).await?;
    let mut writer = options.connect().await.map_err(failed)?;
    migrate(&mut writer).await?;
    Ok(writer)
}

/// A file that has tables and is not ours is left exactly as it is: not even its journal mode changes.
async fn refuse_foreign(options: SqliteConnectOptions) -> Result<()> {
    let path = options.get_filename();
    match std::fs::metadata(path) {
        Ok(file) if file.len() > 0 => {}
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(StoreError::Io(e.into())),
    }
    let mut conn = options.create_if_missing(false).connect().await.map_err(failed)?;
    let (tables, id): (i64, i64) = sqlx::query_as(
        "SELECT (SELECT count(*) FROM sqlite_schema), (SELECT application_id FROM pragma_application_id)",
    )
    .fetch_one(&mut conn)
    .await
    .map_err(failed)?;
    conn.close().await.map_err(failed)?;
    if tables > 0 && id != APPLICATION_ID { Err(StoreError::Foreign) } else { Ok(()) }
}

/// All missing migrations in one transaction, which is also the lock: a second process waits here, and finds them done.
async fn migrate(writer: &mut SqliteConnection) -> Result<()> {
    let migration = |(version, name, sql): &(i64, &'static str, &'static str)| {
        Migration::new(*version, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    let migrator = Migrator::with_migrations(MIGRATIONS.iter().map(migration).collect());
    let mut transaction = writer.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
    raw_sql("PRAGMA application_id = 1397051719").execute(&mut *transaction).await.map_err(failed)?;
    match migrator.run_direct(None, &mut *transaction, false).await {
        Ok(()) => transaction.commit().await.map_err(failed),
        Err(error) => {
            transaction.rollback().await.map_err(failed)?;
            Err(refused(error))
        }
    }
}

fn refused(error: MigrateError) -> StoreError {
    let known = newest();
    match error {
        MigrateError::VersionMissing(found) if found > known => StoreError::Newer { found, known },
        MigrateError::Execute(error) => failed(error),
        error => StoreError::Schema(error.into()),
    }
}

/// The newest schema that this Seqgate knows.
pub(super) fn newest() -> i64 {
    MIGRATIONS.iter().map(|(version, ..)| *version).max().unwrap_or_default()
}
