//! The embedded source: what is posted or appended is on disk before it is answered, decided once and in order, and goes
//! when it is decided and old, or when the log is full (G2, G3, G11; R10).

mod durable;
pub mod http;
mod room;

use serde_json::{Value, json};

use crate::program::{Site, created, ev, lines, machine, paid, until};
use http::{address, get, post, request};

pub const ONE: &str = "application/cloudevents+json";
pub const BATCH: &str = "application/cloudevents-batch+json";

/// An embedded source, with further settings, and a listener on a free port.
pub fn embedded(settings: &str) -> String {
    format!(
        "[http]\nlisten = \"127.0.0.1:0\"\n\n[[source]]\nname = \"web\"\nkind = \"embedded\"\npartitions = 2\n{settings}\n\n"
    )
}

pub fn site(settings: &str) -> Site {
    Site::new(&(machine("orders", "") + &embedded(settings)))
}

/// A batch of events as one body.
pub fn batch(lines: &[String]) -> String {
    format!("[{}]", lines.join(","))
}

/// Waits until these verdicts were given.
#[track_caller]
pub fn comes_to(site: &Site, verdicts: &Value) {
    until(&format!("{verdicts}"), || (site.verdicts() == *verdicts).then_some(()));
}

#[test]
fn events_are_posted_alone_and_together() {
    let site = site("");
    let run = site.start(&["run"]);
    let at = address(&run);
    let first = post(&at, ONE, &created("o1").v(1).line()).is(202).json();
    assert_eq!(first["accepted"], 1);
    assert_eq!(first["events"][0]["id"], "o1-1");
    assert_eq!(first["events"][0]["source"], "web");
    assert_eq!(first["events"][0]["offset"], 0);
    let rest = lines(&[ev("order.shipped", "o1").v(3), paid("o1").v(2)]);
    let rest = post(&at, BATCH, &batch(&rest)).is(202).json();
    let offsets: Vec<_> = rest["events"].as_array().unwrap().iter().map(|e| e["offset"].clone()).collect();
    assert_eq!(offsets, [json!(1), json!(2)], "one entity's events are one partition's");
    comes_to(&site, &json!({"applied": 3}));
    assert_eq!(site.stands("orders", "o1"), ("shipped".into(), 3, 3));
    // The same once more is known by its id.
    post(&at, ONE, &paid("o1").v(2).line()).is(202);
    comes_to(&site, &json!({"applied": 3, "duplicate": 1}));
    run.signal("TERM");
    run.wait().exits(0);
}

#[test]
fn attributes_may_be_headers() {
    let site = site("machine = \"orders\"");
    let run = site.start(&["run"]);
    let at = address(&run);
    let attributes = [
        ("ce-specversion", "1.0"),
        ("ce-id", "caf%C3%A9-1"),
        ("ce-source", "/tests"),
        ("ce-type", "order.created"),
        ("ce-subject", "caf%C3%A9"),
        ("ce-entityversion", "1"),
        ("content-type", "application/json"),
    ];
    let payload = br#"{"total": 1999, "currency": "EUR"}"#;
    let answer = request(&at, "POST", "/v1/events", &attributes, payload).is(202).json();
    assert_eq!(answer["events"][0]["id"], "café-1");
    comes_to(&site, &json!({"applied": 1}));
    assert_eq!(site.stands("orders", "café"), ("pending".into(), 1, 1));
    // The same event as one document: another form, the same content.
    let same = r#"{"specversion":"1.0","id":"café-1","source":"/tests","type":"order.created","subject":"café","entityversion":1,"data":{"total": 1999, "currency": "EUR"}}"#;
    post(&at, ONE, same).is(202);
    comes_to(&site, &json!({"applied": 1, "duplicate": 1}));
    run.signal("TERM");
    run.wait().exits(0);
}

