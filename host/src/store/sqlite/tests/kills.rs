//! G11: a process that ends at any point of a commit leaves all of it or nothing.

use std::process::Command;

use seqgate_decide::writes::Writes;

use super::super::SqliteStore;
use super::support::*;
use crate::store::{Commit, Faults, Point, Settings, Settled, Store as _, Transaction};

const FILE: &str = "SEQGATE_TEST_KILL_ON";
const POINT: &str = "SEQGATE_TEST_KILL_AT";

async fn dies(url: &str, point: Point) {
    let armed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let hook = armed.clone();
    let faults = Faults::new(move |at| {
        if at == point && hook.load(std::sync::atomic::Ordering::SeqCst) {
            std::process::abort();
        }
        false
    });
    let store = SqliteStore::open(url, Settings { faults, ..Settings::default() }).await.unwrap();
    store.acquire("file", 3, "child").await.unwrap();
    armed.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut writes = Writes::default();
    writes.entities.insert(id(b"o1"), entity(&id(b"o1"), 0, 1, 1));
    writes.outbox.push(message(&id(b"o1"), 1, 0));
    let _ = store.commit(&Commit { fence: Some(fence(1, 0, 10)), ..Commit::new(&writes, 1) }).await;
}

#[tokio::test]
async fn a_killed_process_leaves_all_or_nothing() {
    if let (Ok(url), Ok(point)) = (std::env::var(FILE), std::env::var(POINT)) {
        return dies(&url, Point::from_name(&point).unwrap()).await;
    }
    for point in Point::ALL {
        let folder = Folder::new();
        let name = "store::sqlite::tests::kills::a_killed_process_leaves_all_or_nothing";
        let mut child = Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", name]).env(FILE, folder.url()).env(POINT, point.name()).output().unwrap();
        assert_eq!(output.status.code(), None, "it was to die at {}", point.name());
        let store = folder.open().await;
        let whose = Transaction { fence: Some(fence(1, 0, 10)), operation: None };
        let (settled, rows) = match point {
            Point::AfterCommit => (Settled::Committed, 1),
            _ => (Settled::NotCommitted, 0),
        };
        assert_eq!(store.settle(&whose).await.unwrap(), settled, "{}", point.name());
        assert_eq!(load_entity(&store, &id(b"o1")).await.row_version, rows);
        let messages: (i64,) = sqlx::query_as("SELECT count(*) FROM outbox").fetch_one(&store.readers).await.unwrap();
        assert_eq!(messages.0 as u64, rows);
        let next = store.acquire("file", 3, "parent").await.unwrap();
        assert_eq!((next.epoch, next.offset), (2, rows * 10));
    }
}
