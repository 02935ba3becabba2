//! R5.6: what people do. Each decision does what it says, is on record with its actor and reason, and cannot be done
//! twice; what cannot be carried out fails and changes nothing.

use serde_json::{Value, json};

use crate::program::{Site, changed, component, created, ev, events, lines, machine, machine_with, paid};

const BY: [&str; 4] = ["--actor", "ada", "--reason", "ticket 7"];

fn orders(settings: &str) -> Site {
    Site::new(&(machine("orders", settings) + &events(2)))
}

/// A site that has decided these lines.
fn decided(events: &[crate::program::Ev]) -> Site {
    let site = orders("");
    site.write(&lines(events));
    site.run();
    site
}

fn act(site: &Site, args: &[&str]) -> Value {
    site.ask(&[args, &BY].concat())
}

/// The id of the only dead letter that is open.
fn open_letter(site: &Site) -> String {
    let open = site.list(&["dead-letter", "list", "--status", "open"]);
    assert_eq!(open.len(), 1, "{open:?}");
    open[0]["id"].as_str().unwrap().to_owned()
}

fn letter_status(site: &Site, id: &str) -> String {
    site.ask(&["dead-letter", "show", id])["status"].as_str().unwrap().to_owned()
}

/// The last thing that somebody did, which has to be this.
#[track_caller]
fn on_record(site: &Site, action: &str, subject: &str) {
    let last = &site.list(&["audit", "list"])[0];
    assert_eq!((&last["actor"], &last["reason"], &last["action"]), (&json!("ada"), &json!("ticket 7"), &json!(action)));
    assert!(last["subject"].as_str().unwrap().contains(subject), "{subject} is not in {last}");
    assert!(!last["outcome"].as_str().unwrap().is_empty(), "{last}");
}

/// Fails with this code, and leaves no trace.
#[track_caller]
fn fails(site: &Site, exit: i32, args: &[&str]) -> Value {
    let before = (site.verdicts(), site.ask(&["entity", "list"]), site.list(&["audit", "list"]).len());
    let error = site.refused(exit, &[args, &BY].concat())["error"].take();
    let after = (site.verdicts(), site.ask(&["entity", "list"]), site.list(&["audit", "list"]).len());
    assert_eq!(before, after, "{args:?} changed something");
    error
}

/// A refused payment, and what waits behind it.
fn parked() -> Site {
    let wrong = paid("o1").v(2).data(r#"{"amount":5,"currency":"EUR"}"#);
    let site = decided(&[created("o1").v(1), wrong, ev("order.shipped", "o1").v(3), ev("order.delivered", "o1").v(4)]);
    assert_eq!(site.verdicts(), json!({"applied": 1, "illegal": 1, "deferred": 2}));
    site
}

#[test]
fn skipping_consumes_the_version_and_releases_what_waits() {
    let site = decided(&[created("o1").v(1), ev("order.shipped", "o1").v(2), paid("o1").v(3)]);
    let id = open_letter(&site);
    let blocked = &site.entity("orders", "o1")["blocked"];
    assert_eq!(
        (&blocked["reason"], &blocked["id"], &blocked["version"]),
        (&json!("dead-letter"), &json!(id), &json!(2))
    );
    act(&site, &["dead-letter", "skip", &id]);
    on_record(&site, "dead-letter skip", &id);
    assert_eq!(site.stands("orders", "o1"), ("paid".into(), 3, 3));
    assert_eq!(site.entity("orders", "o1")["blocked"], Value::Null);
    assert_eq!(site.verdicts(), json!({"applied": 2, "skipped": 1}));
    assert_eq!(letter_status(&site, &id), "skipped", "it stays listed");
    let row = &site.list(&["entity", "history", "orders", "o1"])[1];
    assert_eq!((&row["cause"], &row["actor"]["name"], &row["consumed"]), (&json!("skip"), &json!("ada"), &json!(2)));
    for verb in ["skip", "redrive", "compensate"] {
        assert_eq!(fails(&site, 1, &["dead-letter", verb, &id])["code"], "not-open");
    }
    // What was skipped is known: a copy is a duplicate, another content a conflict.
    site.append(&lines(&[ev("order.shipped", "o1").v(2), ev("order.cancelled", "o1").v(2).id("other")]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 2, "skipped": 1, "duplicate": 1, "conflict": 1}));
}

