//! Files: new, old, newer, another's, damaged; and who runs on them.

use std::process::Command;

use sqlx::{Connection as _, SqliteConnection, raw_sql};

use super::super::SqliteStore;
use super::support::*;
use crate::store::lock::{Holder, LockError, RunLock};
use crate::store::{NextStep, Settings, Store as _, StoreError, Views as _};

async fn refused(folder: &Folder) -> StoreError {
    match SqliteStore::open(&folder.url(), Settings::default()).await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

pub(super) async fn direct(folder: &Folder) -> SqliteConnection {
    SqliteConnection::connect(&format!("{}?mode=rwc", folder.url())).await.unwrap()
}

#[tokio::test]
async fn a_new_file_gets_its_tables_and_an_old_one_keeps_its_rows() {
    let folder = Folder::new();
    let store = crate::store::open(&folder.url(), Settings::default()).await.unwrap();
    store.raise_alarm("stuck", "orders/o1", "since yesterday", 1).await.unwrap();
    store.close().await.unwrap();
    let store = folder.open().await;
    assert_eq!(store.status().await.unwrap().alarms.count, 1);
    let mut conn = direct(&folder).await;
    let mode: (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(&mut conn).await.unwrap();
    assert_eq!(mode.0, "wal");
    let mut writer = store.writer.lock().await;
    let durable: (i64,) = sqlx::query_as("PRAGMA synchronous").fetch_one(writer.as_mut().unwrap()).await.unwrap();
    assert_eq!(durable.0, 2, "FULL");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_that_open_a_new_file_at_once_both_succeed() {
    let folder = Folder::new();
    let url = folder.url();
    let opening: Vec<_> = (0..4)
        .map(|_| {
            let url = url.clone();
            tokio::spawn(async move { SqliteStore::open(&url, Settings::default()).await.map(drop) })
        })
        .collect();
    for task in opening {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = Folder::new();
    folder.open().await.close().await.unwrap();
    let mut conn = direct(&folder).await;
    raw_sql("INSERT INTO _sqlx_migrations VALUES (99, 'later', 0, TRUE, x'00', 0)").execute(&mut conn).await.unwrap();
    let error = refused(&folder).await;
    assert!(matches!(error, StoreError::Newer { found: 99, known: 3 }), "{error}");
    assert_eq!(error.next_step(), NextStep::Stop);
}

#[tokio::test]
async fn another_programs_database_is_left_as_it_is() {
    let folder = Folder::new();
    let mut conn = direct(&folder).await;
    raw_sql("CREATE TABLE theirs (x)").execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let before = std::fs::read(folder.file()).unwrap();
    assert!(matches!(refused(&folder).await, StoreError::Foreign));
    assert_eq!(std::fs::read(folder.file()).unwrap(), before);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = Folder::new();
    std::fs::write(folder.file(), vec![b'x'; 8192]).unwrap();
    assert!(matches!(refused(&folder).await, StoreError::Corrupt(_)));
    assert_eq!(crate::store::database_file(&folder.url()).unwrap(), Some(folder.file()));
    for url in ["sqlite::memory:", "sqlite:x.db?mode=memory", "postgres://localhost/x"] {
        assert!(matches!(crate::store::open(url, Settings::default()).await, Err(StoreError::Url { .. })), "{url}");
    }
}

#[tokio::test]
async fn a_busy_database_is_told_apart() {
    let folder = Folder::new();
    let settings = Settings { busy_timeout: std::time::Duration::from_millis(50), ..Settings::default() };
    let store = SqliteStore::open(&folder.url(), settings).await.unwrap();
    let mut other = direct(&folder).await;
    raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let error = store.raise_alarm("a", "b", "c", 1).await.unwrap_err();
    assert!(matches!(error, StoreError::Busy(_)) && error.next_step() == NextStep::Retry, "{error}");
    raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    assert!(store.raise_alarm("a", "b", "c", 1).await.unwrap());
}

const CHILD: &str = "SEQGATE_TEST_LOCK_OF";

/// R7: a second `run` is told who holds the lock; a process that died holds nothing.
#[test]
fn one_process_runs_on_a_file() {
    if let Some(database) = std::env::var_os(CHILD) {
        // The second process: the lock's owner is alive, then gone.
        let me = Holder { pid: std::process::id(), host: "here".into(), started: 2 };
        match RunLock::acquire(database.as_ref(), &me) {
            Ok(_lock) => std::process::exit(10),
            Err(LockError::Held { holder, .. }) if holder.pid == 4242 && holder.host == "host a" => {
                std::process::exit(11)
            }
            Err(other) => panic!("{other}"),
        }
    }
    let folder = Folder::new();
    let second = || {
        let name = "store::sqlite::tests::opening::one_process_runs_on_a_file";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", name]).env(CHILD, folder.file()).status().unwrap().code()
    };
    let me = Holder { pid: 4242, host: "host a".into(), started: 1 };
    let lock = RunLock::acquire(&folder.file(), &me).unwrap();
    let held = RunLock::acquire(&folder.file(), &me).unwrap_err().to_string();
    assert!(held.starts_with("another process runs on this database: process 4242 on host a, started 1"), "{held}");
    assert_eq!(second(), Some(11));
    drop(lock);
    assert_eq!(second(), Some(10));
    RunLock::acquire(&folder.file(), &me).unwrap();
}
