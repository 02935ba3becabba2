//! Reads for people.

use seqgate_decide::ids::{EntityId, Ref};
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::writes::{ConflictWrite, DeadStatus, InboxWrite, TimerWrite, Writes};

use super::super::SqliteStore;
use super::support::*;
use crate::store::views::*;
use crate::store::{Store as _, StoreError};

fn keys(items: &[EntitySummary]) -> Vec<&[u8]> {
    items.iter().map(|item| &*item.id.key).collect()
}

async fn filtered(store: &SqliteStore, filter: EntityFilter) -> Vec<EntitySummary> {
    let (mut all, mut page) = (Vec::new(), Page::first(2));
    loop {
        let part = store.entities(&filter, &page).await.unwrap();
        assert!(part.items.len() <= 2);
        all.extend(part.items);
        match part.next {
            Some(next) => page = Page::after(2, next),
            None => return all,
        }
    }
}

#[tokio::test]
async fn entities_by_machine_state_and_what_holds_them() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut writes = Writes::default();
    for (i, key) in [&b"a"[..], b"b", b"c", b"d", b"e", b"\xff"].into_iter().enumerate() {
        let mut row = entity(&id(key), 0, 1, 1);
        row.state = Some(if i % 2 == 0 { "paid".into() } else { "shipped".into() });
        writes.entities.insert(row.id.clone(), row);
    }
    let account = EntityId::new("accounts", *b"a");
    writes.entities.insert(account.clone(), entity(&account, 0, 1, 1));
    writes.touched.insert(id(b"only guarded"));
    let ghost = id(b"ghost");
    writes.entities.insert(ghost.clone(), entity_without_revision(&ghost));
    put_waiting(&mut writes, waiting(event_for(&ghost, "g", Some(5), b""), 0, DeferReason::Gap), Vec::new());
    // b: refused; c: its data cannot be read; d: a conflict at the next version; e: one that is not the next.
    put_dead(&mut writes, dead(event_for(&id(b"b"), "dead", Some(2), b""), true));
    put_waiting(&mut writes, waiting(event_for(&id(b"c"), "s", Some(2), b""), 0, DeferReason::Schema), Vec::new());
    let next = conflict(event_for(&id(b"d"), "c1", Some(2), b""));
    writes.conflicts.insert(Ref::of_conflict(&next.event.key, &next.event.digest), ConflictWrite::Put(next));
    let old = conflict(event_for(&id(b"e"), "c2", Some(1), b""));
    writes.conflicts.insert(Ref::of_conflict(&old.event.key, &old.event.digest), ConflictWrite::Put(old));
    commit(&store, &writes).await.unwrap();

    let all = filtered(&store, EntityFilter::default()).await;
    assert_eq!(keys(&all), [&b"a"[..], b"a", b"b", b"c", b"d", b"e", b"ghost", b"\xff"]);
    let orders = EntityFilter { machine: Some("orders".into()), ..EntityFilter::default() };
    assert_eq!(filtered(&store, orders.clone()).await.len(), 7);
    let shipped = EntityFilter { state: Some("shipped".into()), ..orders.clone() };
    assert_eq!(keys(&filtered(&store, shipped).await), [&b"b"[..], b"d", b"\xff"]);
    let any_paid = EntityFilter { state: Some("paid".into()), ..EntityFilter::default() };
    assert_eq!(keys(&filtered(&store, any_paid).await), [&b"a"[..], b"a", b"c", b"e"]);
    let blocked = filtered(&store, EntityFilter { blocked: true, ..EntityFilter::default() }).await;
    let why = |item: &EntitySummary| item.blocked.as_ref().map(|b| (b.by, b.version)).unwrap();
    assert_eq!(
        blocked.iter().map(why).collect::<Vec<_>>(),
        [(BlockedBy::DeadLetter, Some(2)), (BlockedBy::Schema, Some(2)), (BlockedBy::Conflict, Some(2))]
    );
    assert_eq!(keys(&blocked), [&b"b"[..], b"c", b"d"]);
    let of_orders = EntityFilter { blocked: true, state: Some("paid".into()), ..orders };
    assert_eq!(keys(&filtered(&store, of_orders).await), [b"c"]);
    assert_eq!(store.entity(&id(b"only guarded")).await.unwrap(), None);

    let status = store.status().await.unwrap();
    assert_eq!((status.entities, status.ghosts), (7, 1));
    assert_eq!(status.deferred, Stand { count: 2, oldest: Some(20) });
    assert_eq!(status.dead_letters, Stand { count: 1, oldest: Some(30) });
    assert_eq!(status.conflicts, Stand { count: 2, oldest: Some(40) });
    assert_eq!(status.outbox, Stand::default());
}

