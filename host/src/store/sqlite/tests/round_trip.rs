//! What was committed is what `load` and the views give back.

use std::sync::Arc;

use seqgate_decide::ids::{EntityId, EventKey, Ref};
use seqgate_decide::rules::Dependency;
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::world::{ConflictEntry, Consumed, DeadKind, InboxEntry, Intent, Need, Waiter, World};
use seqgate_decide::writes::{
    AlarmKind, AlarmWrite, AuditRow, Cause, ConflictWrite, DeadRow, DeadStatus, DeadUpdate, DeadWrite, InboxWrite,
    TimerWrite, WaitingWrite, Writes,
};

use super::support::*;
use crate::store::views::Page;
use crate::store::{Store as _, Views as _, Wants};

/// Keys are bytes: NUL, no UTF-8, the longest.
#[tokio::test]
async fn entities_with_all_that_stands_around_them() {
    let folder = Folder::new();
    let store = folder.open().await;
    for key in [&b"\0"[..], b"\xff\xfe\0\xff", &[b'k'; 512], "Z\u{fc}rich'\"".as_bytes()] {
        let id = id(key);
        let target = EntityId::new("accounts", *b"\0\xff");
        let mut whole = entity(&id, 0, u64::MAX, 3);
        whole.seen = set(["order.created".into(), "order.paid".into()]);
        whole.pruned_through = u64::MAX - 1;
        whole.arrivals = 2;
        whole.emitted = [(Arc::from("topic \"x\""), 4)].into();
        whole.timers = [(Arc::from("payment-timeout"), i64::MAX)].into();
        let name = String::from_utf8_lossy(key).into_owned();
        let needs = Dependency { entity: target.clone(), version: u64::MAX };
        let mut late = waiting(full_event(&id, &format!("late {name}")), 1, DeferReason::Waiting);
        late.named = vec![needs.clone()];
        late.deadline = Some(77);
        late.ready = true;
        let early = waiting(event_for(&id, &format!("early {name}"), None, b""), 0, DeferReason::Early);
        whole.waiting = vec![early.clone(), late.clone()];
        let mut writes = Writes::default();
        let refused = dead(full_event(&id, &format!("dead {name}")), true);
        let dead_id = put_dead(&mut writes, refused.clone());
        whole.dead = vec![seqgate_decide::world::DeadEntry {
            id: dead_id,
            kind: DeadKind::Event,
            blocks: true,
            class: Verdict::Illegal,
            reason: seqgate_decide::rules::Reason::new(refused.code.clone(), refused.message.clone()),
            event: refused.event.clone(),
            position: refused.position.clone(),
            attempts: 1,
            timer: None,
        }];
        writes.entities.insert(id.clone(), whole.clone());
        put_waiting(&mut writes, late.clone(), vec![needs.clone(), needs]);
        put_waiting(&mut writes, early, Vec::new());
        let due = TimerWrite::Put { due: i64::MAX, revision: 3 };
        writes.timers.insert((id.clone(), "payment-timeout".into()), due);
        commit(&store, &writes).await.unwrap();

        whole.row_version = 1;
        assert_eq!(load_entity(&store, &id).await, whole);
        let waiter = Waiter { entity: id.clone(), event: late.id(), version: u64::MAX };
        assert!(load_entity(&store, &target).await.waiters.contains(&waiter), "absent targets have waiters too");
        let detail = store.entity(&id).await.unwrap().unwrap();
        assert_eq!((detail.summary.deferred, detail.summary.dead_letters, detail.timers.len()), (2, 1, 1));
        assert_eq!(detail.data, whole.data.to_vec());
    }
}