#[test]
fn ids_that_name_nothing() {
    let site = parked();
    for (noun, verb) in
        [("dead-letter", "skip"), ("dead-letter", "redrive"), ("deferred", "dismiss"), ("conflict", "dismiss")]
    {
        assert_eq!(fails(&site, 1, &[noun, verb, "0123456789abcdef"])["code"], "not-found");
        let usage = fails(&site, 2, &[noun, verb, "o1-2"]);
        assert_eq!(usage["code"], "usage");
        site.seqgate(&[noun, verb]).exits(2);
    }
    assert_eq!(site.refused(1, &["entity", "show", "orders", "nobody"])["error"]["code"], "not-found");
    let machine = site.refused(1, &["entity", "show", "ordres", "o1"])["error"].take();
    assert_eq!(machine["code"], "no-such-machine");
    assert!(machine["message"].as_str().unwrap().contains("did you mean `orders`?"), "{machine}");
    assert_eq!(site.refused(1, &["event", "show", "nothing"])["error"]["code"], "not-found");
}

#[test]
fn redriving_under_the_same_rules_changes_nothing_but_the_count() {
    let site = parked();
    let id = open_letter(&site);
    act(&site, &["dead-letter", "redrive", &id]);
    on_record(&site, "dead-letter redrive", &id);
    let letter = site.ask(&["dead-letter", "show", &id]);
    assert_eq!(
        (&letter["status"], &letter["attempts"], &letter["code"]),
        (&json!("open"), &json!(2), &json!("amount-differs"))
    );
    assert_eq!(site.stands("orders", "o1"), ("pending".into(), 1, 1));
    assert_eq!(site.verdicts(), json!({"applied": 1, "illegal": 1, "deferred": 2}));
}

