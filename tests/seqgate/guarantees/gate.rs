//! G1: the versions that an entity consumes are consecutive, and each applied transition is an edge that the deciding
//! rules declare.

use std::collections::BTreeMap;

use seqgate_decide::graph::Graph;
use seqgate_decide::rules::TriggerView;
use seqgate_decide::writes::Cause;
use serde_json::json;

use super::decided;
use crate::program::{Site, component, created, ev, events, lines, machine, paid};
use crate::stream::stream;
use crate::tables;

#[test]
fn no_version_is_left_out_and_no_edge_is_invented() {
    let stream = stream(11, 90);
    let site = decided(&stream);
    let tables = tables::of(&site, &stream);
    tables.sound();
    let graphs: BTreeMap<&str, Graph> = ["orders", "subscriptions", "accounts"].map(|m| (m, declared(m))).into();
    let mut applied = 0;
    for (entity, rows) in &tables.history {
        for row in rows.iter().filter(|r| r.cause == Cause::Event) {
            let kind = &row.event.as_ref().unwrap().kind;
            let (from, to) = (row.previous_state.as_deref(), row.next_state.as_deref().unwrap());
            assert!(
                graphs[&*entity.machine].allows(from, TriggerView::Event(kind), to),
                "{entity}: {from:?} → {to} by {kind} is no edge"
            );
            applied += 1;
        }
    }
    assert!(applied > 200, "{applied}");
}

/// The graph of a component, from what it says of itself.
fn declared(machine: &str) -> Graph {
    use seqgate::rules::{Engine, EngineOptions, Limits, LoadedRules, prepare};
    let bytes = std::fs::read(component(machine)).unwrap();
    let engine = Engine::new(&EngineOptions::default()).unwrap();
    let prepared = prepare(&bytes, bytes.len()).unwrap();
    let loaded = LoadedRules::load(&engine, &prepared, Limits::default(), None).unwrap();
    Graph::new(loaded.description().clone())
}

#[test]
fn what_comes_too_early_waits_for_every_version_before_it() {
    let site = Site::new(&(machine("orders", "") + &events(2)));
    let (shipped, delivered) = (ev("order.shipped", "o1").v(3), ev("order.delivered", "o1").v(4));
    site.write(&lines(&[delivered, created("o1").v(1), shipped]));
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("pending".into(), 1, 1));
    assert_eq!(site.verdicts(), json!({"applied": 1, "deferred": 2}));
    site.append(&lines(&[paid("o1").v(2)]));
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("delivered".into(), 4, 4));
    assert_eq!(site.verdicts(), json!({"applied": 4}));
}
