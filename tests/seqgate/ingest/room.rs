//! What happens while nobody decides: memory stays flat, the log stays below its limit, and then there is no more room.
//!
//! `SEQGATE_INGEST_MIB` sets how much is posted; 24 by default, 1024 in a campaign.

use std::fs;

use serde_json::json;

use super::http::{address, post};
use super::{BATCH, batch, comes_to, embedded};
use crate::program::{Running, Site, created, machine, until};

/// What resident memory may be.
const MOST_RESIDENT_MIB: u64 = 200;

fn megabytes() -> u64 {
    std::env::var("SEQGATE_INGEST_MIB").map_or(24, |n| n.parse().unwrap())
}

/// The highest resident memory so far, in MiB.
fn peak(run: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Events of about a megabyte together.
fn megabyte(n: u64) -> String {
    let filler = "x".repeat(900);
    let one = |i: u64| {
        let data = format!(r#"{{"total":1999,"currency":"EUR","note":"{filler}"}}"#);
        created(&format!("k{n}-{i}")).v(1).data(&data).line()
    };
    batch(&(0..920).map(one).collect::<Vec<_>>())
}

#[test]
fn a_full_log_refuses_and_memory_stays_flat() {
    let most = megabytes();
    // Another machine's source, so that what is posted is not decided: nothing reads a log that is paused.
    let site = Site::new(&(machine("orders", "") + &embedded(&format!("max_size = \"{most}MiB\""))));
    site.seqgate(&["run", "--until-idle"]).exits(0);
    site.seqgate(&["machine", "pause", "orders", "--reason", "maintenance"]).exits(0);
    let run = site.start(&["run"]);
    let at = address(&run);
    let mut posted = 0;
    let refused = loop {
        let answer = post(&at, BATCH, &megabyte(posted));
        match answer.status {
            202 => posted += 1,
            429 => break answer,
            _ => panic!("{answer:?}"),
        }
        assert!(posted <= most, "more was taken than the log may hold");
    };
    assert_eq!(refused.json()["type"], "urn:seqgate:problem:log-full");
    assert!(refused.header("retry-after").is_some());
    assert!(posted >= most * 8 / 10, "only {posted} MiB of {most} were taken");
    let resident = peak(&run);
    println!("{posted} MiB posted while nothing was decided: at most {resident} MiB resident");
    assert!(resident < MOST_RESIDENT_MIB, "{resident} MiB resident");
    // Going on decides all of it, and what is decided makes room.
    site.seqgate(&["machine", "resume", "orders", "--reason", "done"]).exits(0);
    comes_to(&site, &json!({"applied": posted * 920}));
    until("there is room again", || (post(&at, BATCH, &megabyte(posted)).status == 202).then_some(()));
    run.signal("TERM");
    run.wait().exits(0);
}
