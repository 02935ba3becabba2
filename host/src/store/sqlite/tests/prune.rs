//! Retention: what goes, in how large steps, and what stays.

use std::collections::BTreeMap;

use seqgate_decide::ids::EntityId;
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::world::{Intent, Need};
use seqgate_decide::writes::{ConflictWrite, InboxWrite, Writes};

use super::opening::direct;
use super::support::*;
use crate::store::error::Race;
use crate::store::retention::{Horizon, Horizons, Place, Retention as _, Step};
use crate::store::sqlite::SqliteStore;
use crate::store::views::{Page, Views as _};
use crate::store::{Commit, Faults, Point, Store as _, StoreError};

/// Everything decided at or before `at` is old.
fn before(at: i64) -> Horizons {
    let terminal = ["closed".into()].into();
    BTreeMap::from([("orders".into(), Horizon { history: at, inbox: at, intents: at, terminal })])
}

/// Steps to the end of a table; gives them.
async fn round(store: &SqliteStore, horizons: &Horizons, start: Place) -> Vec<Step> {
    let (mut place, mut steps) = (Some(start), Vec::new());
    while let Some(from) = place {
        let step = store.prune(horizons, &from, 1_000).await.unwrap();
        assert!(step.removed <= 500, "{step:?}");
        place = step.next.clone();
        steps.push(step);
    }
    steps
}

fn removed(steps: &[Step]) -> u64 {
    steps.iter().map(|s| s.removed).sum()
}

/// Revisions `from..=to` of an entity, each decided at ten times its number.
async fn revisions(store: &SqliteStore, id: &EntityId, from: u64, to: u64) {
    let mut writes = Writes::default();
    let guard = guard(store, id).await;
    for revision in from..=to {
        let event = event_for(id, &format!("e{revision}"), Some(revision), b"{}");
        let mut row = history(id, revision, revision, Some(event));
        row.decided_at = revision as i64 * 10;
        writes.history.push(row);
    }
    let mut entity = entity(id, guard, to, to);
    entity.data = format!("{{\"at\":{to}}}").into_bytes().into();
    writes.entities.insert(id.clone(), entity);
    commit(store, &writes).await.unwrap();
}

async fn guard(store: &SqliteStore, id: &EntityId) -> u64 {
    store.entity(id).await.unwrap().map_or(0, |e| e.row_version)
}

async fn kept(store: &SqliteStore, id: &EntityId) -> Vec<u64> {
    let rows = store.history(id, &Page::first(10_000)).await.unwrap();
    rows.items.iter().map(|r| r.revision).collect()
}

#[tokio::test]
async fn a_checkpoint_becomes_the_base_when_it_is_old() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    revisions(&store, &id, 1, 4).await;
    // Revisions 1 and 2 are old, but nothing says what the entity was after 2.
    let steps = round(&store, &before(20), Place::History(0)).await;
    assert_eq!((removed(&steps), store.base(&id).await.unwrap()), (0, None));
    revisions(&store, &id, 5, 6).await;
    assert_eq!(removed(&round(&store, &before(39), Place::History(0)).await), 0, "revision 4 is young");
    let steps = round(&store, &before(40), Place::History(0)).await;
    assert_eq!(removed(&steps), 4);
    let base = store.base(&id).await.unwrap().unwrap();
    assert_eq!((base.revision, base.version, base.through, &*base.data), (4, 4, 40, &b"{\"at\":4}"[..]));
    assert_eq!(base.state.as_deref(), Some("paid"));
    assert_eq!(kept(&store, &id).await, [5, 6]);
    let detail = store.entity(&id).await.unwrap().unwrap();
    assert_eq!((detail.pruned_through, detail.summary.version), (4, 6));
    // One that rests is its own base.
    assert_eq!(removed(&round(&store, &before(60), Place::History(0)).await), 2);
    assert_eq!(kept(&store, &id).await, [0; 0]);
    assert_eq!(store.base(&id).await.unwrap().unwrap().revision, 6);
    assert_eq!(store.entity(&id).await.unwrap().unwrap().pruned_through, 6);
    // And so again, from there.
    revisions(&store, &id, 7, 7).await;
    assert_eq!(removed(&round(&store, &before(70), Place::History(0)).await), 1);
    assert_eq!(store.base(&id).await.unwrap().unwrap().revision, 7);
}

#[tokio::test]
async fn steps_are_small_and_other_machines_are_left_alone() {
    let folder = Folder::new();
    let store = folder.open().await;
    let (one, other) = (id(b"o1"), EntityId::new("accounts", *b"a1"));
    revisions(&store, &one, 1, 1_300).await;
    revisions(&store, &other, 1, 3).await;
    let steps = round(&store, &before(1_000_000), Place::History(0)).await;
    assert_eq!(steps.iter().map(|s| s.removed).collect::<Vec<_>>(), [500, 500, 300]);
    assert_eq!(kept(&store, &other).await, [1, 2, 3]);
    assert_eq!(store.entity(&one).await.unwrap().unwrap().pruned_through, 1_300);
}

#[tokio::test]
async fn what_was_loaded_before_is_not_decided_on_after() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    revisions(&store, &id, 1, 2).await;
    let loaded = guard(&store, &id).await;
    assert_eq!(removed(&round(&store, &before(100), Place::History(0)).await), 2);
    let writes = Writes::default();
    let mut late = Commit::new(&writes, 100);
    late.guards.insert(id.clone(), loaded);
    let error = store.commit(&late).await.unwrap_err();
    assert!(matches!(error, StoreError::Raced(Race::Entity { .. })), "{error}");
}