fn entity_without_revision(id: &EntityId) -> seqgate_decide::world::Entity {
    let mut row = seqgate_decide::world::Entity::absent(id.clone());
    row.arrivals = 1;
    row
}

/// R3.5: neither what waits nor what was refused is missing.
#[tokio::test]
async fn an_entity_whose_first_event_was_parked_is_there_and_blocked() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut writes = Writes::default();
    let parked = id(b"parked");
    writes.entities.insert(parked.clone(), entity_without_revision(&parked));
    put_dead(&mut writes, dead(event_for(&parked, "dead", Some(1), b""), true));
    commit(&store, &writes).await.unwrap();

    let blocked = filtered(&store, EntityFilter { blocked: true, ..EntityFilter::default() }).await;
    assert_eq!(keys(&blocked), [b"parked"]);
    assert_eq!(blocked[0].blocked.as_ref().map(|b| b.by), Some(BlockedBy::DeadLetter));
    let shown = store.entity(&parked).await.unwrap().unwrap().summary;
    assert_eq!((shown.revision, shown.state, shown.dead_letters), (0, None, 1));
}

#[tokio::test]
async fn gaps_are_what_never_came() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut writes = Writes::default();
    let mut at = |key: &[u8], version: u64, waits: &[(u64, Option<u64>)], refused: Option<u64>| {
        let id = id(key);
        writes.entities.insert(id.clone(), entity(&id, 0, version, 1));
        for (i, (version, previous)) in waits.iter().enumerate() {
            let mut event = event_for(&id, &format!("{key:?} {version}"), Some(*version), b"");
            event.previous = *previous;
            let reason = if refused.is_some() { DeferReason::Blocked } else { DeferReason::Gap };
            put_waiting(&mut writes, waiting(event, i as u64, reason), Vec::new());
        }
        if let Some(version) = refused {
            put_dead(&mut writes, dead(event_for(&id, &format!("{key:?} dead"), Some(version), b""), true));
        }
    };
    at(b"a", 1, &[(3, None), (4, None), (7, None)], None);
    at(b"b", 1, &[(3, None), (4, None), (9, None)], Some(2));
    at(b"c", 10, &[(15, Some(12)), (u64::MAX, None)], None);
    at(b"d", 0, &[(2, None)], None);
    commit(&store, &writes).await.unwrap();
    let (mut found, mut page) = (Vec::new(), Page::first(1));
    loop {
        let part = store.gaps(Some("orders"), &page).await.unwrap();
        found.extend(part.items);
        let Some(next) = part.next else { break };
        page = Page::after(1, next);
    }
    let ranges: Vec<_> = found.iter().map(|g| (&*g.entity.key, g.version, g.from, g.to)).collect();
    assert_eq!(
        ranges,
        [
            (&b"a"[..], 1, 2, 2),
            (b"a", 1, 5, 6),
            (b"b", 1, 5, 8),
            (b"c", 10, 11, 12),
            (b"c", 10, 16, u64::MAX - 1),
            (b"d", 0, 1, 1)
        ]
    );
    assert_eq!(store.gaps(None, &Page::first(99)).await.unwrap().items, found);
    assert!(store.gaps(Some("accounts"), &Page::first(9)).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn waiting_events_dead_letters_and_messages_by_filter() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut writes = Writes::default();
    for i in 0..5_u64 {
        let key = id(&[b'a' + (i % 2) as u8]);
        let reason = if i < 3 { DeferReason::Gap } else { DeferReason::Early };
        let mut row = waiting(event_for(&key, &format!("w{i}"), Some(10 - i), b""), i, reason);
        row.since = 100 - i as i64;
        put_waiting(&mut writes, row, Vec::new());
        let mut row = dead(event_for(&key, &format!("d{i}"), Some(20 + i), b""), false);
        row.status = if i == 0 { DeadStatus::Skipped } else { DeadStatus::Open };
        row.class = if i < 2 { Verdict::Fault } else { Verdict::Illegal };
        row.since = i as i64;
        put_dead(&mut writes, row);
        writes.outbox.push(message(&key, i, 0));
    }
    commit(&store, &writes).await.unwrap();

    let ids = |part: Listing<seqgate_decide::world::Waiting>| {
        part.items.iter().map(|w| w.event.key.id.to_string()).collect::<Vec<_>>()
    };
    let all = Page::first(99);
    assert_eq!(ids(store.deferred(&DeferredFilter::default(), &all).await.unwrap()), ["w4", "w3", "w2", "w1", "w0"]);
    let gaps = DeferredFilter { reason: Some(DeferReason::Gap), ..DeferredFilter::default() };
    let part = store.deferred(&gaps, &Page::first(2)).await.unwrap();
    let rest = store.deferred(&gaps, &Page::after(2, part.next.clone().unwrap())).await.unwrap();
    assert_eq!((ids(part), ids(rest)), (vec!["w2".into(), "w1".into()], vec!["w0".into()]));
    let of_a = DeferredFilter { entity: Some(id(b"a")), ..DeferredFilter::default() };
    let part = store.deferred(&of_a, &Page::first(2)).await.unwrap();
    let rest = store.deferred(&of_a, &Page::after(2, part.next.clone().unwrap())).await.unwrap();
    assert_eq!((ids(part), ids(rest)), (vec!["w4".into(), "w2".into()], vec!["w0".into()]), "by version");
    let none = DeferredFilter { machine: Some("accounts".into()), ..gaps };
    assert!(store.deferred(&none, &all).await.unwrap().items.is_empty());

    let dead = async |filter: DeadFilter| {
        let part = store.dead_letters(&filter, &Page::first(99)).await.unwrap();
        part.items.iter().map(|d| d.since).collect::<Vec<_>>()
    };
    assert_eq!(dead(DeadFilter::default()).await, [0, 1, 2, 3, 4]);
    let open = DeadFilter { status: Some(DeadStatus::Open), ..DeadFilter::default() };
    assert_eq!(dead(open.clone()).await, [1, 2, 3, 4]);
    assert_eq!(dead(DeadFilter { class: Some(Verdict::Fault), machine: Some("orders".into()), ..open }).await, [1]);
    assert_eq!(dead(DeadFilter { machine: Some("accounts".into()), ..DeadFilter::default() }).await, [] as [i64; 0]);

    let pending = OutboxFilter { machine: Some("orders".into()), status: Some(OutboxStatus::Pending) };
    let part = store.outbox(&pending, &Page::first(3)).await.unwrap();
    let rest = store.outbox(&pending, &Page::after(3, part.next.unwrap())).await.unwrap();
    assert_eq!((part.items.len(), rest.items.len(), rest.next), (3, 2, None));
    let sent = OutboxFilter { status: Some(OutboxStatus::Sent), ..OutboxFilter::default() };
    assert!(store.outbox(&sent, &all).await.unwrap().items.is_empty());
    let bad = store.outbox(&sent, &Page::after(1, "no cursor")).await.unwrap_err();
    assert!(matches!(bad, StoreError::Cursor), "{bad}");
}

