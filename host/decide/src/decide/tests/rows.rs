//! What is written, column by column.

use super::*;
use crate::ids::Digest;
use crate::rules::{Effect, Message};
use crate::{digest, effects};

#[test]
fn an_applied_event() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start time=700 intent=i : data:d1 send:mail note:hello start:late,50");
    let event = s.event("o@1 start time=700 intent=i : data:d1 send:mail note:hello start:late,50");
    let writes = s.last.writes.clone();
    let sent = Effect::Send(Message {
        topic: "mail".into(),
        kind: "mail.sent".into(),
        key: None,
        content_type: "application/json".into(),
        attributes: vec![],
        data: b"{}".to_vec(),
    });
    let start = Effect::Start { name: "late".into(), when: crate::rules::When::After(50) };
    let expect = HistoryRow {
        entity: s.id("o"),
        revision: 1,
        version: 1,
        consumed: Some(1),
        cause: Cause::Event,
        event: Some(event.clone()),
        timer: None,
        time: 700,
        decided_at: 1_000,
        previous_state: None,
        next_state: Some("open".into()),
        data_digest: digest::of_bytes(b"d1"),
        effects_digest: effects::digest(&[sent, start]),
        schema: 1,
        rules: RULES,
        code: None,
        notes: vec!["hello".into()],
        by: None,
    };
    assert_eq!(writes.history, [expect]);
    let [(key, InboxWrite::Insert(row))] = &writes.inbox.iter().collect::<Vec<_>>()[..] else { panic!("{writes:?}") };
    assert_eq!(**key, event.key);
    let position = Some(s.position(0));
    assert_eq!((&row.first, &row.last, row.deliveries, row.received), (&position, &position, 1, 1_000));
    assert_eq!(
        (row.digest, row.value_digest, row.verdict, row.version),
        (event.digest, event.value_digest, Verdict::Applied, Some(1))
    );
    assert_eq!(writes.counts, [(("lines".into(), 0, Verdict::Applied), 1)].into());
    assert_eq!(writes.timers, [((s.id("o"), "late".into()), TimerWrite::Put { due: 750, revision: 1 })].into());
    let intent = &writes.intents[&("versioned".into(), "i".into())];
    assert_eq!(
        (&intent.entity, &*intent.kind, intent.data_digest),
        (&s.id("o"), "start", digest::of_bytes(&event.data))
    );
    assert!(writes.entities.is_empty() && writes.touched.is_empty() && writes.moves.is_empty());
    let o = s.entity("o");
    assert_eq!((o.entered, &*o.data, o.rules, o.seen.len()), (700, &b"d1"[..], Some(RULES.digest), 1));
}

#[test]
fn what_changes_no_state_keeps_it() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start time=700 : data:d1");
    s.deliver("o@2 note time=800 : x");
    let row = &s.last.writes.history[0];
    assert_eq!(
        (row.cause, row.previous_state.as_deref(), row.next_state.as_deref()),
        (Cause::Ignored, Some("open"), Some("open"))
    );
    assert_eq!((row.data_digest, row.effects_digest), (digest::of_bytes(b"d1"), digest::of_bytes(b"")));
    assert_eq!(row.event.as_ref().map(|e| &*e.data), Some(&b"x"[..]), "its content is kept");
    assert_eq!((s.entity("o").entered, s.entity("o").seen.len()), (700, 1));
}

#[test]
fn entered_is_when_the_state_was_entered() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start time=100");
    s.deliver("o@2 work time=200");
    s.deliver("o@3 work time=300");
    assert_eq!(s.entity("o").entered, 200);
    s.deliver("o@4 rest time=400");
    assert_eq!(s.entity("o").entered, 400);
}

#[test]
fn messages_under_the_own_key_are_numbered_by_topic() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start : send:a send:b send:a,elsewhere send:a,o");
    s.deliver("o@2 work : cancel:late send:b send:a");
    s.deliver("p@1 start : send:a");
    s.commit();
    let rows: Vec<_> = s
        .tables
        .outbox
        .iter()
        .map(|m| (m.topic.as_str(), m.revision, m.index, m.entity_version, m.key.as_deref()))
        .collect();
    assert_eq!(
        rows,
        [
            ("a", 1, 0, Some(1), None),
            ("b", 1, 1, Some(1), None),
            ("a", 1, 2, None, Some(&b"elsewhere"[..])),
            ("a", 1, 3, Some(2), None),
            ("b", 2, 0, Some(2), None),
            ("a", 2, 1, Some(3), None),
            ("a", 1, 0, Some(1), None),
        ]
    );
    let message = &s.tables.outbox[0];
    assert_eq!(message.cause.as_ref(), Some(&s.event("o@1 start").key));
    assert_eq!(message.correlation_id.as_deref(), Some("corr"));
}