#[tokio::test]
async fn history_as_it_was_written() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"\0\xff");
    let mut first = history(&id, 1, u64::MAX, Some(full_event(&id, "e1")));
    first.consumed = Some(u64::MAX);
    first.notes = vec!["a note".into(), String::new()];
    first.code = Some("differs".into());
    first.by = Some(actor());
    first.previous_state = Some("pending".into());
    let mut second = history(&id, 2, u64::MAX, None);
    second.cause = Cause::Timer;
    second.timer = Some("payment-timeout".into());
    let writes = Writes { history: vec![first.clone(), second.clone()], ..Writes::default() };
    commit(&store, &writes).await.unwrap();
    let page = store.history(&id, &Page::first(1)).await.unwrap();
    assert_eq!(page.items, [first.clone()]);
    let rest = store.history(&id, &Page::after(1, page.next.unwrap())).await.unwrap();
    assert_eq!((rest.items, rest.next), (vec![second], None));

    let needs = [Need::History(id.clone(), u64::MAX), Need::History(id, 1)];
    let world = load(&store, needs.clone()).await;
    assert!(needs.iter().all(|need| world.knows(need)));
    let event = first.event.unwrap();
    let consumed =
        Consumed { digest: event.digest, value_digest: event.value_digest, source: event.key.source.clone() };
    let text = format!("{world:?}");
    assert!(text.contains(&format!("{:?}", Some(consumed))), "{text}");
    assert_eq!(text.matches("None").count(), 1, "no version 1 was consumed: {text}");
}

#[tokio::test]
async fn inbox_rows_conflicts_and_intents() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    let event = full_event(&id, "e1");
    let mut other = full_event(&id, "e1");
    other.digest = digest_of("other");
    let quarantined = Ref::of_conflict(&other.key, &other.digest);
    let mut writes = Writes::default();
    writes.inbox.insert(event.key.clone(), InboxWrite::Insert(inbox(&event, Verdict::Deferred, u64::MAX)));
    writes.conflicts.insert(quarantined, ConflictWrite::Put(conflict(other.clone())));
    let taken = Intent { entity: id.clone(), kind: "order.paid".into(), data_digest: digest_of("data") };
    writes.intents.insert(("orders".into(), "pay".into()), taken.clone());
    commit(&store, &writes).await.unwrap();

    let absent = EventKey { machine: "accounts".into(), ..event.key.clone() };
    let needs = [
        Need::Inbox(event.key.clone()),
        Need::Inbox(absent),
        Need::Intent("orders".into(), "pay".into()),
        Need::Intent("orders".into(), "free".into()),
    ];
    let world = load(&store, needs.clone()).await;
    assert!(needs.iter().all(|need| world.knows(need)), "absent ones are known to be absent");
    let row = InboxEntry {
        entity: id.clone(),
        digest: event.digest,
        value_digest: event.value_digest,
        verdict: Verdict::Deferred,
        first: Some(position(u64::MAX)),
    };
    let text = format!("{world:?}");
    for part in [
        format!("{:?}", Some(row)),
        format!("{:?}", Some(taken)),
        format!(
            "{:?}",
            ConflictEntry { id: quarantined, digest: other.digest, value_digest: other.value_digest, open: true }
        ),
    ] {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
    let found = &store.events("e1").await.unwrap()[0];
    assert_eq!(
        (found.deliveries, &found.first, &found.last),
        (1, &Some(position(u64::MAX)), &Some(position(u64::MAX)))
    );

    // It comes again, and is decided.
    let mut again = Writes::default();
    let update = InboxWrite::Update {
        deliveries: 2,
        last: Some(position(9)),
        verdict: Some((Verdict::Applied, Some("late".into()))),
    };
    again.inbox.insert(event.key.clone(), update);
    let copies = ConflictWrite::Update { copies: 3, dismissed: Some(actor()), at: 60 };
    again.conflicts.insert(quarantined, copies);
    commit(&store, &again).await.unwrap();
    let more = InboxWrite::Update { deliveries: 1, last: None, verdict: None };
    commit(&store, &Writes { inbox: [(event.key.clone(), more)].into(), ..Writes::default() }).await.unwrap();
    let found = &store.events("e1").await.unwrap()[0];
    assert_eq!((found.deliveries, found.verdict, found.reason.as_deref()), (4, Verdict::Applied, Some("late")));
    assert_eq!((&found.first, &found.last), (&Some(position(u64::MAX)), &Some(position(9))));
    let kept = store.conflict(quarantined).await.unwrap().unwrap();
    assert_eq!((kept.item.copies, kept.item.dismissed.as_ref()), (4, Some(&actor())));
    assert_eq!(*kept.event, other);
    assert!(store.conflicts(None, true, &Page::first(9)).await.unwrap().items.is_empty());
    assert_eq!(store.conflicts(Some("orders"), false, &Page::first(9)).await.unwrap().items, [kept.item]);
}

