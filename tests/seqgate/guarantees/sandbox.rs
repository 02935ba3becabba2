//! G10: a guest stops within its fuel, time and memory; what it does costs one event, not the host or the partition.

use serde_json::json;

use crate::program::{Site, created, ev, events, lines, machine, paid};

/// Sensors divide by zero on purpose when a report says `"calibration": 0`.
#[test]
fn a_trap_costs_one_event() {
    let site = Site::new(&(machine("sensors", "ordering = \"snapshot\"") + &machine("orders", "") + &events(1)));
    let report = |key: &str, data: &str| ev("sensor.reported", key).data(data);
    site.write(&lines(&[
        report("s1", r#"{"celsius":21000}"#).v(1),
        report("s1", r#"{"celsius":21000,"calibration":0}"#).v(2),
        report("s2", r#"{"celsius":19000}"#).v(1),
        created("o1").v(1),
        paid("o1").v(2),
    ]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 4, "fault": 1}));
    assert_eq!(site.stands("orders", "o1"), ("paid".into(), 2, 2));
    let letters = site.list(&["dead-letter", "list"]);
    let [letter] = letters.as_slice() else { panic!("{letters:?}") };
    assert_eq!((&letter["class"], &letter["code"]), (&json!("fault"), &json!("trap")));
    let message = letter["message"].as_str().unwrap();
    assert!(message.contains("apply"), "the guest's function is named: {message}");
    assert!(
        message.contains("attempt to divide by zero (machines/sensors/src/lib.rs:"),
        "and its panic's text: {message}"
    );
    // A higher snapshot supersedes it: the sensor is not lost.
    site.append(&lines(&[report("s1", r#"{"celsius":22000}"#).v(3)]));
    site.run();
    assert_eq!(site.stands("sensors", "s1"), ("online".into(), 3, 2));
    assert_eq!(site.verdicts(), json!({"applied": 5, "skipped": 1}));
}

#[test]
fn a_limit_that_is_passed_is_named() {
    for (limits, code) in [("fuel = 1000", "fuel"), ("memory = \"64KiB\"", "memory")] {
        let site = Site::new(&(machine("sensors", "ordering = \"snapshot\"") + &machine("orders", "") + &events(1)));
        site.write(&lines(&[created("o1").v(1)]));
        site.run();
        // The limits of what decides from now on; describing itself was within the old ones.
        let tight =
            machine("orders", &format!("limits = {{ {limits} }}")) + &machine("sensors", "ordering = \"snapshot\"");
        site.configure(&(tight + &events(1)));
        site.append(&lines(&[paid("o1").v(2), ev("sensor.reported", "s1").data(r#"{"celsius":1}"#).v(1)]));
        let ended = site.seqgate(&["run", "--until-idle", "--json"]);
        if ended.code() == Some(0) {
            let letters = site.list(&["dead-letter", "list"]);
            assert_eq!(letters[0]["code"], code, "{letters:?}");
            assert_eq!(site.stands("sensors", "s1"), ("online".into(), 1, 1));
        } else {
            // Rules that cannot even describe themselves within the limit decide nothing.
            assert!(ended.err.contains(code), "{}", ended.err);
        }
    }
}