#[test]
fn a_deferred_event() {
    let mut s = Story::new(Ordering::Versioned);
    s.check("o@1 start after=versioned/p@2,versioned/q@1", "deferred dependency v0 r0 -");
    let writes = &s.last.writes;
    assert!(writes.history.is_empty());
    let [WaitingWrite::Put { row, waits_for }] = &writes.waiting.values().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(waits_for[..], ["versioned/p@2", "versioned/q@1"].map(toy::dependency));
    assert_eq!((row.arrival, row.since, row.deadline, row.ready), (1, 1_000, None, false));
    assert_eq!(row.position, s.position(0));
    assert_eq!(writes.touched.iter().map(|e| e.to_string()).collect::<Vec<_>>(), ["versioned/p", "versioned/q"]);
    let (entity, waiter) = (s.id("p"), row.waiter(2));
    assert!(s.world.get(&entity).unwrap().waiters.contains(&waiter));
    s.now = 2_000;
    s.deliver("q@1 start");
    s.deliver("o@1 start id=other after=versioned/p@2,versioned/q@1");
    s.release();
    s.deliver("p@2<0 start");
    s.release();
    s.check("o@1 start after=versioned/p@2,versioned/q@1", "duplicate v1 r1 open");
    assert_eq!(s.tables.counts.get(&(0, Verdict::Deferred)), None, "the count moved with the verdict");
    assert_eq!(s.tables.inbox[&s.event("o@1 start").key].verdict, Verdict::Applied);
}

#[test]
fn what_is_gone_waits_for_nobody() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@2 start after=versioned/p@1");
    assert!(s.entity("o").waiting[0].reason == DeferReason::Gap && s.last.waits.len() == 1);
    s.check("o@3<0 start", "applied v3 r1 open");
    assert_eq!(s.decided()[1], "o@2 start: stale");
    assert!(s.world.get(&s.id("p")).is_some_and(|p| p.waiters.is_empty()));
    s.check("p@1 start", "applied v1 r1 open");
    assert!(s.last.ready.is_empty());
}

#[test]
fn a_conflict_is_quarantined_and_alarmed() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.deliver("o@1 start id=c : data:2");
    let event = s.event("o@1 start id=c : data:2");
    let id = Ref::of_conflict(&event.key, &event.digest);
    let writes = &s.last.writes;
    let Some(ConflictWrite::Put(row)) = writes.conflicts.get(&id) else { panic!("{writes:?}") };
    assert_eq!((row.code, row.copies, &row.event, row.since), ("version", 1, &event, 1_000));
    assert!(writes.alarms.contains_key(&(AlarmKind::Conflict, format!("versioned/o {id}"))));
    assert!(s.last.entity.is_none());
    s.deliver("o@1 start id=c : data:2");
    assert!(s.last.writes.alarms.is_empty(), "a copy raises no alarm");
}

#[test]
fn subjects_of_keys_that_are_no_text() {
    let shown = |key: &[u8]| EntityId::new("m", key).to_string();
    assert_eq!(shown("größe 1/2".as_bytes()), "m/größe 1/2");
    assert_eq!(shown(b"\xff"), "m/%FF");
    assert_eq!(shown(b"\xfe\n"), "m/%FE%0A");
    assert_eq!(shown(b"%FF"), "m/%25FF");
    assert_eq!(shown("\u{85}".as_bytes()), "m/%C2%85");
}

#[test]
fn digests_are_stable() {
    let id = EntityId::new("orders", *b"o1");
    let (digest, value) = digest::of_content(&id, "order.paid", Some(3), None, br#"{"a": 1.0}"#);
    let hex = |d: Digest| d.to_string();
    assert_eq!(hex(digest), "sha256:9b3342f562879c238322c00227e7739c52fce2f42d8d88e6658e3fb2870a25b7");
    assert_eq!(hex(value), "sha256:99db134be553ea0902e5217a5c207f60b53f3cd34b199e708e2fcaa13bae03c9");
}
