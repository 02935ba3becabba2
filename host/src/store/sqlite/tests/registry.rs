//! Components, activations, partitions, sources.

use seqgate_decide::verdict::Verdict;
use seqgate_decide::writes::Writes;

use super::support::*;
use crate::store::registry::RulesRecord;
use crate::store::views::Page;
use crate::store::{Commit, Registry as _, SourceIdentity, Store as _, StoreError, Views as _};

fn component(text: &str, machine: &str, at: i64) -> RulesRecord {
    RulesRecord {
        digest: digest_of(text),
        machine: machine.into(),
        description: format!("{{\"name\":\"{machine}\"}}"),
        size: text.len() as u64,
        actor: "ada".into(),
        at,
    }
}

#[tokio::test]
async fn components_are_kept_and_put_in_force() {
    let folder = Folder::new();
    let store = folder.open().await;
    let (first, second) = (component("one", "orders", 1), component("two", "orders", 2));
    assert!(store.put_rules(&first, b"one").await.unwrap());
    assert!(!store.put_rules(&first, b"one").await.unwrap(), "registering twice is no error");
    store.put_rules(&second, b"two").await.unwrap();
    store.put_rules(&component("three", "accounts", 3), b"three").await.unwrap();
    assert_eq!(store.rules(first.digest).await.unwrap(), Some((first.clone(), b"one".to_vec())));
    let page = store.list_rules(Some("orders"), &Page::first(1)).await.unwrap();
    assert_eq!(page.items, std::slice::from_ref(&second));
    let rest = store.list_rules(Some("orders"), &Page::after(1, page.next.unwrap())).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![first.clone()], None));
    assert_eq!(store.list_rules(None, &Page::first(9)).await.unwrap().items.len(), 3);

    assert_eq!(store.active("orders").await.unwrap(), None);
    assert_eq!(store.activate("orders", first.digest, "ada", "start", 5).await.unwrap(), 1);
    assert_eq!(store.activate("orders", second.digest, "ada", "better", 6).await.unwrap(), 2);
    assert_eq!(store.activate("orders", first.digest, "bob", "rollback", 7).await.unwrap(), 3);
    assert_eq!(store.active("orders").await.unwrap(), Some((3, first.digest)));
    let all = store.activations("orders").await.unwrap();
    assert_eq!(
        all.iter().map(|a| (a.number, a.reason.as_str())).collect::<Vec<_>>(),
        [(3, "rollback"), (2, "better"), (1, "start")]
    );
    let other = store.activate("accounts", first.digest, "ada", "", 8).await.unwrap_err();
    assert!(matches!(other, StoreError::OtherMachine { .. }), "{other}");
    let missing = store.activate("orders", digest_of("none"), "ada", "", 8).await.unwrap_err();
    assert!(matches!(missing, StoreError::NoSuchRules(_)), "{missing}");
}

/// R8: the first batch under an activation is recorded, once.
#[tokio::test]
async fn a_partitions_switch_is_its_first_batch() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.acquire("file", 3, "me").await.unwrap();
    let none = Writes::default();
    for (expected, next) in [(0, 10), (10, 20)] {
        let switches = [("orders".into(), 1)].into();
        let fence = Some(fence(1, expected, next));
        store.commit(&Commit { fence, switches, ..Commit::new(&none, 1) }).await.unwrap();
    }
    let found = store.switches("orders").await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].number, found[0].partition, found[0].offset), (1, 3, 0));
}

#[tokio::test]
async fn a_source_keeps_its_number_of_partitions_and_its_file() {
    let folder = Folder::new();
    let store = folder.open().await;
    let identity = SourceIdentity { device: u64::MAX, inode: 1 << 63, digest: digest_of("head"), head: 4096 };
    assert_eq!(store.source_identity("file").await.unwrap(), None);
    store.put_source_identity("file", &identity).await.unwrap();
    store.fix_partitions("file", 4).await.unwrap();
    store.fix_partitions("file", 4).await.unwrap();
    let error = store.fix_partitions("file", 8).await.unwrap_err();
    assert!(matches!(error, StoreError::Partitions { stored: 4, configured: 8, .. }), "{error}");
    assert_eq!(store.source_identity("file").await.unwrap(), Some(identity));
}

/// G6: received is the sum over the verdicts, before and after moves are folded.
#[tokio::test]
async fn counters_add_up_whoever_counts() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.acquire("file", 3, "me").await.unwrap();
    let mut writes = Writes::default();
    writes.counts.insert(("file".into(), 3, Verdict::Applied), 6);
    writes.counts.insert(("file".into(), 3, Verdict::Deferred), 4);
    let fence = Some(fence(1, 0, 10));
    store.commit(&Commit { fence, ..Commit::new(&writes, 1) }).await.unwrap();
    let mut later = Writes::default();
    later.moves.insert(("file".into(), 3, Verdict::Deferred, Verdict::Applied), 1);
    later.counts.insert(("repair:orders".into(), 0, Verdict::Applied), 2);
    for _ in 0..3 {
        commit(&store, &later).await.unwrap();
    }
    let before = store.partitions().await.unwrap();
    let (mine, repair) = (&before[0], &before[1]);
    assert_eq!((mine.received, &mine.verdicts), (10, &[(Verdict::Applied, 9), (Verdict::Deferred, 1)].into()));
    assert_eq!((repair.received, &repair.verdicts), (6, &[(Verdict::Applied, 6)].into()));
    assert_eq!((repair.epoch, &repair.owner), (0, &None));
    let status = store.status().await.unwrap();
    assert_eq!((status.received, status.verdicts.values().sum::<u64>()), (16, 16));
    store.compact_moves().await.unwrap();
    store.compact_moves().await.unwrap();
    assert_eq!(store.partitions().await.unwrap(), before);
    let rows: (i64,) = sqlx::query_as("SELECT count(*) FROM verdict_moves").fetch_one(&store.readers).await.unwrap();
    assert_eq!(rows.0, 2);
}