#[tokio::test]
async fn dead_letters_open_and_closed() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"o1");
    let mut writes = Writes::default();
    let name = put_dead(&mut writes, dead(full_event(&id, "e1"), true));
    let at = position(u64::MAX);
    let unreadable = Ref::of_position(&at);
    let raw = DeadRow {
        class: Verdict::Malformed,
        entity: None,
        event: None,
        raw: Some((*b"\0{\xff").into()),
        position: Some(at),
        rules: None,
        blocks: false,
        since: 31,
        ..dead(event_for(&id, "x", None, b""), false)
    };
    writes.dead.insert(unreadable, DeadWrite::Put(raw.clone()));
    let timer = Ref::of_revision("timer", &id, "t", 3);
    let failed = DeadRow {
        kind: DeadKind::Timer,
        event: None,
        timer: Some(("t".into(), -5)),
        blocks: false,
        since: 32,
        ..dead(event_for(&id, "x", None, b""), false)
    };
    writes.dead.insert(timer, DeadWrite::Put(failed.clone()));
    commit(&store, &writes).await.unwrap();
    assert_eq!(store.dead_letter(unreadable).await.unwrap().unwrap().row, raw);
    assert_eq!(store.dead_letter(timer).await.unwrap().unwrap().row, failed);
    assert_eq!(load_entity(&store, &id).await.dead.len(), 2);

    let instead = EventKey { machine: "orders".into(), source: "desk".into(), id: "e2".into() };
    let update = DeadUpdate {
        status: Some(DeadStatus::Replaced),
        refusal: Some((Verdict::Fault, "fuel".into(), "too long".into())),
        attempts: Some(2),
        by: Some(actor()),
        replaced_by: Some(instead.clone()),
        at: 99,
    };
    commit(&store, &Writes { dead: [(name, DeadWrite::Update(update))].into(), ..Writes::default() }).await.unwrap();
    let closed = store.dead_letter(name).await.unwrap().unwrap();
    let expected = DeadRow {
        status: DeadStatus::Replaced,
        class: Verdict::Fault,
        code: "fuel".into(),
        message: "too long".into(),
        attempts: 2,
        by: Some(actor()),
        replaced_by: Some(instead),
        ..dead(full_event(&id, "e1"), true)
    };
    assert_eq!((closed.row, closed.changed), (expected, 99));
    assert_eq!(load_entity(&store, &id).await.dead.len(), 1);
    // The same event is refused again: the row opens again.
    let mut again = Writes::default();
    put_dead(&mut again, dead(full_event(&id, "e1"), true));
    commit(&store, &again).await.unwrap();
    assert_eq!(store.dead_letter(name).await.unwrap().unwrap().row, dead(full_event(&id, "e1"), true));
}

#[tokio::test]
async fn messages_alarms_and_audit() {
    let folder = Folder::new();
    let store = folder.open().await;
    let id = id(b"\xff");
    let audit = AuditRow {
        at: 1,
        by: actor(),
        action: "dead-letter skip".into(),
        subject: "orders/o1".into(),
        outcome: "skipped".into(),
    };
    let mut writes = Writes {
        outbox: vec![message(&id, 1, 0), message(&id, 1, 1)],
        audit: vec![audit.clone()],
        ..Writes::default()
    };
    let raise = AlarmWrite::Raise { message: "two writers".into(), at: 5 };
    writes.alarms.insert((AlarmKind::Conflict, "orders/o1".into()), raise);
    commit(&store, &writes).await.unwrap();
    let sent = store.outbox(&Default::default(), &Page::first(9)).await.unwrap().items;
    assert_eq!(sent.into_iter().map(|m| m.row).collect::<Vec<_>>(), writes.outbox);
    assert_eq!(store.audit(&Page::first(9)).await.unwrap().items[0].row, audit);

    // Raised once, cleared by its condition, raised anew.
    assert!(!store.raise_alarm("conflict", "orders/o1", "other", 6).await.unwrap());
    let standing = store.alarms(true, &Page::first(9)).await.unwrap().items;
    assert_eq!((standing.len(), standing[0].since, standing[0].message.as_str()), (1, 5, "two writers"));
    let clear = |at| [((AlarmKind::Conflict, "orders/o1".into()), AlarmWrite::Clear { at })].into();
    commit(&store, &Writes { alarms: clear(7), ..Writes::default() }).await.unwrap();
    assert!(store.alarms(true, &Page::first(9)).await.unwrap().items.is_empty());
    assert!(!store.clear_alarm("conflict", "orders/o1", 8).await.unwrap());
    assert!(store.raise_alarm("conflict", "orders/o1", "anew", 9).await.unwrap());
    let all = store.alarms(false, &Page::first(9)).await.unwrap().items;
    assert_eq!((all.len(), all[0].since, all[0].cleared), (1, 9, None));
}

