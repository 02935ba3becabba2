//! R10: where events come from. Files that grow, end early, shrink and change; standard input; other cuts of the same
//! stream (G8) and the same stream again (G3).

use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use crate::program::{self, Ev, Site, batch, created, ev, events, lines, machine, paid, source, until};
use crate::stream::stream;
use crate::tables;

fn orders(partitions: u32) -> Site {
    Site::new(&(machine("orders", "") + &events(partitions)))
}

/// Waits until a run that is under way has given these verdicts.
#[track_caller]
fn comes_to(site: &Site, verdicts: &Value) {
    until(&format!("{verdicts}"), || {
        let status = site.seqgate(&["status", "--json"]);
        let mut got = if status.code() == Some(0) { status.json()["verdicts"].take() } else { json!({}) };
        got.as_object_mut()?.retain(|_, n| n != 0);
        (got == *verdicts).then_some(())
    });
}

#[test]
fn a_file_that_grows_is_followed() {
    let site = orders(2);
    let run = site.start(&["run"]);
    site.append(&[created("o1").v(1).line()]);
    comes_to(&site, &json!({"applied": 1}));
    site.append(&[ev("order.shipped", "o1").v(3).line(), paid("o1").v(2).line()]);
    comes_to(&site, &json!({"applied": 3}));
    run.signal("TERM");
    run.wait().exits(0);
    assert_eq!(site.stands("orders", "o1"), ("shipped".into(), 3, 3));
}

#[test]
fn half_a_line_waits_for_its_newline() {
    let site = Site::new(&(machine("orders", "") + &events(2) + &source("other", "other.jsonl", 1)));
    site.put("other.jsonl", "");
    let run = site.start(&["run"]);
    let line = created("o1").v(1).line();
    let (head, tail) = line.split_at(line.len() / 2);
    site.append_bytes(head.as_bytes());
    // The other file is looked at as often: what comes there several times has had its chance here.
    for n in 1..=4_u64 {
        let mut other = fs::OpenOptions::new().append(true).open(site.path("other.jsonl")).unwrap();
        writeln!(other, "{}", created(&format!("x{n}")).v(1).line()).unwrap();
        comes_to(&site, &json!({"applied": n}));
    }
    site.append_bytes(tail.as_bytes());
    site.append_bytes(b"\n");
    comes_to(&site, &json!({"applied": 5}));
    assert_eq!(site.stands("orders", "o1"), ("pending".into(), 1, 1));
    run.signal("INT");
    run.wait().exits(0);
}

#[test]
fn until_idle_takes_a_last_line_without_newline() {
    let site = orders(2);
    site.append_bytes(format!("{}\n{}", created("o1").v(1).line(), paid("o1").v(2).line()).as_bytes());
    assert_eq!(site.run()["received"], 2);
    assert_eq!(site.verdicts(), json!({"applied": 2}));
    assert_eq!(site.run()["received"], 0, "it is taken once");
    // Whoever goes on writing ends the line first.
    site.append_bytes(format!("\n{}\n", ev("order.shipped", "o1").v(3).line()).as_bytes());
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("shipped".into(), 3, 3));
    assert_eq!(site.verdicts(), json!({"applied": 3}), "the end of a line that was taken is no blank line");
}

#[test]
fn standard_input_is_read_to_its_end() {
    let site = Site::new(&(machine("orders", "") + &source("pipe", "-", 2)));
    let two = format!("{}\n{}", created("o1").v(1).line(), paid("o1").v(2).line());
    let mut run = site.start_with_stdin(&["run"]);
    run.stdin().write_all(two.as_bytes()).unwrap();
    run.wait().exits(0);
    assert_eq!(site.verdicts(), json!({"applied": 2}), "the last line needs no newline");
    // Lines from standard input are new ones at each run: the same again are duplicates, not old positions.
    let mut run = site.start_with_stdin(&["run", "--until-idle"]);
    let third = ev("order.shipped", "o1").v(3).line();
    run.stdin().write_all(format!("{two}\n{third}\n").as_bytes()).unwrap();
    run.wait().exits(0);
    assert_eq!(site.verdicts(), json!({"applied": 3, "duplicate": 2}));
}

