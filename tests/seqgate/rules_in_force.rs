//! G9, R8: what may become rules, which of them decide, and that every revision names those that decided it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::program::{
    Site, batch, changed, component, created, ev, events, lines, machine, machine_with, paid, renamed, until,
};

fn orders() -> Site {
    Site::new(&(machine("orders", "") + &events(2)))
}

/// Orders that may leave before they are paid.
fn lenient() -> PathBuf {
    changed(
        "orders-lenient",
        "orders",
        r#""order.shipped":   Paid => Shipped;"#,
        r#""order.shipped":   Pending | Paid => Shipped;"#,
    )
}

fn register(site: &Site, file: &str) -> String {
    site.ask(&["rules", "register", file])["digest"].as_str().unwrap().to_owned()
}

/// Activation and digest that a machine has in force.
fn in_force(site: &Site, machine: &str) -> (u64, String) {
    let machines = site.list(&["machine", "list"]);
    let found = machines.iter().find(|m| m["name"] == machine).unwrap();
    (found["activation"].as_u64().unwrap(), found["rules"].as_str().unwrap().to_owned())
}

/// Activation and digest of each revision.
fn deciders(site: &Site, key: &str) -> Vec<(u64, String)> {
    let decider = |row: &Value| (row["activation"].as_u64().unwrap(), row["rules"].as_str().unwrap().to_owned());
    site.list(&["entity", "history", "orders", key]).iter().map(decider).collect()
}

