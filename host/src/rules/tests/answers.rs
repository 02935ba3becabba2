//! Questions and answers arrive on the other side as they were.

use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::{
    Dependency, Effect, EntityView, EventView, Failure, Fault, Message, Reason, Rejection, Rules, Transition,
    TriggerView, When,
};

use super::super::Registry;
use super::guest::Guest;
use super::{entity, event, load};

fn echo(answer: Result<Transition, Rejection>) {
    let mut session = load(&Guest::answering(&answer)).unwrap().open();
    assert_eq!(session.apply(None, &event(b"")).unwrap(), answer);
}

#[test]
fn every_answer_arrives_whole() {
    let message = Message {
        topic: "fulfilment".into(),
        kind: "fulfilment.requested".into(),
        key: None,
        content_type: "application/json".into(),
        attributes: vec![("a".into(), "1".into()), ("b".into(), String::new())],
        data: vec![0, 255, 10],
    };
    echo(Ok(Transition {
        state: "open".into(),
        data: b"{\"big\":18446744073709551616}".to_vec(),
        effects: vec![
            Effect::Send(message.clone()),
            Effect::Send(Message { key: Some(b"other\0key".to_vec()), ..message }),
            Effect::Start { name: "late".into(), when: When::At(-1) },
            Effect::Start { name: "later".into(), when: When::After(u64::MAX) },
            Effect::Cancel("late".into()),
        ],
        notes: vec!["because".into()],
    }));
    echo(Err(Rejection::Illegal(Reason::new("no", "not now"))));
    echo(Err(Rejection::Malformed(Reason::new("what", "é"))));
    let dependency = Dependency { entity: EntityId::new("others", *b"\0\xff"), version: u64::MAX };
    echo(Err(Rejection::Waiting(vec![dependency.clone(), dependency])));
}

/// The guest answers with what it was asked: the entity's state as its state, the event's data as its data.
#[test]
fn arguments_arrive_whole() {
    let apply = "(i32.store (i32.const 4) (i32.load offset=32 (local.get 0))) \
                 (i32.store (i32.const 8) (i32.load offset=36 (local.get 0))) \
                 (i32.store (i32.const 12) (i32.load offset=188 (local.get 0))) \
                 (i32.store (i32.const 16) (i32.load offset=192 (local.get 0))) (i32.const 0)";
    let mut session = load(&Guest::applying(apply)).unwrap().open();
    let data: Vec<u8> = (0..=255).collect();
    let timers = [("late".to_owned(), 7)];
    let current = EntityView { timers: &timers, ..entity("øpen", b"old") };
    let met = [Dependency { entity: EntityId::new("others", *b"k"), version: 3 }];
    let attributes = [("traceparent".to_owned(), "00-ab".to_owned())];
    let asked = EventView { trigger: TriggerView::Timer("late"), attributes: &attributes, met: &met, ..event(&data) };
    let answer = session.apply(Some(&current), &asked).unwrap().unwrap();
    assert_eq!((answer.state.as_str(), answer.data), ("øpen", data));
}

/// The failure is the last argument: a tag at 200, and for a fault its text after that.
#[test]
fn compensate_is_told_what_failed() {
    let compensate = "(if (i32.ne (i32.load8_u offset=200 (local.get 0)) (i32.const 2)) (then (unreachable))) \
                      (i32.store (i32.const 4) (i32.load offset=204 (local.get 0))) \
                      (i32.store (i32.const 8) (i32.load offset=208 (local.get 0))) (i32.const 0)";
    let mut session = load(&Guest { compensate: compensate.into(), ..Guest::new() }).unwrap().open();
    let failure = Failure::Fault(Fault::new("trap", "it broke"));
    let answer = session.compensate(Some(&entity("shut", b"")), &event(b""), &failure).unwrap().unwrap();
    assert_eq!(answer.state, "it broke");
    let illegal = Failure::Illegal(Reason::new("no", "never"));
    assert_eq!(session.compensate(None, &event(b""), &illegal).unwrap_err().code, "trap");
}

/// The old data comes back behind the old state: parameters 4 and 5, 8 and 9.
#[test]
fn migrate_sees_the_entity() {
    let migrate = "(i32.store (i32.const 4) (local.get 4)) (i32.store (i32.const 8) (local.get 5)) \
                   (i32.store (i32.const 12) (local.get 8)) (i32.store (i32.const 16) (local.get 9)) (i32.const 0)";
    let mut session = load(&Guest { migrate: migrate.into(), ..Guest::new() }).unwrap().open();
    let answer = session.migrate(&entity("open", b"old")).unwrap().unwrap();
    assert_eq!((answer.state.as_str(), &answer.data[..]), ("open", &b"old"[..]));
}

#[test]
fn text_from_guests_is_bounded() {
    let long = Rejection::Illegal(Reason::new("a\0b", "é".repeat(3_000)));
    let mut session = load(&Guest::answering(&Err(long))).unwrap().open();
    let Err(Rejection::Illegal(reason)) = session.apply(None, &event(b"")).unwrap() else { panic!() };
    assert_eq!(reason.code, "a\u{fffd}b");
    assert!(reason.message.len() <= 4096 && reason.message.ends_with("é…"), "{}", reason.message.len());
}

/// G9: a swap replaces what the next session gets; the one in flight keeps its own.
#[test]
fn a_swap_leaves_work_in_flight_alone() {
    let answering = |state: &str| Guest::answering(&Ok(Transition { state: state.into(), ..Transition::default() }));
    let (old, new) = (load(&answering("open")).unwrap(), load(&answering("shut")).unwrap());
    let (first, second) = (old.digest(), new.digest());
    let registry = Registry::new();
    assert!(registry.insert(old).is_none());
    let mut session = registry.get(first).unwrap().open();
    registry.insert(new);
    registry.remove(first);
    assert!(registry.get(first).is_none());
    assert_eq!(session.apply(None, &event(b"")).unwrap().unwrap().state, "open");
    let mut session = registry.get(second).unwrap().open();
    assert_eq!(session.apply(None, &event(b"")).unwrap().unwrap().state, "shut");
}