/// A long order, so that its file is longer than the beginning that identifies it.
fn padded(n: usize) -> Vec<String> {
    let note = "x".repeat(600);
    let order = |k: usize| {
        let data = format!(r#"{{"total":1999,"currency":"EUR","note":"{note}"}}"#);
        created(&format!("o{k}")).v(1).data(&data).line()
    };
    (0..n).map(order).collect()
}

#[test]
fn a_file_that_was_truncated_stops_its_source() {
    for count in [20, 3] {
        let site = orders(2);
        site.write(&padded(count));
        site.run();
        let before = site.verdicts();
        let (read, left) = (fs::metadata(site.path("events.jsonl")).unwrap().len(), 1200);
        fs::OpenOptions::new().write(true).open(site.path("events.jsonl")).unwrap().set_len(left).unwrap();
        let refused = site.refused(1, &["run", "--until-idle"]);
        let message = refused["error"]["message"].as_str().unwrap();
        assert_eq!(refused["error"]["code"], "source");
        assert!(message.contains("truncated"), "{message}");
        assert!(
            message.contains(&left.to_string()) && message.contains(&read.to_string()),
            "both positions: {message}"
        );
        assert_eq!(site.verdicts(), before, "nothing was decided");
    }
}

#[test]
fn a_file_that_is_truncated_while_it_is_read_stops_the_run() {
    let site = orders(2);
    site.write(&padded(8));
    let run = site.start(&["run"]);
    comes_to(&site, &json!({"applied": 8}));
    let read = fs::metadata(site.path("events.jsonl")).unwrap().len();
    fs::OpenOptions::new().write(true).open(site.path("events.jsonl")).unwrap().set_len(100).unwrap();
    run.wait().exits(1).says("truncated").says(&read.to_string()).says("100");
}

#[test]
fn a_file_that_was_replaced_stops_its_source() {
    let site = orders(2);
    site.write(&padded(8));
    site.run();
    let read = fs::metadata(site.path("events.jsonl")).unwrap().len().to_string();
    // Written anew in place: the same inode, another beginning.
    site.write(&[padded(8), padded(9)].concat().split_off(1));
    site.seqgate(&["run", "--until-idle"]).exits(1).says("replaced").says(&read);
    // Another file under the same name, even with the same beginning.
    site.put("next.jsonl", padded(9).join("\n"));
    fs::rename(site.path("next.jsonl"), site.path("events.jsonl")).unwrap();
    site.seqgate(&["run", "--until-idle"]).exits(1).says("replaced").says(&read).says("new source");
    assert_eq!(site.verdicts(), json!({"applied": 8}));
    // What the message says to do works: nothing is lost, and what was read before is a duplicate.
    site.configure(&(machine("orders", "") + &source("events-2", "events.jsonl", 2)));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 9, "duplicate": 8}));
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_stops_the_run() {
    let site = orders(2);
    site.write(&padded(8));
    let run = site.start(&["run"]);
    comes_to(&site, &json!({"applied": 8}));
    site.put("next.jsonl", padded(9).join("\n") + "\n");
    fs::rename(site.path("next.jsonl"), site.path("events.jsonl")).unwrap();
    run.wait().exits(1).says("replaced");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let site = Site::new(&(machine("orders", "") + &source("missing", "nowhere.jsonl", 2)));
    site.seqgate(&["run", "--until-idle"]).exits(1).says("nowhere.jsonl").says("missing");
    site.seqgate(&["check"]).exits(1).says("nowhere.jsonl");
}

#[test]
fn the_number_of_partitions_is_fixed() {
    let site = orders(2);
    site.write(&lines(&[created("o1").v(1)]));
    site.run();
    site.configure(&(machine("orders", "") + &events(3)));
    let refused = site.refused(2, &["run", "--until-idle"]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("2 partitions") && message.contains('3'), "{message}");
    assert!(message.contains("set `partitions` back, or name a new source"), "{message}");
    let check = site.seqgate(&["check", "--json"]).exits(2).json();
    assert_eq!(check["ok"], false);
    // The procedure: a new source for the same file.
    site.configure(&(machine("orders", "") + &source("events-3", "events.jsonl", 3)));
    site.append(&lines(&[paid("o1").v(2)]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 2, "duplicate": 1}));
}

