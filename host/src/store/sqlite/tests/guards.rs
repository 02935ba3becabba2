//! R7, R8: what must not have changed, and who may write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use seqgate_decide::ids::EntityId;
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::Intent;
use seqgate_decide::writes::{DeadStatus, DeadUpdate, DeadWrite, InboxWrite, Writes};

use super::super::SqliteStore;
use super::support::*;
use crate::store::error::Race;
use crate::store::registry::RulesRecord;
use crate::store::{Commit, Faults, NextStep, OperationId, Point, Registry as _, Settled, Store as _, StoreError};
use crate::store::{Transaction, Views as _};

fn changed(id: &EntityId, row_version: u64) -> Writes {
    let mut writes = Writes::default();
    writes.entities.insert(id.clone(), entity(id, row_version, row_version + 1, row_version + 1));
    writes
}

#[tokio::test]
async fn of_two_decisions_on_the_same_row_the_second_is_redone() {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let store = folder.open().await;
    commit(&store, &changed(&id, 0)).await.unwrap();
    let lost = commit(&store, &changed(&id, 0)).await.unwrap_err();
    assert_eq!(lost.next_step(), NextStep::Redo);
    let StoreError::Raced(Race::Entity { entity, expected, found }) = lost else { panic!("{lost}") };
    assert_eq!((entity, expected, found), (id.clone(), 0, 1));
    commit(&store, &changed(&id, 1)).await.unwrap();
    assert_eq!(load_entity(&store, &id).await.row_version, 2);
}

/// An entity that was only read is guarded too, and being waited for is a change.
#[tokio::test]
async fn what_was_only_read_is_guarded() {
    let folder = Folder::new();
    let store = folder.open().await;
    let (target, other) = (id(b"target"), id(b"other"));
    let mut touch = Writes::default();
    touch.touched.insert(target.clone());
    commit(&store, &touch).await.unwrap();
    assert_eq!(load_entity(&store, &target).await.row_version, 1, "an absent one gets an empty row");
    commit(&store, &touch).await.unwrap();
    let row = load_entity(&store, &target).await;
    assert_eq!((row.row_version, row.version, row.revision, row.pruned_through), (2, 0, 0, 0));

    let writes = changed(&other, 0);
    let read_before = Commit { guards: [(target.clone(), 1)].into(), ..Commit::new(&writes, 1) };
    assert!(matches!(store.commit(&read_before).await, Err(StoreError::Raced(_))));
    assert_eq!(load_entity(&store, &other).await.row_version, 0, "nothing of it is written");
    let read_now = Commit { guards: [(target, 2)].into(), ..Commit::new(&writes, 1) };
    store.commit(&read_now).await.unwrap();
}

#[tokio::test]
async fn a_row_that_exists_is_a_race() {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let store = folder.open().await;
    let event = event_for(&id, "e1", Some(1), b"x");
    let mut first = Writes::default();
    first.inbox.insert(event.key.clone(), InboxWrite::Insert(inbox(&event, Verdict::Applied, 0)));
    first.history.push(history(&id, 1, 1, Some(event.clone())));
    let intent = Intent { entity: id.clone(), kind: "order.paid".into(), data_digest: digest_of("x") };
    first.intents.insert(("orders".into(), "pay:1".into()), intent);
    commit(&store, &first).await.unwrap();

    let only = async |writes: Writes| commit(&store, &writes).await.unwrap_err();
    let raced = |error: StoreError, table: &str| match error {
        StoreError::Raced(Race::Row(found)) => assert_eq!(found, table),
        other => panic!("{other}"),
    };
    raced(only(Writes { inbox: first.inbox.clone(), ..Writes::default() }).await, "inbox");
    raced(only(Writes { intents: first.intents.clone(), ..Writes::default() }).await, "intents");
    raced(only(Writes { history: first.history.clone(), ..Writes::default() }).await, "history");
    // Another revision that consumes the same version.
    let again = history(&id, 2, 1, Some(event));
    raced(only(Writes { history: vec![again], ..Writes::default() }).await, "history");
}