#[test]
fn a_batch_is_taken_whole_or_not_at_all() {
    let site = site("");
    let run = site.start(&["run"]);
    let at = address(&run);
    let mut events = lines(&[created("o1").v(1), created("o2").v(1), created("o3").v(1)]);
    events[1] = events[1].replace("\"id\"", "\"ident\"");
    events.push("17".to_owned());
    let refused = post(&at, BATCH, &batch(&events)).is(400);
    assert_eq!(refused.header("content-type"), Some("application/problem+json"));
    let problem = refused.json();
    assert_eq!(problem["type"], "urn:seqgate:problem:invalid-events");
    assert_eq!(problem["status"], 400);
    let which: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|e| e["index"].clone()).collect();
    assert_eq!(which, [json!(1), json!(3)]);
    for error in problem["errors"].as_array().unwrap() {
        assert!(!error["code"].as_str().unwrap().is_empty() && !error["detail"].as_str().unwrap().is_empty());
    }
    // Nothing of it came.
    post(&at, ONE, &created("o9").v(1).line()).is(202);
    comes_to(&site, &json!({"applied": 1}));
    run.signal("TERM");
    run.wait().exits(0);
}

#[test]
fn what_is_no_request_is_answered_with_what_to_do() {
    let site = Site::new(
        &(machine("orders", "")
            + &embedded("")
            + &embedded("")
                .split_once("[[source]]")
                .map(|(_, s)| format!("[[source]]{}", s.replace("web", "other")))
                .unwrap()),
    );
    let run = site.start(&["run"]);
    let at = address(&run);
    let line = created("o1").v(1).line();
    let kind = |answer: http::Answer| answer.json()["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
    let to = |path: &str, content_type: &str, body: &str| {
        request(&at, "POST", path, &[("content-type", content_type)], body.as_bytes())
    };
    assert_eq!(kind(to("/v1/events", ONE, &line).is(400)), "source");
    assert_eq!(kind(to("/v1/events?source=none", ONE, &line).is(400)), "source");
    assert_eq!(kind(to("/v1/events?sauce=web", ONE, &line).is(400)), "parameters");
    assert_eq!(kind(to("/v1/events?source=web", "application/json", &line).is(415)), "content-type");
    assert_eq!(kind(to("/v1/events?source=web", BATCH, &line).is(400)), "batch");
    assert_eq!(kind(to("/v1/events?source=web", ONE, "").is(400)), "invalid-events");
    assert_eq!(kind(get(&at, "/v1/events").is(405)), "method");
    assert_eq!(kind(get(&at, "/nothing").is(404)), "no-such-path");
    let twice = [("ce-specversion", "1.0"), ("ce-id", "a"), ("ce-id", "b")];
    assert_eq!(kind(request(&at, "POST", "/v1/events?source=web", &twice, b"").is(400)), "invalid-events");
    let large = vec![b' '; (16 << 20) + 1];
    let headers = [("content-type", ONE)];
    assert_eq!(kind(request(&at, "POST", "/v1/events?source=web", &headers, &large).is(413)), "too-large");
    to("/v1/events?source=other", ONE, &line).is(202);
    comes_to(&site, &json!({"applied": 1}));
    run.signal("TERM");
    run.wait().exits(0);
}

#[test]
fn lines_are_appended_beside_a_run_and_before_it() {
    let site = site("machine = \"orders\"");
    let two = lines(&[created("o1").v(1), paid("o1").v(2)]);
    site.write(&[two[0].clone(), "no event".to_owned(), two[1].clone()]);
    let answer = site.ask(&["ingest", "events.jsonl"]);
    assert_eq!((&answer["events"], &answer["unreadable"]), (&json!(3), &json!(1)));
    let run = site.start(&["run"]);
    comes_to(&site, &json!({"applied": 2, "malformed": 1}));
    assert_eq!(site.list(&["dead-letter", "list"])[0]["position"]["partition"], 0);
    // Another process appends, and this one sees it.
    let mut pipe = site.start_with_stdin(&["ingest", "-"]);
    std::io::Write::write_all(&mut pipe.stdin(), ev("order.shipped", "o1").v(3).line().as_bytes()).unwrap();
    pipe.wait().exits(0).says("1 line appended to the log of web");
    comes_to(&site, &json!({"applied": 3, "malformed": 1}));
    run.signal("TERM");
    run.wait().exits(0);
    assert_eq!(site.refused(2, &["ingest", "events.jsonl", "--source", "none"])["error"]["code"], "no-source");
    assert_eq!(site.refused(1, &["ingest", "nothing.jsonl"])["error"]["code"], "no-file");
}

#[test]
fn until_idle_takes_what_the_log_holds() {
    let site = site("");
    site.write(&lines(&[paid("o1").v(2), created("o1").v(1)]));
    site.seqgate(&["ingest", "events.jsonl"]).exits(0);
    assert_eq!(site.run()["received"], 2);
    assert_eq!(site.verdicts(), json!({"applied": 2}));
    assert_eq!(site.run()["received"], 0, "it is taken once");
    // The number of partitions is part of the log.
    site.configure(&(machine("orders", "") + &embedded("").replace("partitions = 2", "partitions = 3")));
    let refused = site.seqgate(&["ingest", "events.jsonl"]);
    assert_eq!(refused.code(), Some(2), "{}", refused.err);
    refused.says("2 partitions");
}

#[test]
fn health_and_metrics_tell_how_it_stands() {
    let site = site("");
    let run = site.start(&["run"]);
    let at = address(&run);
    assert_eq!(get(&at, "/health/live").is(200).json()["status"], "ok");
    until("it is ready", || (get(&at, "/health/ready").status == 200).then_some(()));
    let events = lines(&[
        created("o1").v(1),
        paid("o1").v(3),
        ev("order.shipped", "o2").v(1),
        created("o3").v(2),
        created("o1").v(1),
    ]);
    post(&at, BATCH, &batch(&events)).is(202);
    comes_to(&site, &json!({"applied": 1, "deferred": 2, "illegal": 1, "duplicate": 1}));
    let value = |page: &str, name: &str| -> f64 {
        let line = page.lines().filter(|line| line.starts_with(name)).map(|l| l.rsplit_once(' ').unwrap().1);
        line.map(|n| n.parse::<f64>().unwrap()).sum()
    };
    let page = until("the sums are fresh", || {
        let page = get(&at, "/metrics").is(200).body;
        (value(&page, "seqgate_received_total") == 5.0).then_some(page)
    });
    for (name, want) in [
        ("seqgate_verdicts{source=\"web\"", 5.0),
        ("seqgate_open{what=\"waiting\"}", 2.0),
        ("seqgate_open{what=\"dead_letters\"}", 1.0),
        ("seqgate_blocked_entities", 1.0),
        ("seqgate_ghost_entities", 1.0),
        ("seqgate_entities", 1.0),
        ("seqgate_alarms{kind=\"refused event parked\"}", 1.0),
        ("seqgate_alarms{kind=\"conflict\"}", 0.0),
        ("seqgate_ingest_events_total{source=\"web\"}", 5.0),
        ("seqgate_ingest_requests_total{outcome=\"accepted\"}", 1.0),
        ("seqgate_log_events{source=\"web\"}", 5.0),
    ] {
        assert_eq!(value(&page, name), want, "{name}\n{page}");
    }
    assert!(value(&page, "seqgate_oldest_timestamp_seconds{what=\"waiting\"}") > 1.0e9, "{page}");
    for phase in ["fetch", "decode", "load", "decide", "commit"] {
        let counted = format!("seqgate_batch_phase_seconds_count{{phase=\"{phase}\"}}");
        assert!(value(&page, &counted) >= 1.0, "{phase}\n{page}");
    }
    run.signal("TERM");
    run.wait().exits(0);
}
