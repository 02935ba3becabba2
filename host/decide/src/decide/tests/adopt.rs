//! Entities that are imported and erased (R5).

use super::*;

fn import(s: &Story, version: u64, state: &str) -> Import {
    Import {
        entity: s.id("o"),
        version,
        state: state.into(),
        schema: 1,
        data: b"x".as_slice().into(),
        seen: ["start".into()].into(),
        entered: Some(5),
        timers: [].into(),
    }
}

fn put(s: &mut Story, import: Import) -> Result<(), String> {
    let by = Actor { name: "ada".into(), reason: "cut-over".into() };
    match s.take(&Input::Import { by, import }) {
        Ok(_) => Ok(()),
        Err(Undecided::Refused(reason)) => Err(reason.code),
        Err(need) => panic!("{need:?}"),
    }
}

fn erase(s: &mut Story, live: bool) -> Result<(), String> {
    let wish = Erase { entity: s.id("o"), live, envelopes: Vec::new() };
    match s.person(Action::Erase(wish)) {
        Ok(_) => Ok(()),
        Err(Undecided::Refused(reason)) => Err(reason.code),
        Err(need) => panic!("{need:?}"),
    }
}

#[test]
fn an_import_decides_what_waited_and_the_next_version_follows() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@4 work");
    s.deliver("o@6 work");
    let four = import(&s, 4, "open");
    put(&mut s, four.clone()).unwrap();
    assert_eq!(s.decided(), ["o@4 work: duplicate"]);
    s.deliver("o@5 work");
    assert_eq!(s.decided(), ["o@5 work: applied", "o@6 work: applied"]);
    s.deliver("o@2 work id=other");
    assert_eq!(s.decided(), ["other: duplicate"]);
    assert_eq!(put(&mut s, four), Err("exists".into()));
    s.commit();
    let causes: Vec<_> = s.tables.history.iter().map(|row| (row.cause, row.consumed)).collect();
    assert_eq!(causes, [(Cause::Import, None), (Cause::Event, Some(5)), (Cause::Event, Some(6))]);
}

#[test]
fn what_the_rules_do_not_declare_is_not_imported() {
    let mut s = Story::new(Ordering::Versioned);
    let good = import(&s, 1, "open");
    let cases = [
        ("state", Import { state: "nowhere".into(), ..good.clone() }),
        ("version", Import { version: 0, ..good.clone() }),
        ("schema", Import { schema: 99, ..good.clone() }),
        ("data", Import { data: vec![0; (1 << 20) + 1].into(), ..good.clone() }),
        ("timer", Import { timers: [("no-such".into(), 1)].into(), ..good.clone() }),
        ("key", Import { entity: EntityId::new("versioned", vec![0; 513]), ..good.clone() }),
    ];
    for (code, bad) in cases {
        assert_eq!(put(&mut s, bad), Err(code.into()));
    }
    put(&mut s, good).unwrap();
}

#[test]
fn an_erased_entity_skips_what_is_new_and_knows_what_is_not() {
    let mut s = Story::new(Ordering::Versioned);
    s.deliver("o@1 start");
    s.deliver("o@2 work : illegal");
    s.deliver("o@3 work");
    assert_eq!(erase(&mut s, false), Err("live".into()));
    erase(&mut s, true).unwrap();
    assert_eq!(s.decided(), ["o@3 work: skipped", "o@2 work: skipped"]);
    let entity = s.entity("o");
    assert!(entity.erased && entity.data.is_empty() && entity.waiting.is_empty() && entity.dead.is_empty());
    assert_eq!((entity.version, entity.revision, entity.state.as_deref()), (1, 2, Some("open")));
    s.deliver("o@2 work id=later");
    assert_eq!(s.decided(), ["later: skipped"]);
    s.deliver("o@2 work id=copy");
    assert_eq!(s.decided(), ["copy: duplicate"]);
    s.deliver("o@1 start id=first-again");
    assert_eq!(s.decided(), ["first-again: duplicate"]);
    s.commit();
    let last = s.tables.history.last().unwrap();
    assert_eq!((last.cause, last.code.as_deref()), (Cause::Skip, Some("erased")));
    assert!(last.event.as_ref().unwrap().data.is_empty());
    assert!(!s.tables.counts.contains_key(&(0, Verdict::Illegal)));
}