/// G6: an event is found by its id, with where its content stands.
#[tokio::test]
async fn an_event_is_found_by_its_id() {
    let folder = Folder::new();
    let store = folder.open().await;
    let orders = id(b"o1");
    let accounts = EntityId::new("accounts", *b"a1");
    let mut writes = Writes::default();
    let applied = event_for(&orders, "same", Some(1), b"");
    let unnumbered = event_for(&accounts, "same", None, b"");
    let waits = event_for(&orders, "waits", Some(3), b"");
    for event in [&applied, &unnumbered, &waits] {
        writes.inbox.insert(event.key.clone(), InboxWrite::Insert(inbox(event, Verdict::Applied, 0)));
    }
    writes.history.push(history(&orders, 1, 1, Some(applied)));
    writes.history.push(history(&accounts, 4, 9, Some(unnumbered)));
    put_waiting(&mut writes, waiting(waits.clone(), 0, DeferReason::Gap), Vec::new());
    commit(&store, &writes).await.unwrap();
    let found = store.events("same").await.unwrap();
    assert_eq!(found.len(), 2);
    assert!(matches!(found[0].standing[..], [Standing::History { revision: 4, version: 9, .. }]), "{:?}", found[0]);
    assert!(matches!(found[1].standing[..], [Standing::History { revision: 1, version: 1, .. }]), "{:?}", found[1]);
    let found = store.events("waits").await.unwrap();
    let expected = Standing::Waiting { id: Ref::of_event(&waits.key), reason: DeferReason::Gap, since: 20 };
    assert_eq!(found[0].standing, [expected]);
    assert!(store.events("unknown").await.unwrap().is_empty());
    assert_eq!(store.deferred_one(Ref::of_event(&waits.key)).await.unwrap().unwrap().event.key, waits.key);
}

