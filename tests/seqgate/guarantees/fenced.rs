//! G5: once a partition has a new owner, nothing of its old owner commits.

use std::sync::Arc;

use seqgate::store::{self, Settings, Store};
use serde_json::json;

use crate::program::{Site, created, events, lines, machine, paid, until};
use crate::tables;

#[test]
fn the_old_owner_commits_nothing_and_exits_3() {
    let site = Site::new(&(machine("orders", "") + &events(1)));
    site.write(&lines(&[created("o1").v(1)]));
    let run = site.start(&["run"]);
    let database = site.path("seqgate.db");
    until("the first event was decided", || (database.exists() && tables::received(&database) == 1).then_some(()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let taken = runtime.block_on(async {
        let url = format!("sqlite:{}", database.display());
        let store: Arc<dyn Store> = store::open(&url, Settings::default()).await.unwrap();
        let taken = store.acquire("events", 0, "the new owner").await.unwrap();
        store.close().await.unwrap();
        taken
    });
    assert_eq!(taken.epoch, 2, "the first owner had epoch 1");
    site.append(&lines(&[paid("o1").v(2)]));
    let ended = run.wait().exits(3);
    assert!(ended.err.contains("no longer ours"), "{}", ended.err);
    assert_eq!(site.stands("orders", "o1"), ("pending".into(), 1, 1));
    assert_eq!(site.verdicts(), json!({"applied": 1}));
    // The next owner decides what the old one could not.
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("paid".into(), 2, 2));
}
