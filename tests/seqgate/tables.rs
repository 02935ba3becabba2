//! What stands in a database, read through the store itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use seqgate::store::views::{DeadFilter, DeferredFilter, EntityFilter, Listing, OutboxFilter, Page};
use seqgate::store::{self, Pending, Settings, Store};
use seqgate_decide::ids::EntityId;
use seqgate_decide::writes::HistoryRow;
use seqgate_model as model;

use crate::program::Site;
use crate::sim::{memory, names};
use crate::stream::Stream;

/// Everything that has to be the same, however often the process died.
pub struct Tables {
    /// In the oracle's words.
    pub observed: model::Observed,
    /// Each entity's revisions.
    pub history: BTreeMap<EntityId, Vec<HistoryRow>>,
}

/// Reads all of it.
fn read(database: &Path, ids: impl IntoIterator<Item = String>) -> Tables {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(database).await;
        let mut tables = Tables { observed: model::Observed::default(), history: BTreeMap::new() };
        entities(&*store, &mut tables).await;
        refusals(&*store, &mut tables.observed).await;
        for id in ids {
            for item in store.events(&id).await.unwrap() {
                let view = model::InboxView { verdict: names::verdict(item.verdict), deliveries: item.deliveries };
                tables.observed.inbox.insert(names::model_event(&item.key), view);
            }
        }
        for item in store.partitions().await.unwrap() {
            for (verdict, n) in item.verdicts.into_iter().filter(|(_, n)| *n > 0) {
                tables.observed.counters.insert((item.source.to_string(), item.partition, names::verdict(verdict)), n);
            }
        }
        store.close().await.unwrap();
        tables
    })
}

/// Reads what a site made of a stream.
pub fn of(site: &Site, stream: &Stream) -> Tables {
    read(&site.path("seqgate.db"), stream.ids())
}

impl Tables {
    /// What holds whatever was killed: revisions and consumed versions without a hole or a repetition, every id once.
    pub fn sound(&self) {
        let mut ids = BTreeSet::new();
        for (entity, rows) in &self.history {
            for (n, row) in (1..).zip(rows) {
                assert_eq!(row.revision, n, "{entity:?}: revisions are consecutive");
                assert_eq!(row.consumed, Some(n), "{entity:?}: versions are consumed one after the other");
                let event = row.event.as_ref().expect("these streams have events only");
                assert!(ids.insert(event.key.clone()), "{:?} has two revisions", event.key);
            }
            for pair in rows.windows(2) {
                assert_eq!(
                    pair[0].next_state, pair[1].previous_state,
                    "{entity:?}: a change begins where the last ended"
                );
            }
        }
    }

    /// The same revisions made by the same events with the same bytes and effects.
    pub fn same_history(&self, other: &Self) {
        assert_eq!(self.history.keys().collect::<Vec<_>>(), other.history.keys().collect::<Vec<_>>());
        let seen = |row: &HistoryRow| {
            let event = row.event.as_ref().map(|e| (e.key.id.clone(), e.digest));
            (event, row.cause, row.next_state.clone(), row.data_digest, row.effects_digest, row.rules)
        };
        for (entity, rows) in &self.history {
            let [a, b] = [rows, &other.history[entity]].map(|rows| rows.iter().map(seen).collect::<Vec<_>>());
            assert_eq!(a, b, "{entity:?}");
        }
    }
}

/// How many deliveries were committed so far; none while the database is being made.
pub fn received(database: &Path) -> u64 {
    if !database.exists() {
        return 0;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Ok(store) = store::open(&url(database), Settings::default()).await else { return 0 };
        let received = store.status().await.map_or(0, |status| status.received);
        store.close().await.unwrap();
        received
    })
}

async fn open(database: &Path) -> Arc<dyn Store> {
    store::open(&url(database), Settings::default()).await.unwrap()
}

fn url(database: &Path) -> String {
    format!("sqlite:{}", database.display())
}

async fn all<'a, T>(mut list: impl FnMut(&'a Page) -> Pending<'a, Listing<T>>) -> Vec<T> {
    // One page holds everything that these tests make.
    static ONE: std::sync::OnceLock<Page> = std::sync::OnceLock::new();
    let listing = list(ONE.get_or_init(|| Page::first(100_000))).await.unwrap();
    assert_eq!(listing.next, None);
    listing.items
}

async fn entities(store: &dyn Store, tables: &mut Tables) {
    let filter = EntityFilter::default();
    for summary in all(|page| store.entities(&filter, page)).await {
        let id = summary.id;
        tables.history.insert(id.clone(), all(|page| store.history(&id, page)).await);
        let Some(detail) = store.entity(&id).await.unwrap().filter(|e| e.summary.revision > 0) else { continue };
        let view = model::EntityView {
            state: detail.summary.state.as_deref().map(str::to_owned),
            version: detail.summary.version,
            revision: detail.summary.revision,
            seen: detail.seen.iter().map(ToString::to_string).collect(),
            data: model::facts(&id.machine, &detail.data),
            timers: detail.timers.iter().map(|(name, due)| (name.to_string(), *due)).collect(),
        };
        tables.observed.entities.insert(names::model_entity(&id), view);
    }
    let filter = OutboxFilter::default();
    for item in all(|page| store.outbox(&filter, page)).await {
        let messages = tables.observed.outbox.entry(names::model_entity(&item.row.entity)).or_default();
        let (revision, index, kind) = (item.row.revision, item.row.index, item.row.kind);
        messages.push(model::MessageView { revision, index, topic: None, kind });
    }
}

async fn refusals(store: &dyn Store, observed: &mut model::Observed) {
    let filter = DeferredFilter::default();
    for row in all(|page| store.deferred(&filter, page)).await {
        let (entity, reason) = (names::model_entity(&row.event.entity), names::reason(row.reason));
        observed.waiting.insert(names::model_event(&row.event.key), model::WaitingView { entity, reason });
    }
    let filter = DeadFilter::default();
    for item in all(|page| store.dead_letters(&filter, page)).await {
        let row = store.dead_letter(item.id).await.unwrap().unwrap().row;
        let id = model::LetterId { subject: memory::subject(&row), nth: 0 };
        let twice = observed.letters.insert(id, memory::letter_view(&row));
        assert_eq!(twice, None, "a subject has one dead letter in these streams");
    }
    let mut conflicts: BTreeMap<model::EventId, u32> = BTreeMap::new();
    for item in all(|page| store.conflicts(None, false, page)).await {
        let event = names::model_event(&item.key);
        let nth = conflicts.entry(event.clone()).or_default();
        let view = model::ConflictView {
            entity: names::model_entity(&item.entity),
            version: item.version,
            reason: names::conflict(&item.code),
            copies: item.copies,
            status: model::ConflictStatus::Open,
        };
        observed.conflicts.insert(model::ConflictId { event, nth: *nth }, view);
        *nth += 1;
    }
}