/// G5.
#[tokio::test]
async fn nothing_of_an_old_owner_commits() {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let store = folder.open().await;
    let old = store.acquire("file", 3, "old").await.unwrap();
    assert_eq!((old.epoch, old.offset), (1, 0));
    let writes = changed(&id, 0);
    let as_old = Commit { fence: Some(fence(old.epoch, 0, 10)), ..Commit::new(&writes, 1) };
    let new = store.acquire("file", 3, "new").await.unwrap();
    assert_eq!((new.epoch, new.offset), (2, 0));
    let error = store.commit(&as_old).await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Fenced);
    assert_eq!(error.to_string(), "file/3 is no longer ours: expected epoch 1 at offset 0, found epoch 2 at offset 0");
    assert_eq!(load_entity(&store, &id).await.row_version, 0);

    let as_new = Commit { fence: Some(fence(new.epoch, 0, u64::MAX)), ..Commit::new(&writes, 1) };
    store.commit(&as_new).await.unwrap();
    assert_eq!(store.acquire("file", 3, "new").await.unwrap().offset, u64::MAX);
    let unknown = Commit { fence: Some(crate::store::Fence { partition: 9, ..fence(1, 0, 1) }), ..as_new };
    assert!(matches!(store.commit(&unknown).await, Err(StoreError::Fenced { found: None, .. })));
}

/// G9: no decision by activation n commits after n + 1.
#[tokio::test]
async fn rules_that_are_no_longer_in_force_decide_nothing() {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let store = folder.open().await;
    let writes = changed(&id, 0);
    let by = |number| Commit { activations: [("orders".into(), number)].into(), ..Commit::new(&writes, 1) };
    let record = RulesRecord {
        digest: digest_of("rules"),
        machine: "orders".into(),
        description: "{}".into(),
        size: 5,
        actor: "ada".into(),
        at: 1,
    };
    store.put_rules(&record, b"rules").await.unwrap();
    store.activate("orders", record.digest, "ada", "first", 1).await.unwrap();
    store.activate("orders", record.digest, "ada", "again", 1).await.unwrap();
    let error = store.commit(&by(1)).await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Reload);
    assert!(matches!(error, StoreError::RulesChanged { decided: 1, active: 2, .. }), "{error}");
    store.commit(&by(2)).await.unwrap();
}

fn breaks_at(point: Point) -> (Faults, Arc<AtomicU8>) {
    let left = Arc::new(AtomicU8::new(0));
    let hook = left.clone();
    let take =
        move |at| at == point && hook.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
    (Faults::new(take), left)
}

async fn broken_commit(point: Point) -> (Folder, SqliteStore, StoreError, EntityId) {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let (faults, left) = breaks_at(point);
    let store = folder.open_with(faults).await;
    store.acquire("file", 3, "me").await.unwrap();
    left.store(1, Ordering::SeqCst);
    let writes = changed(&id, 0);
    let error = store.commit(&Commit { fence: Some(fence(1, 0, 10)), ..Commit::new(&writes, 1) }).await.unwrap_err();
    (folder, store, error, id)
}

/// R7: an unknown outcome is settled by the partition's row.
#[tokio::test]
async fn an_unknown_outcome_is_settled_by_the_offset() {
    let whose = Transaction { fence: Some(fence(1, 0, 10)), operation: None };
    for (point, settled, row_version) in
        [(Point::BeforeCommit, Settled::NotCommitted, 0), (Point::AfterCommit, Settled::Committed, 1)]
    {
        let (_folder, store, error, id) = broken_commit(point).await;
        assert_eq!(error.next_step(), NextStep::Settle);
        assert_eq!(store.settle(&whose).await.unwrap(), settled);
        assert_eq!(load_entity(&store, &id).await.row_version, row_version);
        store.acquire("file", 3, "another").await.unwrap();
        assert!(matches!(store.settle(&whose).await, Err(StoreError::Fenced { .. })), "its row cannot tell any more");
    }
}

/// G2: a connection that breaks before COMMIT leaves nothing, and the next transaction finds a connection.
#[tokio::test]
async fn what_breaks_before_commit_leaves_nothing() {
    for point in [Point::BeforeBegin, Point::MidWrite] {
        let (_folder, store, error, id) = broken_commit(point).await;
        assert_eq!(error.next_step(), NextStep::Retry);
        assert_eq!(load_entity(&store, &id).await.row_version, 0);
        commit(&store, &changed(&id, 0)).await.unwrap();
    }
}

