//! Files that go when the test ends, and rows to put in them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seqgate_decide::digest;
use seqgate_decide::event::Event;
use seqgate_decide::ids::{Digest, EntityId, EventKey, Position, Ref};
use seqgate_decide::rules::Dependency;
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::world::{DeadKind, Entity, Need, Waiting, World};
use seqgate_decide::writes::{
    Actor, Cause, ConflictRow, DeadRow, DeadStatus, DeadWrite, HistoryRow, InboxRow, InboxWrite, OutboxRow, RulesRef,
    WaitingWrite, Writes,
};

use super::super::SqliteStore;
use crate::store::{Commit, Faults, Fence, Settings, Store as _, StoreError, Wants};

/// A folder of its own.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("seqgate-store-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.0.join("test.db")
    }

    pub(super) fn url(&self) -> String {
        format!("sqlite:{}", self.file().display())
    }

    pub(super) async fn open(&self) -> SqliteStore {
        self.open_with(Faults::none()).await
    }

    pub(super) async fn open_with(&self, faults: Faults) -> SqliteStore {
        SqliteStore::open(&self.url(), Settings { faults, ..Settings::default() }).await.unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn id(key: &[u8]) -> EntityId {
    EntityId::new("orders", key)
}

pub(super) fn event_for(entity: &EntityId, event_id: &str, version: Option<u64>, data: &[u8]) -> Event {
    let (digest, value_digest) = digest::of_content(entity, "order.paid", version, None, data);
    Event {
        key: EventKey { machine: entity.machine.clone(), source: "shop".into(), id: event_id.into() },
        entity: entity.clone(),
        kind: "order.paid".into(),
        version,
        previous: None,
        time: 1_700_000_000_000,
        idempotency_key: None,
        depends_on: Vec::new(),
        logical_time: None,
        content_type: None,
        attributes: Vec::new(),
        data: data.into(),
        digest,
        value_digest,
    }
}

/// Every optional part of an event, at the ends of its range.
pub(super) fn full_event(entity: &EntityId, event_id: &str) -> Event {
    let mut event = event_for(entity, event_id, Some(u64::MAX), b"{\"a\":\"\\u0000\"}\0\xff\xfe");
    event.previous = Some(0);
    event.time = i64::MIN;
    event.idempotency_key = Some("pay:order:1".into());
    event.depends_on = Event::parse_depends_on("order.created,orders/a%2Fb@18446744073709551615").unwrap();
    event.logical_time = Some(u64::MAX);
    event.content_type = Some("application/json".into());
    event.attributes = vec![("correlationid".into(), "c \"quoted\" ü".into()), ("x".into(), String::new())];
    event.value_digest = digest::of_bytes(b"another");
    event
}

pub(super) fn position(offset: u64) -> Position {
    Position { source: "file".into(), partition: 3, offset }
}

pub(super) fn rules() -> RulesRef {
    RulesRef { activation: 7, digest: digest::of_bytes(b"rules") }
}

pub(super) fn actor() -> Actor {
    Actor { name: "ada".into(), reason: "because".into() }
}

pub(super) fn entity(id: &EntityId, row_version: u64, version: u64, revision: u64) -> Entity {
    let mut entity = Entity::absent(id.clone());
    entity.row_version = row_version;
    entity.version = version;
    entity.revision = revision;
    entity.state = Some("paid".into());
    entity.entered = 5;
    entity.schema = 2;
    entity.data = (*b"{\"total\":1}").into();
    entity.rules = Some(rules().digest);
    entity
}

pub(super) fn history(entity: &EntityId, revision: u64, version: u64, event: Option<Event>) -> HistoryRow {
    HistoryRow {
        entity: entity.clone(),
        revision,
        version,
        consumed: event.is_some().then_some(version),
        cause: Cause::Event,
        event: event.map(Arc::new),
        timer: None,
        time: 10,
        decided_at: 11,
        previous_state: None,
        next_state: Some("paid".into()),
        data_digest: digest::of_bytes(b"data"),
        effects_digest: digest::of_bytes(b"effects"),
        schema: 2,
        rules: rules(),
        code: None,
        notes: Vec::new(),
        by: None,
    }
}

pub(super) fn inbox(event: &Event, verdict: Verdict, offset: u64) -> InboxRow {
    InboxRow {
        entity: event.entity.clone(),
        kind: event.kind.clone(),
        version: event.version,
        digest: event.digest,
        value_digest: event.value_digest,
        verdict,
        reason: None,
        first: Some(position(offset)),
        last: Some(position(offset)),
        deliveries: 1,
        received: 12,
    }
}

pub(super) fn waiting(event: Event, arrival: u64, reason: DeferReason) -> Waiting {
    Waiting {
        event: Arc::new(event),
        arrival,
        reason,
        named: Vec::new(),
        since: 20,
        deadline: None,
        ready: false,
        position: position(arrival),
    }
}

pub(super) fn put_waiting(writes: &mut Writes, row: Waiting, waits_for: Vec<Dependency>) {
    writes.waiting.insert((row.event.entity.clone(), row.id()), WaitingWrite::Put { row, waits_for });
}

pub(super) fn dead(event: Event, blocks: bool) -> DeadRow {
    DeadRow {
        kind: DeadKind::Event,
        class: Verdict::Illegal,
        code: "wrong-state".into(),
        message: "it is paid".into(),
        entity: Some(event.entity.clone()),
        event: Some(Arc::new(event)),
        raw: None,
        position: Some(position(4)),
        timer: None,
        blocks,
        status: DeadStatus::Open,
        attempts: 1,
        since: 30,
        rules: Some(rules()),
        by: None,
        replaced_by: None,
    }
}

pub(super) fn put_dead(writes: &mut Writes, row: DeadRow) -> Ref {
    let id = Ref::of_event(&row.event.as_ref().unwrap().key);
    writes.dead.insert(id, DeadWrite::Put(row));
    id
}

pub(super) fn conflict(event: Event) -> ConflictRow {
    ConflictRow {
        event: Arc::new(event),
        code: "version",
        message: "two writers".into(),
        copies: 1,
        dismissed: None,
        since: 40,
        position: Some(position(5)),
    }
}

pub(super) fn message(entity: &EntityId, revision: u64, index: u32) -> OutboxRow {
    OutboxRow {
        entity: entity.clone(),
        revision,
        index,
        topic: "fulfilment".into(),
        kind: "fulfilment.requested".into(),
        key: Some(b"\0\xff".to_vec()),
        content_type: "application/json".into(),
        attributes: vec![("a".into(), "b".into())],
        data: b"{}".to_vec(),
        entity_version: Some(1),
        cause: Some(EventKey { machine: entity.machine.clone(), source: "shop".into(), id: "e".into() }),
        correlation_id: Some("c".into()),
        created: 50,
    }
}

/// `n` typical events from `from` on, each with its entity's row, a revision and an inbox row, over so many entities.
pub(super) fn typical(from: u64, n: u64, entities: u64) -> (Writes, BTreeMap<EntityId, u64>) {
    let mut writes = Writes::default();
    let mut guards = BTreeMap::new();
    for i in from..from + n {
        // Keys come in no order, as hashes of orders do.
        let scattered = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let id = id(format!("order-{:016x}", scattered(i % entities)).as_bytes());
        let version = i / entities + 1;
        let event = event_for(&id, &format!("{:016x}-4c1f-b5b0-{i:012}", scattered(i)), Some(version), &[b'x'; 300]);
        writes.entities.insert(id.clone(), entity(&id, version - 1, version, version));
        writes.inbox.insert(event.key.clone(), InboxWrite::Insert(inbox(&event, Verdict::Applied, i)));
        writes.history.push(history(&id, version, version, Some(event)));
        guards.insert(id, version - 1);
    }
    writes.counts.insert(("file".into(), 3, Verdict::Applied), n);
    (writes, guards)
}

pub(super) fn fence(epoch: u64, expected: u64, next: u64) -> Fence {
    Fence { source: "file".into(), partition: 3, epoch, expected, next, received: (next - expected).min(1 << 40) }
}

pub(super) async fn commit(store: &SqliteStore, writes: &Writes) -> Result<(), StoreError> {
    store.commit(&Commit::new(writes, 100)).await
}

pub(super) async fn load(store: &SqliteStore, needs: impl IntoIterator<Item = Need>) -> World {
    let mut world = World::new();
    store.load(&needs.into_iter().collect::<Wants>(), &mut world).await.unwrap();
    world
}

pub(super) async fn load_entity(store: &SqliteStore, id: &EntityId) -> Entity {
    load(store, [Need::Entity(id.clone())]).await.get(id).unwrap().clone()
}

pub(super) fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    items.into_iter().collect()
}

pub(super) fn digest_of(text: &str) -> Digest {
    digest::of_bytes(text.as_bytes())
}
