//! R7.8, G11: how a run ends, who may run, and what people may do beside it.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Running, Site, batch, created, ev, events, lines, machine, paid, source, until};
use crate::stream::stream;
use crate::tables;

/// `run.stop_within`, as it is by default.
const STOP_WITHIN: Duration = Duration::from_secs(10);

fn orders() -> Site {
    Site::new(&(machine("orders", "") + &events(2)))
}

/// A run that has its sources open and the lock in its hand.
fn following(site: &Site) -> Running {
    let mut run = site.start(&["run", "--json"]);
    until("the run owns its partitions", || {
        assert!(run.runs(), "it ended: {}", run.told());
        let status = site.seqgate(&["status", "--json"]);
        let owned = format!(":{}", run.pid());
        let owns = |p: &Value| p["owner"].as_str().is_some_and(|owner| owner.ends_with(&owned));
        let partitions = (status.code() == Some(0)).then(|| status.json()["partitions"].clone())?;
        (!partitions.as_array()?.is_empty() && partitions.as_array()?.iter().all(owns)).then_some(())
    });
    run
}

#[test]
fn a_signal_ends_the_run_after_the_batch_in_hand() {
    for (signal, seed) in [("TERM", 11), ("INT", 12)] {
        let stream = stream(seed, 150);
        let machines = ["orders", "subscriptions", "accounts"].map(|m| machine(m, "")).concat();
        let site = Site::new(&(batch(8) + &machines + &events(1)));
        site.write(&stream.lines);
        let run = site.start(&["run", "--json"]);
        until("some of it was committed", || (tables::received(&site.path("seqgate.db")) > 100).then_some(()));
        let told = Instant::now();
        run.signal(signal);
        let done = run.wait().exits(0);
        assert!(told.elapsed() < STOP_WITHIN, "{signal} took {:?}", told.elapsed());
        let status = site.ask(&["status"]);
        let received = status["received"].as_u64().unwrap();
        assert_eq!(done.json()["received"], received, "it says what it committed");
        assert!(received < stream.lines.len() as u64, "it was stopped in the middle");
        let sum: u64 = status["verdicts"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(sum, received);
        tables::of(&site, &stream).sound();
        // The rest is decided as if nothing had been.
        site.run();
        let truth = seqgate_model::replay(&stream.history, &seqgate_model::serial(&stream.history)).observed;
        assert_eq!(seqgate_model::diff(&truth, &tables::of(&site, &stream).observed), Vec::<String>::new());
    }
}

#[test]
fn a_run_that_waits_for_input_stops_too() {
    let site = Site::new(&(machine("orders", "") + &source("pipe", "-", 2)));
    let mut run = site.start_with_stdin(&["run"]);
    let mut writer = run.stdin();
    writeln!(writer, "{}", created("o1").v(1).line()).unwrap();
    writer.flush().unwrap();
    until("the line was decided", || (tables::received(&site.path("seqgate.db")) == 1).then_some(()));
    let told = Instant::now();
    run.signal("TERM");
    run.wait().exits(0);
    assert!(told.elapsed() < STOP_WITHIN);
    drop(writer);
}

#[test]
fn a_second_run_is_refused_and_names_the_holder() {
    let site = orders();
    site.write(&lines(&[created("o1").v(1)]));
    let run = following(&site);
    for args in [&["run"][..], &["run", "--until-idle"]] {
        let refused = site.refused(3, args);
        assert_eq!(refused["error"]["code"], "held");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("process {}", run.pid())), "{message}");
        assert!(message.contains("stop it first"), "{message}");
    }
    // The first one has noticed nothing.
    site.append(&lines(&[paid("o1").v(2)]));
    until("the first run goes on", || (site.verdicts() == json!({"applied": 2})).then_some(()));
    run.signal("TERM");
    run.wait().exits(0);
    site.seqgate(&["run", "--until-idle"]).exits(0);
}

#[test]
fn the_lock_goes_with_its_process() {
    let site = orders();
    site.write(&lines(&[created("o1").v(1)]));
    let run = following(&site);
    assert_eq!(run.kill().status.signal(), Some(9));
    // No manual step: not even the lock file is to be removed.
    assert!(site.path("seqgate.db.lock").exists());
    site.append(&lines(&[paid("o1").v(2)]));
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("paid".into(), 2, 2));
}

#[test]
fn a_stopped_process_is_still_the_holder() {
    let site = orders();
    let run = following(&site);
    run.signal("STOP");
    site.refused(3, &["run", "--until-idle"]);
    run.signal("CONT");
    run.signal("TERM");
    run.wait().exits(0);
}

#[test]
fn people_decide_beside_a_running_host() {
    let site = orders();
    let run = following(&site);
    // o1 is held by a refused event, o2 waits for what o1 becomes.
    let waits = paid("o2").v(2).set("dependson", "orders/o1@3");
    site.append(&lines(&[
        created("o1").v(1),
        ev("order.shipped", "o1").v(2),
        paid("o1").v(3),
        created("o2").v(1),
        waits,
    ]));
    until("both are held", || (site.verdicts() == json!({"applied": 2, "illegal": 1, "deferred": 2})).then_some(()));
    let id = site.list(&["dead-letter", "list"])[0]["id"].as_str().unwrap().to_owned();
    site.ask(&["dead-letter", "skip", &id, "--reason", "it was a test parcel"]);
    assert_eq!(site.stands("orders", "o1"), ("paid".into(), 3, 3));
    until("the host decides what waited for it", || {
        (site.verdicts() == json!({"applied": 4, "skipped": 1})).then_some(())
    });
    // It goes on from what the person left, not from what it remembers.
    site.append(&lines(&[ev("order.shipped", "o1").v(4), ev("order.shipped", "o2").v(3)]));
    until("the host goes on", || (site.verdicts() == json!({"applied": 6, "skipped": 1})).then_some(()));
    assert_eq!(site.stands("orders", "o1"), ("shipped".into(), 4, 4));
    // Gaps are closed beside it too.
    site.append(&lines(&[created("o3").v(1), ev("order.shipped", "o3").v(3)]));
    until("a gap", || (site.verdicts()["deferred"] == 1).then_some(()));
    let file = site.put("missing.jsonl", paid("o3").v(2).line());
    site.ask(&["gap", "repair", "orders", "o3", "--from", &file]);
    assert_eq!(site.stands("orders", "o3"), ("shipped".into(), 3, 3));
    site.append(&lines(&[ev("order.delivered", "o3").v(4)]));
    until("and again", || (site.stands("orders", "o3").0 == "delivered").then_some(()));
    run.signal("TERM");
    let report = run.wait().exits(0).json();
    assert_eq!(report["received"], 10, "what people brought is not among what the host read: {report}");
}