#[test]
fn two_sources_feed_one_machine() {
    let sources = events(2) + &source("second", "second.jsonl", 3);
    let site = Site::new(&(machine("orders", "") + &sources));
    site.write(&lines(&[created("o1").v(1), ev("order.shipped", "o1").v(3)]));
    site.put("second.jsonl", lines(&[created("o1").v(1), paid("o1").v(2)]).join("\n") + "\n");
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("shipped".into(), 3, 3));
    assert_eq!(site.verdicts(), json!({"applied": 3, "duplicate": 1}));
    let twice = &site.list(&["event", "show", "o1-1"])[0];
    assert_eq!(twice["deliveries"], 2);
    let sources = [&twice["first"]["source"], &twice["last"]["source"]];
    assert!(sources.contains(&&json!("events")) && sources.contains(&&json!("second")), "{twice}");
    // Without versions the order between the two would decide (R4.7).
    for ordering in ["causal", "arrival"] {
        let two = |more: &str| machine("orders", &format!("ordering = \"{ordering}\"\n{more}")) + &sources_of_two();
        let site = Site::new(&two(""));
        site.put("second.jsonl", "");
        site.seqgate(&["run", "--until-idle"]).exits(2).says("many_sources");
        site.seqgate(&["check"]).exits(2).says("many_sources");
        site.configure(&two("many_sources = true"));
        site.seqgate(&["run", "--until-idle"]).exits(0);
    }
}

fn sources_of_two() -> String {
    events(2) + &source("second", "second.jsonl", 3)
}

/// `order.created` with so many bytes of data.
fn sized(key: &str, bytes: usize) -> Ev {
    let data = |note: &str| format!(r#"{{"total":1999,"currency":"EUR","note":"{note}"}}"#);
    created(key).v(1).data(&data(&"x".repeat(bytes - data("").len())))
}

#[test]
fn giant_lines_have_limits() {
    let site = orders(2);
    let giant = "x".repeat(3 << 20);
    site.write(&[sized("o1", 1 << 20).line(), sized("o2", (1 << 20) + 1).line(), giant, String::new()]);
    site.append(&[created("o3").v(1).line()]);
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 2, "malformed": 3}));
    let codes: Vec<Value> = site.list(&["dead-letter", "list"]).iter().map(|d| d["code"].clone()).collect();
    for code in ["data-too-large", "json", "empty"] {
        assert!(codes.contains(&json!(code)), "{code} is in {codes:?}");
    }
    let smaller = Site::new(&(machine("orders", "") + &events(2) + "[run]\ndata_limit = \"1KiB\"\n"));
    smaller.write(&[sized("o1", 1024).line(), sized("o2", 1025).line()]);
    smaller.run();
    assert_eq!(smaller.verdicts(), json!({"applied": 1, "malformed": 1}));
}

#[test]
fn what_is_no_log_of_events_stops_its_source() {
    let site = orders(2);
    site.write(&lines(&[created("o1").v(1)]));
    let at = fs::metadata(site.path("events.jsonl")).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(site.path("events.jsonl")).unwrap();
    file.set_len(at + (65 << 20)).unwrap();
    site.seqgate(&["run", "--until-idle"]).exits(1).says(&format!("the line at {at}"));
    assert_eq!(site.verdicts(), json!({"applied": 1}), "what stands before it was decided");
}

/// The site that the streams are made for.
fn streamed(run: &str, partitions: u32) -> Site {
    let machines = ["orders", "subscriptions", "accounts"].map(|m| machine(m, ""));
    Site::new(&(run.to_owned() + &machines.concat() + &events(partitions)))
}