#[test]
fn redriving_under_new_rules_puts_it_right() {
    let site = Site::new(&(machine("sensors", "") + &events(2)));
    let report = |v: u64, data: &str| ev("sensor.reported", "s1").v(v).data(data);
    site.write(&lines(&[
        report(1, r#"{"celsius":21500}"#),
        report(2, r#"{"celsius":21600,"calibration":0}"#),
        report(3, r#"{"celsius":21700}"#),
        ev("sensor.reported", "s2").v(1).data(r#"{"celsius":1}"#),
    ]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 2, "fault": 1, "deferred": 1}));
    let id = open_letter(&site);
    let fixed =
        changed("sensors-fixed", "sensors", "calibration.unwrap_or(1)", "calibration.filter(|c| *c != 0).unwrap_or(1)");
    let digest =
        act(&site, &["rules", "register", &fixed.display().to_string()])["digest"].as_str().unwrap().to_owned();
    on_record(&site, "rules register", &digest);
    act(&site, &["rules", "activate", &digest]);
    on_record(&site, "rules activate", &digest);
    assert_eq!(site.verdicts()["fault"], 1, "new rules decide nothing by themselves");
    let answer = act(&site, &["dead-letter", "redrive", &id]);
    assert_eq!((&answer["id"], &answer["verdict"]), (&json!(id), &json!("applied")));
    assert_eq!(site.stands("sensors", "s1"), ("online".into(), 3, 3));
    assert_eq!(site.entity("sensors", "s1")["data"], json!({"celsius": 21700}));
    assert_eq!(site.verdicts(), json!({"applied": 4}), "the verdicts have moved");
    assert_eq!(letter_status(&site, &id), "redriven");
    let digests: Vec<Value> =
        site.list(&["entity", "history", "sensors", "s1"]).iter().map(|row| row["activation"].clone()).collect();
    assert_eq!(digests, [json!(1), json!(2), json!(2)]);
    assert_eq!(fails(&site, 1, &["dead-letter", "redrive", &id])["code"], "not-open");
    assert_eq!(site.list(&["alarm", "list"]), Vec::<Value>::new(), "the alarm is cleared with its cause");
}

#[test]
fn compensating_follows_the_rules() {
    let site = decided(&[created("o1").v(1), ev("order.cancelled", "o1").v(2), paid("o1").v(3)]);
    let id = open_letter(&site);
    act(&site, &["dead-letter", "compensate", &id]);
    on_record(&site, "dead-letter compensate", &id);
    assert_eq!(site.stands("orders", "o1"), ("cancelled".into(), 3, 3));
    assert_eq!(site.verdicts(), json!({"applied": 2, "illegal": 1}), "the verdict stays");
    assert_eq!(letter_status(&site, &id), "compensated");
    let sent = site.list(&["outbox", "list"]);
    assert_eq!((sent.len(), &sent[0]["type"], &sent[0]["revision"]), (1, &json!("refund.requested"), &json!(3)));
    assert_eq!(sent[0]["cause"]["id"], "o1-3");
    // What no compensation is declared for cannot be compensated.
    let site = parked();
    let id = open_letter(&site);
    fails(&site, 1, &["dead-letter", "compensate", &id]);
    assert_eq!(letter_status(&site, &id), "open");
}

#[test]
fn replacing_decides_a_corrected_event_in_its_place() {
    let site = parked();
    let id = open_letter(&site);
    let refused = [
        ("another version", paid("o1").v(3).id("right")),
        ("another entity", paid("o2").v(2).id("right")),
        ("refused again", paid("o1").v(2).id("right").data(r#"{"amount":6,"currency":"EUR"}"#)),
        ("a known id", paid("o1").v(2).id("o1-1")),
    ];
    for (what, event) in refused {
        let file = site.put("event.json", event.line());
        let error = fails(&site, 1, &["dead-letter", "replace", &id, "--with", &file]);
        assert_ne!(error["message"], "", "{what}");
        assert_eq!(letter_status(&site, &id), "open", "{what}");
    }
    let file = site.put("event.json", "{}");
    assert_eq!(fails(&site, 1, &["dead-letter", "replace", &id, "--with", &file])["code"], "malformed");
    assert_eq!(fails(&site, 1, &["dead-letter", "replace", &id, "--with", "nowhere.json"])["code"], "no-file");

    let file = site.put("event.json", paid("o1").v(2).id("right").line());
    act(&site, &["dead-letter", "replace", &id, "--with", &file]);
    on_record(&site, "dead-letter replace", &id);
    assert_eq!(site.stands("orders", "o1"), ("delivered".into(), 4, 4));
    let letter = site.ask(&["dead-letter", "show", &id]);
    assert_eq!((&letter["status"], &letter["replaced_by"]["id"]), (&json!("replaced"), &json!("right")));
    // Nobody delivered the corrected one: it is counted nowhere, and can be found.
    assert_eq!(site.verdicts(), json!({"applied": 3, "skipped": 1}));
    let right = &site.list(&["event", "show", "right"])[0];
    assert_eq!((&right["verdict"], &right["first"]), (&json!("applied"), &Value::Null));
    assert_eq!(fails(&site, 1, &["dead-letter", "replace", &id, "--with", &file])["code"], "not-open");
}

#[test]
fn replacing_may_keep_the_id() {
    let site = parked();
    let id = open_letter(&site);
    let file = site.put("event.json", paid("o1").v(2).line());
    act(&site, &["dead-letter", "replace", &id, "--with", &file]);
    assert_eq!(site.stands("orders", "o1"), ("delivered".into(), 4, 4));
    assert_eq!(letter_status(&site, &id), "replaced");
}

#[test]
fn a_malformed_envelope_is_closed_and_holds_nothing() {
    let site = orders("");
    site.write(&[created("o1").v(1).line(), "{\"no\":\"event\"".to_owned(), paid("o1").v(2).line()]);
    site.run();
    let id = open_letter(&site);
    let letter = site.ask(&["dead-letter", "show", &id]);
    assert_eq!(
        (&letter["blocks"], &letter["machine"], &letter["raw"]["data"]),
        (&json!(false), &Value::Null, &json!("{\"no\":\"event\""))
    );
    act(&site, &["dead-letter", "redrive", &id]);
    assert_eq!(letter_status(&site, &id), "open", "it is as unreadable as before");
    act(&site, &["dead-letter", "skip", &id]);
    on_record(&site, "dead-letter skip", &id);
    assert_eq!(site.verdicts(), json!({"applied": 2, "skipped": 1}));
    assert_eq!(site.ask(&["status"])["dead_letters"], 0);
}

#[test]
fn a_bogus_event_that_waits_is_dismissed() {
    let site = decided(&[created("o1").v(1), ev("order.shipped", "o1").v(9), paid("o2").v(4)]);
    let waiting = site.list(&["deferred", "list", "--machine", "orders", "--key", "o1"]);
    let id = waiting[0]["id"].as_str().unwrap();
    act(&site, &["deferred", "dismiss", id]);
    on_record(&site, "deferred dismiss", id);
    assert_eq!(site.verdicts(), json!({"applied": 1, "skipped": 1, "deferred": 1}));
    assert_eq!(site.stands("orders", "o1"), ("pending".into(), 1, 1));
    assert_eq!(site.entity("orders", "o1")["deferred"], 0);
    assert_eq!(fails(&site, 1, &["deferred", "dismiss", id])["code"], "not-found");
    // Its versions are free for events that are true.
    site.append(&lines(&[paid("o1").v(2), ev("order.shipped", "o1").v(3)]));
    site.run();
    assert_eq!(site.stands("orders", "o1"), ("shipped".into(), 3, 3));
}

#[test]
fn a_gap_is_repaired_from_a_file() {
    let (missing, late) = (paid("o1").v(2), ev("order.delivered", "o1").v(4));
    let site = decided(&[created("o1").v(1), ev("order.shipped", "o1").v(3), late, paid("o2").v(2)]);
    let gaps = site.list(&["gap", "list"]);
    let gap = |key: &str| gaps.iter().find(|g| g["key"] == key).unwrap();
    assert_eq!((&gap("o1")["from"], &gap("o1")["to"], &gap("o1")["version"]), (&json!(2), &json!(2), &json!(1)));
    assert_eq!((&gap("o2")["from"], &gap("o2")["to"], &gap("o2")["version"]), (&json!(1), &json!(1), &json!(0)));

    let other = site.put("other.jsonl", paid("o9").v(2).line());
    assert_eq!(fails(&site, 1, &["gap", "repair", "orders", "o1", "--from", &other])["code"], "nothing-found");
    assert_eq!(fails(&site, 1, &["gap", "repair", "orders", "o1", "--from", "nowhere"])["code"], "no-file");
    // The log of the writer: what is known already, another order's, and something unreadable.
    let log = [created("o1").v(1), missing.clone(), ev("order.shipped", "o1").v(3), created("o2").v(1)];
    let file = site.put("log.jsonl", lines(&log).join("\n") + "\nno event\n");
    let answer = act(&site, &["gap", "repair", "orders", "o1", "--from", &file]);
    on_record(&site, "gap repair", "orders/o1");
    assert_eq!((&answer["version"], &answer["unreadable"]), (&json!(4), &json!(1)));
    let verdicts: Vec<&Value> = answer["items"].as_array().unwrap().iter().map(|item| &item["verdict"]).collect();
    assert_eq!(verdicts, ["duplicate", "applied", "duplicate"]);
    assert_eq!(site.stands("orders", "o1"), ("delivered".into(), 4, 4));
    assert_eq!(site.list(&["gap", "list"]).len(), 1, "only the other order's is left");
    assert_eq!(site.entity("orders", "o2")["deferred"], 1, "it was not asked for");
    // It is counted in a partition of its own, and its late copy is a duplicate.
    let status = site.ask(&["status"]);
    let repair = status["partitions"].as_array().unwrap().iter().find(|p| p["source"] == "repair:orders").unwrap();
    assert_eq!((&repair["received"], &repair["verdicts"]["applied"]), (&json!(3), &json!(1)));
    site.append(&lines(&[missing]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 4, "duplicate": 3, "deferred": 1}));
}

#[test]
fn dismissing_a_conflict_at_the_next_version_consumes_it() {
    let site = decided(&[created("o1").v(1).id("x"), paid("o1").v(2).id("x"), ev("order.cancelled", "o1").v(3)]);
    let blocked = site.entity("orders", "o1")["blocked"].take();
    let conflicts = site.list(&["conflict", "list"]);
    let id = conflicts[0]["id"].as_str().unwrap();
    assert_eq!((&blocked["reason"], &blocked["id"]), (&json!("conflict"), &json!(id)));
    assert_eq!(site.ask(&["conflict", "show", id])["content"]["id"], "x");
    act(&site, &["conflict", "dismiss", id]);
    on_record(&site, "conflict dismiss", id);
    assert_eq!(site.stands("orders", "o1"), ("cancelled".into(), 3, 3));
    assert_eq!(site.list(&["entity", "history", "orders", "o1"])[1]["cause"], "dismiss");
    assert_eq!(site.verdicts(), json!({"applied": 2, "skipped": 1}));
    assert_eq!(fails(&site, 1, &["conflict", "dismiss", id])["code"], "dismissed");
    assert_eq!(site.list(&["conflict", "list", "--open"]), Vec::<Value>::new());
    assert_eq!(site.list(&["alarm", "list"]), Vec::<Value>::new());
}

#[test]
fn dismissing_a_conflict_elsewhere_only_closes_it() {
    let site = decided(&[created("o1").v(1), paid("o1").v(2), ev("order.cancelled", "o1").v(2).id("late")]);
    let id = site.list(&["conflict", "list"])[0]["id"].as_str().unwrap().to_owned();
    act(&site, &["conflict", "dismiss", &id]);
    assert_eq!(site.stands("orders", "o1"), ("paid".into(), 2, 2));
    assert_eq!(site.verdicts(), json!({"applied": 2, "skipped": 1}));
    let late = &site.list(&["event", "show", "late"])[0];
    assert_eq!((&late["verdict"], &late["deliveries"]), (&json!("skipped"), &json!(1)));
}

#[test]
fn actor_and_reason_have_defaults() {
    let site = parked();
    site.ask(&["dead-letter", "skip", &open_letter(&site)]);
    let last = &site.list(&["audit", "list"])[0];
    assert!(!last["actor"].as_str().unwrap().is_empty(), "the login name: {last}");
    assert_eq!(last["reason"], "");
}

#[test]
fn explain_tells_what_holds_an_entity_and_what_would_help() {
    let wrong = paid("o1").v(2).data(r#"{"amount":5,"currency":"EUR"}"#);
    let waits = paid("o2").v(2).set("dependson", "orders/o3@2");
    let site = decided(&[
        created("o1").v(1),
        wrong,
        ev("order.shipped", "o1").v(3),
        created("o2").v(1),
        waits,
        created("o3").v(1),
        ev("order.delivered", "o3").v(4),
        created("o4").v(1).id("x"),
        paid("o4").v(2).id("x"),
        created("o5").v(1),
        ev("order.cancelled", "o5").v(2),
        ev("order.shipped", "o6").v(3),
    ]);
    let letter = open_letter(&site);
    let config = site.path("seqgate.toml").display().to_string();
    let command = |rest: &str| format!("seqgate --config {config} {rest}");
    let tells = |key: &str, wanted: &[&str]| {
        let text = site.seqgate(&["entity", "explain", "orders", key]).exits(0).out;
        let story = site.ask(&["entity", "explain", "orders", key])["story"].take();
        let commands = story.as_array().unwrap().iter().flat_map(|line| line["commands"].as_array().unwrap());
        for command in commands {
            assert!(text.contains(command.as_str().unwrap()), "{command} is not in:\n{text}");
        }
        for words in wanted {
            assert!(text.contains(words), "`{words}` is not in:\n{text}");
        }
        text
    };
    tells(
        "o1",
        &[
            "o1 is pending at version 1",
            "Version 2 (order.paid, events/",
            "illegal, amount-differs",
            "5 paid, 1999 owed",
            "1 event waits behind it",
            &command(&format!("dead-letter redrive {letter}")),
            &command(&format!("dead-letter skip {letter}")),
            &command(&format!("dead-letter replace {letter} --with FILE")),
        ],
    );
    tells(
        "o2",
        &[
            "it waits for orders/o3 at version 2, which stands at version 1",
            &command("entity explain orders o3"),
            "deferred dismiss ",
        ],
    );
    tells(
        "o3",
        &[
            "Versions 2 to 3 never came; version 4 (order.delivered",
            &command("gap repair orders o3 --from FILE"),
            "payment-timeout",
        ],
    );
    tells(
        "o4",
        &[
            "order.paid with id x at version 2",
            "is set aside",
            "dismissing it consumes the version",
            "conflict dismiss ",
        ],
    );
    let done = tells(
        "o5",
        &["o5 is cancelled at version 2", "nothing leaves this state", "order.cancelled o5-2, pending → cancelled"],
    );
    assert!(!done.contains("By hand"), "{done}");
    tells("o6", &["ghost", "Versions 1 to 2 never came"]);
    site.seqgate(&["entity", "explain", "orders", "o7"]).exits(1);
    act(&site, &["dead-letter", "skip", &letter]);
    tells("o1", &["version 2: order.paid o1-2, skip (stays pending)", "by ada: ticket 7"]);
}

/// A site where every list has at least two items.
fn furnished() -> Site {
    let site = Site::new(&(machine("orders", "") + &machine("subscriptions", "") + &events(2)));
    let bad = |key: &str| paid(key).v(2).data(r#"{"amount":5,"currency":"EUR"}"#);
    let renewed = |v| ev("subscription.renewed", "s1").v(v).data(&format!(r#"{{"period":"2027-0{v}"}}"#));
    site.write(&lines(&[
        created("o1").v(1),
        bad("o1"),
        created("o2").v(1),
        bad("o2"),
        created("o3").v(1),
        ev("order.shipped", "o3").v(3),
        ev("order.shipped", "o4").v(3),
        created("o3").v(1).data("{}"),
        created("o2").v(1).data("{}"),
        ev("subscription.created", "s1").v(1),
        renewed(2),
        renewed(3),
    ]));
    site.run();
    for id in site.list(&["dead-letter", "list"]).iter().map(|d| d["id"].as_str().unwrap()) {
        site.ask(&["dead-letter", "redrive", id]);
    }
    site
}

#[test]
fn every_answer_in_json_has_the_members_that_are_promised() {
    let site = furnished();
    let first = |list: &[&str]| site.list(list)[0]["id"].as_str().unwrap().to_owned();
    let (letter, conflict) = (first(&["dead-letter", "list"]), first(&["conflict", "list"]));
    let digest = site.list(&["rules", "list"])[0]["digest"].as_str().unwrap().to_owned();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    let orders = component("orders").display().to_string();
    let objects: [(&[&str], &str); 9] = [
        (&["status"], "verdicts entities deferred dead_letters outbox partitions received"),
        (&["entity", "show", "orders", "o1"], "machine key version revision state data rules blocked deferred"),
        (&["entity", "show", "orders", "o4"], "machine key version revision state data rules blocked deferred"),
        (&["entity", "explain", "orders", "o1"], "machine key story"),
        (&["dead-letter", "show", &letter], "id kind status class code message machine key content raw actor"),
        (&["conflict", "show", &conflict], "id status machine key code message copies content"),
        (&["rules", "inspect", &orders], "digest machine version schema states edges"),
        (&["rules", "register", &orders], "digest machine version new"),
        (&["check"], "ok findings"),
    ];
    for (command, members) in objects {
        has(&site.ask(command), members, command);
    }
    has(&site.run(), "received batches verdicts elapsed_ms", &["run"]);
    let lists: [(&[&str], &str); 14] = [
        (&["entity", "list"], "machine key version revision state rules blocked deferred"),
        (
            &["entity", "history", "orders", "o1"],
            "revision version cause previous_state next_state activation rules time event",
        ),
        (&["event", "show", "o1-1"], "machine key source id verdict reason first last deliveries"),
        (&["deferred", "list"], "id machine key event version reason since position"),
        (&["gap", "list"], "machine key version from to since"),
        (&["conflict", "list"], "id status machine key source event version code copies"),
        (&["dead-letter", "list"], "id kind status class code message machine key version attempts"),
        (&["outbox", "list"], "machine key revision topic type status data index"),
        (&["timer", "list"], "machine key name due"),
        (&["alarm", "list"], "kind subject message since cleared"),
        (&["audit", "list"], "at actor reason action subject outcome"),
        (&["machine", "list"], "name ordering activation rules"),
        (&["source", "list"], "name kind path partitions"),
        (&["rules", "list"], "digest machine version active"),
    ];
    for (command, members) in lists {
        let items = site.list(command);
        assert!(!items.is_empty(), "{command:?}");
        items.iter().for_each(|item| has(item, members, command));
    }
}

#[track_caller]
fn has(answer: &Value, members: &str, command: &[&str]) {
    for member in members.split(' ') {
        assert!(answer.get(member).is_some(), "{command:?} has no `{member}`: {answer}");
    }
}

#[test]
fn lists_are_paged_to_their_ends() {
    let site = furnished();
    let lists: [&[&str]; 9] = [
        &["entity", "list"],
        &["entity", "history", "subscriptions", "s1"],
        &["deferred", "list"],
        &["gap", "list"],
        &["conflict", "list"],
        &["dead-letter", "list"],
        &["outbox", "list"],
        &["alarm", "list"],
        &["audit", "list"],
    ];
    for list in lists {
        let whole = site.list(list);
        assert!(whole.len() > 1, "{list:?} has {}", whole.len());
        let (mut paged, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut args = [list, &["--limit", "1"]].concat();
            args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor]));
            let page = site.ask(&args);
            let items = page["items"].as_array().unwrap();
            assert!(items.len() <= 1, "{list:?}");
            paged.extend(items.iter().cloned());
            assert!(paged.len() <= whole.len(), "{list:?} does not end");
            let Some(next) = page["next"].as_str() else { break };
            cursor = Some(next.to_owned());
        }
        assert_eq!(paged, whole, "{list:?}");
    }
    site.seqgate(&["entity", "list", "--cursor", "nonsense"]).exits(2);
}

#[test]
fn wrong_usage_and_configuration_exit_2() {
    let site = orders("");
    assert_eq!(site.refused(1, &["status"])["error"]["code"], "no-database");
    assert_eq!(site.refused(2, &["entity", "shwo", "orders", "o1"])["error"]["code"], "usage");
    site.seqgate(&["run", "--fail-at", "nowhere:1"]).exits(2).says("mid-write");
    site.configure(&(machine("orders", "on_ilegal = \"skip\"") + &events(2)));
    assert_eq!(site.refused(2, &["run"])["error"]["code"], "configuration");
    site.seqgate(&["run"]).exits(2).says("on_illegal");
    site.configure(&(machine_with("orders", &site.path("nowhere.wasm"), "") + &events(2)));
    site.seqgate(&["check"]).exits(2).says("nowhere.wasm");
    std::fs::remove_file(site.path("seqgate.toml")).unwrap();
    site.seqgate(&["run"]).exits(2).says("seqgate.toml");
}
