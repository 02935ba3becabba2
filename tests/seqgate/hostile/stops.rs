//! Guests that do not stop by themselves, or stop where they should not.

use super::{Hostile, each_costs_one_event};

const FUEL: &[&str] = &["the limit is 50000000 (limits.fuel)", "apply"];
const MEMORY: &[&str] = &["the limit is 16777216 (limits.memory)", "apply"];

#[test]
fn what_does_not_end_is_ended_by_fuel() {
    let calls = "(func $ping (param i32) (result i32) (return_call $pong (local.get 0)))
                 (func $pong (param i32) (result i32) (return_call $ping (local.get 0)))";
    let fill = "(drop (memory.grow (i32.const 200)))
                (loop $l (memory.fill (i32.const 131072) (i32.const 1) (i32.const 12582912)) (br $l)) (unreachable)";
    each_costs_one_event(&[
        Hostile::doing("endless-loop", "(loop $l (br $l)) (unreachable)", "fuel", FUEL),
        Hostile::doing(
            "endless-calls",
            "(call $ping (i32.const 1))",
            "fuel",
            &["(limits.fuel)", "ping` (called by `apply`)"],
        )
        .fields(calls),
        Hostile::doing("endless-fill", fill, "fuel", FUEL),
        Hostile::doing("little-fuel", "(loop $l (br $l)) (unreachable)", "fuel", &["the limit is 20000 (limits.fuel)"])
            .settings("limits.fuel = 20000"),
    ]);
}

#[test]
fn what_does_not_end_with_fuel_left_is_ended_by_the_clock() {
    let says = &["still running after 200ms, 10 times the limit of 20ms (limits.time)", "apply"];
    each_costs_one_event(&[Hostile::doing("endless-time", "(loop $l (br $l)) (unreachable)", "time", says)
        .settings("limits = { fuel = 100_000_000_000, time = \"20ms\" }")]);
}

#[test]
fn what_takes_more_than_it_may_is_stopped() {
    let deep = "(func $deep (param i64) (result i64)
                (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (local.get 0)))";
    let table = "(table $t 1 funcref)";
    let creep = "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) (unreachable)";
    let tables = &["the limit is 10000 (limits.tables)"];
    each_costs_one_event(&[
        Hostile::doing(
            "recursion",
            "(drop (call $deep (i64.const 0))) (unreachable)",
            "stack",
            &["524288 bytes (fixed)", "deep"],
        )
        .fields(deep),
        Hostile::doing("memory-leap", "(drop (memory.grow (i32.const 60000))) (unreachable)", "memory", MEMORY),
        Hostile::doing("memory-creep", creep, "memory", MEMORY),
        Hostile::doing("little-memory", creep, "memory", &["the limit is 1048576 (limits.memory)"])
            .settings("limits.memory = \"1MiB\""),
        Hostile::doing(
            "table-leap",
            "(drop (table.grow $t (ref.null func) (i32.const 90000))) (unreachable)",
            "table",
            tables,
        )
        .fields(table),
        Hostile::doing(
            "table-creep",
            "(loop $l (drop (table.grow $t (ref.null func) (i32.const 100))) (br $l)) (unreachable)",
            "table",
            tables,
        )
        .fields(table),
    ]);
}

#[test]
fn a_trap_of_any_kind_costs_one_event() {
    let table = "(table $t 4 funcref) (type $f (func (result i32)))";
    let mut panics = Hostile::doing("long-panic", "(unreachable)", "trap", &["panicked: \u{fffd}aaaa", "…"]);
    let text = [b"\0".to_vec(), vec![b'a'; 20_000]].concat();
    let at = panics.guest.memory.put(&[u32::try_from(text.len()).unwrap().to_le_bytes().to_vec(), text].concat());
    panics.guest.fields = format!(r#"(global (export "seqgate_panic") i32 (i32.const {at}))"#);
    let zero = "(i32.sub (local.get 0) (local.get 0))";
    each_costs_one_event(&[
        Hostile::doing("unreachable", "(unreachable)", "trap", &["unreachable", "apply"]),
        Hostile::doing("division", &format!("(i32.div_s (i32.const 1) {zero})"), "trap", &["divide by zero"]),
        Hostile::doing("overflow", "(i32.trunc_f64_s (f64.const 1e300))", "trap", &["integer overflow"]),
        Hostile::doing("beyond-memory", "(i32.load (i32.const -8))", "trap", &["out of bounds"]),
        Hostile::doing("null-call", "(call_indirect $t (type $f) (i32.const 2))", "trap", &["uninitialized element"])
            .fields(table),
        panics,
    ]);
}

/// A limit that is no limit is refused before anything runs, with its range.
#[test]
fn limits_have_ranges() {
    let site = super::site(&[Hostile::new("ranged", "", &[])]);
    let file = site.path("ranged.wasm");
    for (limits, says) in [
        ("fuel = 0", "limits.fuel is 0; it must be 1 to 100000000000"),
        ("memory = \"1KiB\"", "limits.memory is 1KiB; it must be 64KiB to 4GiB"),
        ("memory = \"5GiB\"", "limits.memory is 5GiB"),
        ("time = \"2m\"", "limits.time is 120000ms; it must be 1ms to 60000ms"),
        ("tables = 100001", "limits.tables is 100001; it must be 0 to 100000"),
        ("result = \"1GiB\"", "limits.result is 1GiB; it must be 4KiB to 64MiB"),
        ("talbes = 1", "tables"),
    ] {
        let machine = crate::program::machine_with("ranged", &file, &format!("limits = {{ {limits} }}"));
        site.configure(&(machine + &crate::program::events(1)));
        site.seqgate(&["check"]).exits(2).says(says);
    }
}