#[tokio::test]
async fn an_operation_is_settled_by_its_id_and_committed_once() {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let store = folder.open().await;
    let writes = changed(&id, 0);
    let operation = Some(OperationId([7; 16]));
    let whose = Commit { operation, ..Commit::new(&writes, 1) };
    assert_eq!(store.settle(&whose.transaction()).await.unwrap(), Settled::NotCommitted);
    store.commit(&whose).await.unwrap();
    assert_eq!(store.settle(&whose.transaction()).await.unwrap(), Settled::Committed);
    assert!(matches!(store.commit(&whose).await, Err(StoreError::AlreadyCommitted)));
}

/// A transaction that is dropped half-way (its task was cancelled) holds up nobody.
#[tokio::test]
async fn a_dropped_commit_is_rolled_back() {
    let folder = Folder::new();
    let store = folder.open().await;
    let (writes, guards) = typical(0, 200, u64::MAX);
    let first = guards.keys().next().unwrap().clone();
    for wait in 0..20 {
        let whole = Commit::new(&writes, 1);
        let limit = std::time::Duration::from_micros(wait * 300);
        if tokio::time::timeout(limit, store.commit(&whole)).await.is_ok() {
            break;
        }
        assert_eq!(load_entity(&store, &first).await.row_version, 0);
    }
    let other = id(b"other");
    commit(&store, &changed(&other, 0)).await.unwrap();
    assert_eq!(load_entity(&store, &other).await.row_version, 1);
}

/// R7: immediate transactions queue up; one that read first and wrote later would be refused instead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_write_at_once_wait_for_each_other() {
    let folder = Folder::new();
    let (one, two) = (folder.open().await, folder.open().await);
    let many = async |store: &SqliteStore, key: &[u8]| {
        for version in 0..100 {
            commit(store, &changed(&id(key), version)).await.unwrap();
        }
    };
    tokio::join!(many(&one, b"a"), many(&two, b"b"));
    assert_eq!(load_entity(&one, &id(b"b")).await.row_version, 100);
}

/// R7: `run` notices what the command line wrote, and not what it wrote itself.
#[tokio::test]
async fn the_data_version_shows_other_processes_only() {
    let folder = Folder::new();
    let (run, command) = (folder.open().await, folder.open().await);
    let before = run.data_version().await.unwrap();
    commit(&run, &changed(&id(b"o1"), 0)).await.unwrap();
    assert_eq!(run.data_version().await.unwrap(), before);
    commit(&command, &changed(&id(b"o2"), 0)).await.unwrap();
    assert_ne!(run.data_version().await.unwrap(), before);
}

/// R5: what cannot be stored is told apart, so that the batch is halved.
#[tokio::test]
async fn rows_that_cannot_be_stored_are_data_errors() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    let mut writes = changed(&id, 0);
    writes.history.push(history(&id, u64::MAX, 1, None));
    let error = commit(&store, &writes).await.unwrap_err();
    assert_eq!(error.next_step(), NextStep::Bisect, "{error}");
    assert_eq!(store.status().await.unwrap().entities, 0);
}

/// A malformed envelope names no entity, so its letter has no guard but its own status: two people close it once.
#[tokio::test]
async fn a_letter_is_decided_while_it_is_open() {
    let (folder, id) = (Folder::new(), id(b"o1"));
    let store = folder.open().await;
    let mut writes = Writes::default();
    let letter = put_dead(&mut writes, dead(event_for(&id, "e1", None, b""), false));
    commit(&store, &writes).await.unwrap();
    let close = |status| {
        let mut writes = Writes::default();
        let change = DeadUpdate { status: Some(status), at: 2, ..DeadUpdate::default() };
        writes.dead.insert(letter, DeadWrite::Update(change));
        writes.moves.insert(("events".into(), 0, Verdict::Malformed, Verdict::Skipped), 1);
        writes
    };
    commit(&store, &close(DeadStatus::Skipped)).await.unwrap();
    let late = commit(&store, &close(DeadStatus::Redriven)).await.unwrap_err();
    assert!(matches!(late, StoreError::Raced(Race::Row("dead_letters"))), "{late}");
    let row = store.dead_letter(letter).await.unwrap().unwrap().row;
    assert_eq!(row.status, DeadStatus::Skipped);
    let partitions = store.partitions().await.unwrap();
    assert_eq!(partitions[0].verdicts.get(&Verdict::Skipped), Some(&1), "counted once");
}
