//! A log that is full takes nothing, loses nothing, and has room again once what it holds is decided.

use serde_json::json;

use super::http::{address, post};
use super::{BATCH, batch, comes_to, embedded};
use crate::program::{Site, created, machine, until};

/// Events of about a quarter of a megabyte together.
const EVENTS: u64 = 230;

fn quarter(n: u64) -> Vec<String> {
    let filler = "x".repeat(900);
    let one = |i: u64| {
        let data = format!(r#"{{"total":1999,"currency":"EUR","note":"{filler}"}}"#);
        created(&format!("k{n}-{i}")).v(1).data(&data).line()
    };
    (0..EVENTS).map(one).collect()
}

#[test]
fn a_full_log_takes_nothing_until_it_is_decided() {
    let site = Site::new(&(machine("orders", "") + &embedded("max_size = \"1MiB\"")));
    let mut taken = 0;
    let refused = loop {
        site.write(&quarter(taken));
        let done = site.seqgate(&["ingest", "events.jsonl", "--wait", "0"]);
        if done.code() != Some(0) {
            break done;
        }
        taken += 1;
        assert!(taken <= 4, "more was taken than the log may hold");
    };
    assert!(taken >= 3, "only {taken} quarters were taken");
    refused.exits(1).says("may hold 1048576").says("source.web.max_size").says("0 lines were taken");
    // Deciding makes room: what is decided goes at once where it is short.
    let run = site.start(&["run"]);
    let at = address(&run);
    comes_to(&site, &json!({"applied": taken * EVENTS}));
    until("there is room again", || (post(&at, BATCH, &batch(&quarter(taken))).status == 202).then_some(()));
    comes_to(&site, &json!({"applied": (taken + 1) * EVENTS}));
    run.signal("TERM");
    run.wait().exits(0);
}