#[tokio::test]
async fn a_step_that_fails_leaves_everything() {
    let folder = Folder::new();
    let faults = Faults::new(|point| point == Point::BeforeCommit);
    let id = id(b"o1");
    {
        let store = folder.open().await;
        revisions(&store, &id, 1, 3).await;
        store.close().await.unwrap();
    }
    let broken = folder.open_with(faults).await;
    broken.prune(&before(100), &Place::History(0), 1_000).await.unwrap_err();
    broken.close().await.unwrap();
    let store = folder.open().await;
    assert_eq!((kept(&store, &id).await, store.base(&id).await.unwrap()), (vec![1, 2, 3], None));
    assert_eq!(store.entity(&id).await.unwrap().unwrap().pruned_through, 0);
}

#[tokio::test]
async fn ids_stay_while_something_rests_on_them() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    let event = |name: &str| event_for(&id, name, Some(1), b"{}");
    let mut writes = Writes::default();
    for (name, verdict) in [
        ("applied", Verdict::Applied),
        ("waits", Verdict::Deferred),
        ("dead", Verdict::Illegal),
        ("closed", Verdict::Illegal),
        ("conflict", Verdict::Conflict),
    ] {
        let event = event(name);
        writes.inbox.insert(event.key.clone(), InboxWrite::Insert(inbox(&event, verdict, 1)));
    }
    put_waiting(&mut writes, waiting(event("waits"), 1, DeferReason::Gap), Vec::new());
    put_dead(&mut writes, dead(event("dead"), true));
    let row = conflict(event("conflict"));
    let quarantined = seqgate_decide::ids::Ref::of_conflict(&row.event.key, &row.event.digest);
    writes.conflicts.insert(quarantined, ConflictWrite::Put(row));
    writes.entities.insert(id.clone(), entity(&id, 0, 1, 1));
    commit(&store, &writes).await.unwrap();
    let start = || Place::starts()[1].clone();
    assert_eq!(removed(&round(&store, &before(11), start()).await), 0, "they are young");
    assert_eq!(removed(&round(&store, &before(12), start()).await), 2);
    for (name, stays) in [("applied", false), ("closed", false), ("waits", true), ("dead", true), ("conflict", true)] {
        let shown = store.events(name).await.unwrap();
        assert_eq!(shown.iter().any(|e| format!("{e:?}").contains("received: 12")), stays, "{name}: {shown:?}");
    }
}

#[tokio::test]
async fn keys_of_intent_stay_while_their_entity_lives() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut writes = Writes::default();
    for (key, state) in [("live", Some("paid")), ("done", Some("closed")), ("gone", None)] {
        let id = id(key.as_bytes());
        if let Some(state) = state {
            let mut row = entity(&id, 0, 1, 1);
            row.state = Some(state.into());
            writes.entities.insert(id.clone(), row);
        }
        let taken =
            Intent { entity: id, kind: "order.paid".into(), data_digest: seqgate_decide::digest::of_bytes(b"d") };
        writes.intents.insert(("orders".into(), key.into()), taken);
    }
    commit(&store, &writes).await.unwrap();
    let start = || Place::starts()[2].clone();
    assert_eq!(removed(&round(&store, &before(99), start()).await), 0, "they were taken at 100");
    assert_eq!(removed(&round(&store, &before(100), start()).await), 2);
    let world = load(&store, ["live", "done", "gone"].map(|key| Need::Intent("orders".into(), key.into()))).await;
    assert_eq!(format!("{world:?}").matches("order.paid").count(), 1);
}

#[tokio::test]
async fn what_was_erased_is_in_no_byte_of_the_files() {
    const SECRET: &str = "4111-secret-1111";
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    let payload = format!("{{\"card\":\"{SECRET}\",\"pad\":\"{}\"}}", "x".repeat(9_000));
    let mut writes = Writes::default();
    writes.history.push(history(&id, 1, 1, Some(event_for(&id, "e1", Some(1), payload.as_bytes()))));
    let mut row = entity(&id, 0, 1, 1);
    row.data = payload.as_bytes().into();
    writes.entities.insert(id.clone(), row);
    put_dead(&mut writes, dead(event_for(&id, "e2", Some(2), payload.as_bytes()), true));
    let quarantined = conflict(event_for(&id, "e3", Some(1), payload.as_bytes()));
    let name = seqgate_decide::ids::Ref::of_conflict(&quarantined.event.key, &quarantined.event.digest);
    writes.conflicts.insert(name, ConflictWrite::Put(quarantined));
    commit(&store, &writes).await.unwrap();
    // A checkpoint holds the data too.
    round(&store, &before(5), Place::History(0)).await;
    round(&store, &before(11), Place::History(0)).await;
    assert!(bytes_hold(&folder, SECRET), "the test looks in the right place");
    let mut writes = Writes::default();
    let guard = guard(&store, &id).await;
    let mut row = entity(&id, guard, 1, 2);
    (row.data, row.erased) = ((*b"").into(), true);
    writes.entities.insert(id.clone(), row);
    writes.erased.insert(id.clone());
    commit(&store, &writes).await.unwrap();
    store.close().await.unwrap();
    let mut conn = direct(&folder).await;
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut conn).await.unwrap();
    sqlx::Connection::close(conn).await.unwrap();
    assert!(!bytes_hold(&folder, SECRET));
    assert_eq!(folder.open().await.base(&id).await.unwrap().unwrap().data, b"");
}

fn bytes_hold(folder: &Folder, text: &str) -> bool {
    let files = std::fs::read_dir(&folder.0).unwrap();
    files
        .map(|f| std::fs::read(f.unwrap().path()).unwrap())
        .any(|b| b.windows(text.len()).any(|w| w == text.as_bytes()))
}