/// What a batch does and undoes leaves no row, and what it undoes and does leaves one.
#[tokio::test]
async fn put_and_delete_in_one_batch() {
    let folder = Folder::new();
    let store = folder.open().await;
    let (id, target) = (id(b"o1"), id(b"target"));
    let row = waiting(event_for(&id, "e1", Some(3), b"x"), 0, DeferReason::Dependency);
    let needs = vec![Dependency { entity: target.clone(), version: 2 }];
    let start = TimerWrite::Put { due: 5, revision: 1 };
    let cancel = TimerWrite::Close { outcome: "cancelled", code: None, at: 6 };
    let (timer, place) = ((id.clone(), Arc::from("t")), (id.clone(), row.id()));
    let put = || {
        let mut writes = Writes::default();
        put_waiting(&mut writes, row.clone(), needs.clone());
        writes.timers.insert(timer.clone(), start.clone());
        writes
    };
    let delete = || Writes {
        waiting: [(place.clone(), WaitingWrite::Delete)].into(),
        timers: [(timer.clone(), cancel.clone())].into(),
        ..Writes::default()
    };
    let mut both = put();
    both.merge(delete());
    commit(&store, &both).await.unwrap();
    let found = load_entity(&store, &id).await;
    assert!(found.waiting.is_empty() && found.timers.is_empty());
    assert!(load_entity(&store, &target).await.waiters.is_empty());

    commit(&store, &put()).await.unwrap();
    let mut both = delete();
    both.merge(put());
    commit(&store, &both).await.unwrap();
    let found = load_entity(&store, &id).await;
    assert_eq!((found.waiting.len(), found.timers.len()), (1, 1));
    assert_eq!(load_entity(&store, &target).await.waiters.len(), 1);

    // Marked ready, then decided again with other names: what it no longer waits for forgets it.
    commit(&store, &Writes { waiting: [(place.clone(), WaitingWrite::Ready)].into(), ..Writes::default() })
        .await
        .unwrap();
    assert_eq!(store.ready_entities(9).await.unwrap(), std::slice::from_ref(&id));
    let mut renamed = Writes::default();
    put_waiting(&mut renamed, row.clone(), vec![Dependency { entity: id.clone(), version: 9 }]);
    commit(&store, &renamed).await.unwrap();
    assert!(store.ready_entities(9).await.unwrap().is_empty());
    assert!(load_entity(&store, &target).await.waiters.is_empty());
    commit(&store, &delete()).await.unwrap();
    let found = load_entity(&store, &id).await;
    assert!(found.waiting.is_empty() && found.waiters.is_empty() && found.timers.is_empty());
}

#[tokio::test]
async fn a_payload_of_a_mebibyte_and_a_batch_beyond_one_statement() {
    let folder = Folder::new();
    let store = folder.open().await;
    let big = id(b"big");
    let payload: Vec<u8> = (0..1_048_576_u32).map(|i| (i * 31 % 251) as u8).collect();
    let row = history(&big, 1, 1, Some(event_for(&big, "big", Some(1), &payload)));
    commit(&store, &Writes { history: vec![row.clone()], ..Writes::default() }).await.unwrap();
    assert_eq!(store.history(&big, &Page::first(1)).await.unwrap().items, [row]);

    let (writes, guards) = typical(0, 2500, u64::MAX);
    store.commit(&crate::store::Commit { guards, ..crate::store::Commit::new(&writes, 1) }).await.unwrap();
    let wants = Wants {
        entities: writes.entities.keys().cloned().collect(),
        inbox: writes.inbox.keys().cloned().collect(),
        ..Wants::default()
    };
    let mut world = World::new();
    store.load(&wants, &mut world).await.unwrap();
    assert_eq!(world.entities().filter(|e| e.row_version == 1 && e.version == 1).count(), 2500);
}