#[test]
fn the_same_stream_again_changes_duplicate_counts_only() {
    let stream = stream(7, 90);
    let site = streamed("", 3);
    site.write(&stream.lines);
    site.run();
    let (first, verdicts) = (tables::of(&site, &stream), site.verdicts());
    site.append(&stream.lines);
    site.run();
    let mut second = tables::of(&site, &stream);
    first.same_history(&second);
    // Deliveries are counted; the rest of an inbox row is as it was. A conflict counts its copies.
    for (id, row) in &mut second.observed.inbox {
        row.deliveries = first.observed.inbox[id].deliveries;
    }
    for (id, row) in &mut second.observed.conflicts {
        row.copies = first.observed.conflicts[id].copies;
    }
    let malformed = verdicts["malformed"].as_u64().unwrap();
    assert_eq!(second.observed.letters.len() as u64, first.observed.letters.len() as u64 + malformed);
    second.observed.letters.clone_from(&first.observed.letters);
    second.observed.counters.clone_from(&first.observed.counters);
    assert_eq!(seqgate_model::diff(&first.observed, &second.observed), Vec::<String>::new());
    // Every readable line is a duplicate now; an unreadable one at a new position is malformed again.
    let mut want = verdicts.clone();
    let readable = stream.lines.len() as u64 - malformed;
    want["duplicate"] = json!(verdicts["duplicate"].as_u64().unwrap() + readable);
    want["malformed"] = json!(2 * malformed);
    assert_eq!(site.verdicts(), want);
}

#[test]
fn other_cuts_and_partitions_give_the_same_bytes() {
    let stream = stream(8, 90);
    let whole = streamed("", 1);
    whole.write(&stream.lines);
    whole.run();
    let whole = tables::of(&whole, &stream);
    let serial = seqgate_model::replay(&stream.history, &seqgate_model::serial(&stream.history));
    assert_eq!(seqgate_model::diff(&serial.observed, &whole.observed), Vec::<String>::new());
    for (size, partitions, parts) in [(1, 1, 4), (7, 8, 1), (64, 3, 5), (512, 5, 2)] {
        let site = streamed(&batch(size), partitions);
        for part in stream.lines.chunks(stream.lines.len().div_ceil(parts)) {
            site.append(part);
            site.run();
        }
        let mut cut = tables::of(&site, &stream);
        whole.same_history(&cut);
        // Verdicts are counted by partition. What comes first between partitions is free: the same event waits, once for
        // those before it and once behind one that was refused meanwhile.
        if partitions > 1 {
            cut.observed.counters.clone_from(&whole.observed.counters);
            for (id, row) in &mut cut.observed.waiting {
                row.reason = whole.observed.waiting[id].reason;
            }
        }
        assert_eq!(
            seqgate_model::diff(&whole.observed, &cut.observed),
            Vec::<String>::new(),
            "{size} {partitions} {parts}"
        );
        nothing_is_silent(&site, stream.lines.len() as u64);
    }
}

/// G6: the sums agree in every partition, and together they are what was received.
fn nothing_is_silent(site: &Site, deliveries: u64) {
    let status = site.ask(&["status"]);
    let sum = |verdicts: &Value| verdicts.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    let partitions = status["partitions"].as_array().unwrap();
    for partition in partitions {
        assert_eq!(sum(&partition["verdicts"]), partition["received"].as_u64().unwrap(), "{partition}");
    }
    let received: u64 = partitions.iter().map(|p| p["received"].as_u64().unwrap()).sum();
    assert_eq!((received, sum(&status["verdicts"])), (deliveries, deliveries));
    assert_eq!(status["verdicts"]["deferred"], status["deferred"], "each that waits is counted once");
}

#[test]
fn environment_and_paths_name_the_same_things() {
    // Paths are relative to the configuration's folder, wherever the command is typed.
    let site = orders(2);
    site.write(&lines(&[created("o1").v(1)]));
    let elsewhere = tempfile::tempdir().unwrap();
    let config = site.path("seqgate.toml").display().to_string();
    let mut command = std::process::Command::new(program::binary());
    command.args(["run", "--until-idle", "--config", &config]).current_dir(elsewhere.path());
    assert!(command.env("SEQGATE_RUN__BATCH", "1").status().unwrap().success());
    assert_eq!(site.verdicts(), json!({"applied": 1}));
}
