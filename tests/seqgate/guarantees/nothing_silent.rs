//! G6: every event received can be found by its id, with verdict, reason, positions and number of deliveries; and the
//! sums agree in every partition.

use std::collections::BTreeMap;

use seqgate_model::{Meaning, Step};
use serde_json::Value;

use super::decided;
use crate::stream::stream;

#[test]
fn every_id_is_found_and_every_delivery_is_counted() {
    let stream = stream(12, 60);
    let site = decided(&stream);
    let mut deliveries: BTreeMap<(String, String), u64> = BTreeMap::new();
    for step in &stream.history.steps {
        let Step::Deliver(d) = step else { continue };
        if let Meaning::Event(event) = &d.meaning {
            *deliveries.entry((event.source.clone(), event.id.clone())).or_default() += 1;
        }
    }
    // Every tenth: each is a process.
    for ((source, id), n) in deliveries.iter().step_by(10) {
        let shown = site.ask(&["event", "show", id]);
        let rows = shown["items"].as_array().unwrap_or_else(|| panic!("{shown}"));
        let row = rows.iter().find(|r| r["source"] == **source).unwrap_or_else(|| panic!("{source} {id}: {shown}"));
        assert_eq!(row["deliveries"], *n, "{id}");
        assert!(row["verdict"].is_string() && !row["first"].is_null() && !row["last"].is_null(), "{row}");
        let reason = row["reason"].is_string();
        assert!(reason || ["applied", "duplicate", "stale"].iter().any(|v| row["verdict"] == *v), "{row}");
    }
    let status = site.ask(&["status"]);
    let sum = |verdicts: &Value| verdicts.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    let mut received = 0;
    for partition in status["partitions"].as_array().unwrap() {
        assert_eq!(sum(&partition["verdicts"]), partition["received"].as_u64().unwrap(), "{partition}");
        received += partition["received"].as_u64().unwrap();
    }
    assert_eq!(received, stream.lines.len() as u64);
    assert_eq!(sum(&status["verdicts"]), received);
    // What is counted as refused is listed, and what waits too.
    let open = site.list(&["dead-letter", "list", "--limit", "1000"]).len() as u64;
    assert!(open >= status["dead_letters"].as_u64().unwrap());
    assert_eq!(site.list(&["deferred", "list", "--limit", "1000"]).len() as u64, status["deferred"]);
}
