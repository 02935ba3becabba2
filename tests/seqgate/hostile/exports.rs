//! The functions of the contract beside `apply`: each may be as hostile.

use seqgate_decide::rules::{Description, Effect, Reason, Rejection, When};

use super::{Hostile, MALICE, description, each_costs_one_event, opened};
use crate::program::lines;

#[test]
fn compensation_that_does_not_answer_parks_its_event() {
    let refused = Err(Rejection::Illegal(Reason::new("too-late", "the day is over")));
    let compensating = |name, body: &str, says: &[&'static str]| {
        let mut hostile = Hostile::answering(
            name,
            &refused,
            "too-late",
            &[&["the day is over; `compensate` refused: "], says].concat(),
        );
        hostile.guest.compensate = body.into();
        hostile.settings("on_illegal = \"compensate\"")
    };
    let gone = {
        let mut hostile =
            Hostile::answering("compensates-away", &refused, "too-late", &["`compensate` refused: ", "no edge leads"]);
        let at = hostile
            .guest
            .memory
            .answer(&Ok(seqgate_decide::rules::Transition { state: "shut".into(), ..super::transition() }));
        hostile.guest.compensate = format!("(i32.const {at})");
        hostile.settings("on_illegal = \"compensate\"")
    };
    each_costs_one_event(&[
        compensating("compensate-traps", "(unreachable)", &["unreachable", "`compensate`", "(trap)"]),
        compensating("compensate-loops", "(loop $l (br $l)) (unreachable)", &["limits.fuel", "`compensate`", "(fuel)"]),
        compensating(
            "compensate-grows",
            "(drop (memory.grow (i32.const 9000))) (unreachable)",
            &["limits.memory", "(memory)"],
        ),
        compensating("compensate-mumbles", "(i32.const 0x7ffffff0)", &["contract does not allow", "(result-invalid)"]),
        gone,
    ]);
}

/// A timer's fault is a dead letter that blocks nobody.
#[test]
fn a_timer_whose_rules_do_not_answer_is_a_dead_letter() {
    let timed = |name, body: &str, code, says: &[&'static str]| {
        let mut hostile = Hostile::new(name, code, says);
        let at = hostile.guest.memory.answer(&Ok(seqgate_decide::rules::Transition {
            effects: vec![Effect::Start { name: "late".into(), when: When::At(0) }],
            ..super::transition()
        }));
        let trigger = seqgate_test_guest::TRIGGER;
        hostile.guest = hostile.guest.hostile(&format!("(i32.const {at})"));
        let apply = &hostile.guest.apply;
        hostile.guest.apply = format!("(if (i32.load8_u offset={trigger} (local.get 0)) (then {body})) {apply}");
        hostile
    };
    let guests = [
        timed("timer-traps", "(unreachable)", "trap", &["unreachable"]),
        timed("timer-loops", "(loop $l (br $l))", "fuel", &["limits.fuel"]),
    ];
    let site = super::site(&guests);
    let both = guests.iter().flat_map(|g| [opened(g.name, "bad").data(MALICE), opened(g.name, "good")]);
    site.write(&lines(&both.collect::<Vec<_>>()));
    site.ask(&["run", "--until-idle", "--timers"]);
    let letters = site.list(&["dead-letter", "list"]);
    for guest in &guests {
        super::named(&letters, guest);
        assert_eq!(site.stands(guest.name, "good"), ("open".into(), 1, 1));
    }
    assert!(letters.iter().all(|letter| letter["kind"] == "timer"), "{letters:?}");
}

/// A migration that does not answer blocks its entity, and no other.
#[test]
fn a_migration_that_does_not_answer_is_a_dead_letter() {
    let next = |name, migrate: &str, code, says: &[&'static str]| {
        let mut hostile = Hostile::new(name, code, says);
        let described = Description { schema: 2, reads: vec![1], version: "2.0.0".into(), ..description(name) };
        hostile.guest = seqgate_test_guest::Guest::describing(&described);
        hostile.guest.migrate = migrate.into();
        hostile
    };
    let guests = [
        next("migrate-traps", "(unreachable)", "trap", &["unreachable", "migrate"]),
        next("migrate-loops", "(loop $l (br $l)) (unreachable)", "fuel", &["limits.fuel", "migrate"]),
        next("migrate-mumbles", "(i32.const 0x7ffffff0)", "result-invalid", &["migrate"]),
    ];
    let honest: Vec<Hostile> = guests.iter().map(|g| Hostile::new(g.name, "", &[])).collect();
    let site = super::site(&honest);
    site.write(&lines(&guests.iter().map(|g| opened(g.name, "bad")).collect::<Vec<_>>()));
    site.run();
    for guest in &guests {
        let file = site.put(&format!("{}-2.wasm", guest.name), guest.guest.module());
        let registered = site.ask(&["rules", "register", &file]);
        site.seqgate(&["rules", "activate", registered["digest"].as_str().unwrap()]).exits(0);
    }
    site.append(&lines(
        &guests.iter().flat_map(|g| [opened(g.name, "bad").v(2), opened(g.name, "good")]).collect::<Vec<_>>(),
    ));
    site.run();
    let letters = site.list(&["dead-letter", "list"]);
    for guest in &guests {
        super::named(&letters, guest);
        assert_eq!(site.stands(guest.name, "good"), ("open".into(), 1, 1));
    }
    assert!(letters.iter().all(|letter| letter["kind"] == "migration"), "{letters:?}");
}