/// R6: a timer waits for its entity's waiting events and for what blocks it.
#[tokio::test]
async fn due_timers_of_entities_that_are_free() {
    let folder = Folder::new();
    let store = folder.open().await;
    let mut writes = Writes::default();
    for (key, due) in [(b"a", 5), (b"b", 4), (b"c", 3), (b"d", 6), (b"e", 2)] {
        let put = TimerWrite::Put { due, revision: 1 };
        writes.timers.insert((id(key), "t".into()), put);
    }
    put_waiting(&mut writes, waiting(event_for(&id(b"b"), "w", Some(3), b""), 0, DeferReason::Gap), Vec::new());
    put_dead(&mut writes, dead(event_for(&id(b"c"), "d", Some(3), b""), true));
    put_dead(&mut writes, dead(event_for(&id(b"e"), "e", Some(3), b""), false));
    let mut early = waiting(event_for(&id(b"x"), "early", None, b""), 0, DeferReason::Early);
    early.deadline = Some(5);
    put_waiting(&mut writes, early.clone(), Vec::new());
    commit(&store, &writes).await.unwrap();
    let due = store.due_timers(5, 9).await.unwrap();
    assert_eq!(due.iter().map(|t| (&*t.entity.key, t.due)).collect::<Vec<_>>(), [(&b"e"[..], 2), (b"a", 5)]);
    assert_eq!(store.due_timers(5, 1).await.unwrap().len(), 1);
    assert!(store.overdue_early(4, 9).await.unwrap().is_empty());
    let overdue = store.overdue_early(5, 9).await.unwrap();
    assert_eq!((overdue.len(), overdue[0].event), (1, early.id()));
    let pending = store.timers(Some("orders"), &Page::first(3)).await.unwrap();
    let rest = store.timers(Some("orders"), &Page::after(3, pending.next.unwrap())).await.unwrap();
    let dues: Vec<_> = pending.items.iter().chain(&rest.items).map(|t| t.due).collect();
    assert_eq!(dues, [2, 3, 4, 5, 6]);
}