#[test]
fn what_cannot_be_rules_is_refused_and_changes_nothing() {
    let site = orders();
    site.write(&lines(&[created("o1").v(1)]));
    site.run();
    let before = (in_force(&site, "orders"), site.list(&["rules", "list"]), site.list(&["audit", "list"]));
    let good = fs::read(component("orders")).unwrap();
    let wat = |text: &str| wat::parse_str(text).unwrap();
    let refused: [(&str, Vec<u8>, &str); 9] = [
        ("a text", b"fn apply() {}".to_vec(), "not a WebAssembly binary"),
        ("nothing", Vec::new(), "not a WebAssembly binary"),
        ("half a component", good[..good.len() / 2].to_vec(), ""),
        ("an import of a component", wat(r#"(component (import "clock" (func)))"#), "clock"),
        ("an import of a module", wat(r#"(module (import "env" "now" (func (result i64))))"#), "now"),
        ("an import of WASI", wat(r#"(component (import "wasi:clocks/wall-clock@0.2.0" (instance)))"#), "wasi:clocks"),
        ("a start function", wat(r#"(module (func $f) (start $f))"#), "start"),
        ("an empty component", wat("(component)"), "export"),
        ("an empty module", wat("(module)"), ""),
    ];
    for (what, bytes, says) in refused {
        let file = site.put("bad.wasm", bytes);
        let error = site.refused(1, &["rules", "register", &file])["error"].take();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("bad.wasm") && message.contains(says), "{what}: `{says}` is not in: {message}");
        assert_eq!(error["code"], "refused", "{what}: {message}");
    }
    site.refused(1, &["rules", "register", "nowhere.wasm"]);
    let nobody = format!("sha256:{}", "0".repeat(64));
    assert_eq!(site.refused(1, &["rules", "activate", &nobody])["error"]["code"], "no-such-rules");
    site.seqgate(&["rules", "activate", "sha256:12"]).exits(2);
    let after = (in_force(&site, "orders"), site.list(&["rules", "list"]), site.list(&["audit", "list"]));
    assert_eq!(before, after);
}

#[test]
fn rules_belong_to_the_machine_that_they_name() {
    // As a configured file.
    let site = Site::new(&(machine_with("accounts", &component("orders"), "") + &events(2)));
    let refused = site.seqgate(&["run", "--until-idle"]);
    assert!(refused.code() != Some(0), "{}", refused.out);
    refused.says("orders").says("accounts");
    site.seqgate(&["check"]).exits(2).says("says that it is `orders`");
    // As a component that somebody registers, for a machine that nobody has.
    let site = orders();
    site.run();
    let sensors = component("sensors").display().to_string();
    let digest = register(&site, &sensors);
    assert_eq!(site.refused(1, &["rules", "activate", &digest])["error"]["code"], "no-such-machine");
    // As the rules of another machine.
    let error = site.refused(1, &["rules", "rollback", "orders", "--to", &digest])["error"].take();
    assert_eq!(error["code"], "other-machine", "{error}");
    assert_eq!(in_force(&site, "orders").0, 1);
}

#[test]
fn activations_are_numbered_and_rolled_back() {
    let site = orders();
    site.write(&lines(&[created("o1").v(1)]));
    site.run();
    let (_, a) = in_force(&site, "orders");
    assert_eq!(site.refused(1, &["rules", "rollback", "orders"])["error"]["code"], "no-earlier-rules");
    let file = site.put("b.wasm", renamed(&component("orders"), "b"));
    let b = register(&site, &file);
    assert_ne!(a, b);
    assert_eq!(in_force(&site, "orders"), (1, a.clone()), "registering activates nothing");
    assert_eq!(site.ask(&["rules", "register", &file])["new"], false);

    let activated = site.ask(&["rules", "activate", &b, "--actor", "ada", "--reason", "cheaper"]);
    assert_eq!((&activated["activation"], &activated["previous"]), (&json!(2), &json!(a)));
    assert_eq!(site.ask(&["rules", "activate", &b])["activation"], 2, "it is in force already");
    site.append(&lines(&[paid("o1").v(2)]));
    site.run();
    assert_eq!(site.ask(&["rules", "rollback", "orders", "--actor", "bob", "--reason", "dearer"])["activation"], 3);
    site.append(&lines(&[ev("order.shipped", "o1").v(3)]));
    site.run();
    let third = site.put("c.wasm", renamed(&component("orders"), "c"));
    let c = register(&site, &third);
    site.ask(&["rules", "activate", &c]);
    assert_eq!(site.ask(&["rules", "rollback", "orders", "--to", &b])["activation"], 5);
    site.append(&lines(&[ev("order.delivered", "o1").v(4)]));
    site.run();

    assert_eq!(deciders(&site, "o1"), [(1, a.clone()), (2, b.clone()), (3, a.clone()), (5, b.clone())]);
    assert_eq!(site.entity("orders", "o1")["rules"], json!(b));
    let audit = site.list(&["audit", "list"]);
    let did: Vec<(&str, &str)> =
        audit.iter().rev().map(|r| (r["action"].as_str().unwrap(), r["subject"].as_str().unwrap())).collect();
    let of = |digest: &str| format!("{digest} of orders");
    for (action, subject) in [
        ("rules register", of(&b)),
        ("rules activate", of(&b)),
        ("rules rollback", of(&a)),
        ("rules activate", of(&c)),
        ("rules rollback", of(&b)),
    ] {
        assert!(did.contains(&(action, &subject)), "{action} {subject} is not in {did:?}");
    }
    let rolled = audit.iter().find(|r| r["actor"] == "bob").unwrap();
    assert_eq!(
        (&rolled["action"], &rolled["reason"], &rolled["outcome"]),
        (&json!("rules rollback"), &json!("dearer"), &json!("activation 3"))
    );
    let listed = site.list(&["rules", "list", "--machine", "orders"]);
    let active: Vec<&Value> = listed.iter().filter(|r| r["active"] == true).map(|r| &r["digest"]).collect();
    assert_eq!((listed.len(), active), (3, vec![&json!(b)]));
}

#[test]
fn new_rules_decide_from_the_next_batch_of_a_running_host() {
    let site = Site::new(&(batch(8) + &machine("orders", "on_illegal = \"skip\"") + &events(1)));
    let a = register(&site, &component("orders").display().to_string());
    let b = register(&site, &lenient().display().to_string());
    let run = site.start(&["run"]);
    // Round n begins behind the n-th activation, in an order of its own: created, then shipped while unpaid.
    let (mut activations, mut order) = (BTreeMap::from([(1, a.clone())]), Vec::new());
    for round in 1..=6_u64 {
        let events: Vec<_> = (0..40)
            .flat_map(|n| {
                let key = format!("o{round}-{n}");
                [created(&key).v(1), ev("order.shipped", &key).v(2)]
            })
            .collect();
        order.extend((0..40).map(|n| format!("o{round}-{n}")));
        site.append(&lines(&events));
        // The next activation comes while these are being decided.
        until("some of them are decided", || {
            let status = site.seqgate(&["status", "--json"]);
            let received = (status.code() == Some(0)).then(|| status.json()["received"].as_u64().unwrap())?;
            (received > (round - 1) * 80).then_some(())
        });
        let next = if round % 2 == 1 { &b } else { &a };
        assert_eq!(site.ask(&["rules", "activate", next])["activation"], round + 1);
        activations.insert(round + 1, next.clone());
    }
    until("all are decided", || (site.ask(&["status"])["received"] == 480).then_some(()));
    run.signal("TERM");
    run.wait().exits(0);

    let (mut last, mut seen) = (1, BTreeMap::new());
    for key in &order {
        let history = deciders(&site, key);
        let round: u64 = key[1..].split('-').next().unwrap().parse().unwrap();
        assert_eq!(history.len(), 2, "{key}");
        for (activation, digest) in &history {
            assert_eq!(activations.get(activation), Some(digest), "{key}: the digest is that of the activation");
            assert!(*activation >= last, "{key}: activations never decrease in a partition");
            assert!(*activation >= round, "{key}: what came behind an activation is not decided by older rules");
            last = *activation;
            *seen.entry(*activation).or_insert(0) += 1;
        }
        // And it shows in what was decided.
        let state = if history[1].1 == b { "shipped" } else { "pending" };
        assert_eq!(site.stands("orders", key), (state.to_owned(), 2, 2), "{key}");
    }
    assert!(seen.len() >= 4, "several activations have decided: {seen:?}");
}

#[test]
fn a_file_that_differs_from_what_decides_is_told() {
    let rules = component("orders");
    let site = orders();
    let file = site.put("orders.wasm", fs::read(&rules).unwrap());
    site.configure(&(machine_with("orders", &site.path("orders.wasm"), "") + &events(2)));
    site.write(&lines(&[created("o1").v(1)]));
    let first = site.seqgate(&["run", "--until-idle"]).exits(0);
    assert!(!first.err.contains("is not what decides"), "{}", first.err);
    let (_, a) = in_force(&site, "orders");

    site.put("orders.wasm", renamed(&rules, "next"));
    let command = "rules register";
    site.seqgate(&["check"]).exits(0).says("warning").says("is not what decides").says(&a).says(command);
    site.append(&lines(&[paid("o1").v(2)]));
    site.seqgate(&["run", "--until-idle"]).exits(0).says("is not what decides").says(command);
    assert_eq!(deciders(&site, "o1"), [(1, a.clone()), (1, a.clone())], "a file alone changes no rules");
    assert_eq!(site.list(&["machine", "list"])[0]["file_differs"], true);
    // Registered but not in force: the next step is named.
    let b = register(&site, &file);
    site.seqgate(&["check"]).exits(0).says(&format!("rules activate {b}"));
    site.ask(&["rules", "activate", &b]);
    let quiet = site.seqgate(&["check"]).exits(0);
    assert!(!quiet.out.contains("warning"), "{}", quiet.out);
    // What decides is in the store: the file may go.
    fs::remove_file(&file).unwrap();
    site.append(&lines(&[ev("order.shipped", "o1").v(3)]));
    site.run();
    assert_eq!(deciders(&site, "o1")[2], (2, b));
}

#[test]
fn a_machine_without_rules_does_not_run() {
    let site = Site::new(&format!("[[machine]]\nname = \"orders\"\n\n{}", events(2)));
    site.seqgate(&["check"]).exits(2).says("no `rules` file is configured");
    let refused = site.seqgate(&["run", "--until-idle"]);
    assert!(matches!(refused.code(), Some(1 | 2)), "{:?}", refused.status);
    refused.says("orders").says("rules");
    // Registering and activating by hand is enough.
    let digest = register(&site, &component("orders").display().to_string());
    site.ask(&["rules", "activate", &digest]);
    site.write(&lines(&[created("o1").v(1)]));
    site.run();
    assert_eq!(deciders(&site, "o1"), [(1, digest)]);
}
