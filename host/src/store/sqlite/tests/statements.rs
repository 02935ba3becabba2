//! How many statements a batch takes, and how fast it is.

use std::sync::atomic::Ordering;
use std::time::Instant;

use seqgate_decide::world::{Need, World};

use super::super::SqliteStore;
use super::support::*;
use crate::store::{Commit, Store as _, Wants};

/// Commits a typical batch under a fence; gives the statements of its load and of its commit.
async fn batch(store: &SqliteStore, epoch: u64, from: u64, n: u64, entities: u64) -> (u64, u64) {
    let (writes, guards) = typical(from, n, entities);
    let needs = guards
        .keys()
        .map(|id| Need::Entity(id.clone()))
        .chain(writes.inbox.keys().map(|key| Need::Inbox(key.clone())))
        .chain(guards.keys().map(|id| Need::History(id.clone(), 1)));
    let wants: Wants = needs.collect();
    let mut world = World::new();
    let before = store.statements.load(Ordering::Relaxed);
    store.load(&wants, &mut world).await.unwrap();
    let loaded = store.statements.load(Ordering::Relaxed);
    let activations = [("orders".into(), 0)].into();
    let fence = Some(fence(epoch, from, from + n));
    store.commit(&Commit { guards, activations, fence, ..Commit::new(&writes, 100) }).await.unwrap();
    let committed = store.statements.load(Ordering::Relaxed);
    (loaded - before, committed - loaded)
}

/// G2: one transaction with a fixed number of statements.
#[tokio::test]
async fn a_batch_takes_the_same_statements_whatever_its_size() {
    let folder = Folder::new();
    let store = folder.open().await;
    let epoch = store.acquire("file", 3, "me").await.unwrap().epoch;
    let one = batch(&store, epoch, 0, 1, u64::MAX).await;
    let many = batch(&store, epoch, 1, 512, u64::MAX).await;
    assert_eq!(one, many);
    assert!(one.0 <= 8 && one.1 <= 8, "{one:?}");
}

/// Figures: `cargo test --release … throughput -- --ignored --nocapture`.
#[tokio::test]
#[ignore = "a measurement"]
async fn throughput() {
    for (size, entities) in [(1, u64::MAX), (16, u64::MAX), (128, u64::MAX), (512, u64::MAX), (512, 20_480)] {
        let folder = Folder::new();
        let store = folder.open().await;
        let epoch = store.acquire("file", 3, "me").await.unwrap().epoch;
        let batches = if size == 1 { 2000 } else { 60_000 / size };
        let mut from = 0;
        for _ in 0..4 {
            batch(&store, epoch, from, size, entities).await;
            from += size;
        }
        let (mut loading, mut committing) = (0.0, 0.0);
        let start = Instant::now();
        let mut prepared = 0.0;
        for _ in 0..batches {
            let begun = Instant::now();
            let (writes, guards) = typical(from, size, entities);
            let wants: Wants = guards
                .keys()
                .map(|id| Need::Entity(id.clone()))
                .chain(writes.inbox.keys().map(|key| Need::Inbox(key.clone())))
                .chain(guards.keys().map(|id| Need::History(id.clone(), 1)))
                .collect();
            prepared += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            let mut world = World::new();
            store.load(&wants, &mut world).await.unwrap();
            loading += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            let fence = Some(fence(epoch, from, from + size));
            store.commit(&Commit { guards, fence, ..Commit::new(&writes, 100) }).await.unwrap();
            committing += begun.elapsed().as_secs_f64();
            from += size;
        }
        let events = (batches * size) as f64;
        println!(
            "batch {size} over {entities} entities: {:.0} events/s with load, {:.0} commit only, {:.0} load only ({:.1} s in all, {:.1} s making rows)",
            events / (loading + committing),
            events / committing,
            events / loading,
            start.elapsed().as_secs_f64(),
            prepared
        );
    }
}
