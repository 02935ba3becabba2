//! Components that are refused before any event meets them, in words that say which limit.

use std::fmt::Write as _;

use seqgate_decide::ids::MAX_NAME;
use seqgate_decide::rules::{Description, Origin, StateInfo, Trigger};
use seqgate_test_guest::{CONTRACT, Guest, edge, with_metadata};
use serde_json::Value;

use super::{Hostile, description, opened};
use crate::program::{Site, events, lines, machine_with};

/// Registers each, and sees it refused in these words; then an honest guest still decides.
fn all_are_refused(components: Vec<(&str, Vec<u8>, &str)>) {
    let site = super::site(&[Hostile::new("honest", "", &[])]);
    site.write(&lines(&[opened("honest", "a")]));
    site.run();
    for (what, bytes, says) in components {
        let file = site.put("bad.wasm", bytes);
        let error: Value = site.refused(1, &["rules", "register", &file])["error"].take();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(says), "{what}: `{says}` is not in: {message}");
        assert_eq!(error["code"], "refused", "{what}: {message}");
    }
    assert_eq!(site.list(&["rules", "list"]).len(), 1);
    site.append(&lines(&[opened("honest", "a").v(2)]));
    site.run();
    assert_eq!(site.stands("honest", "a"), ("open".into(), 2, 2));
}

fn guest(change: impl FnOnce(&mut Guest)) -> Vec<u8> {
    let mut guest = Guest::describing(&description("bad"));
    change(&mut guest);
    guest.module()
}

fn described(change: impl FnOnce(&mut Description)) -> Vec<u8> {
    let mut description = description("bad");
    change(&mut description);
    Guest::describing(&description).module()
}

fn describing(body: &str) -> Vec<u8> {
    guest(|g| g.describe = body.into())
}

#[test]
fn a_description_that_does_not_come_is_refused() {
    // Six words of a description: the name is five megabytes long.
    let giant = "(drop (memory.grow (i32.const 100))) (i32.store (i32.const 8) (i32.const 64)) \
                 (i32.store (i32.const 12) (i32.const 5000000)) (i32.const 8)";
    all_are_refused(vec![
        ("a loop", describing("(loop $l (br $l)) (unreachable)"), "the limit is 50000000 (limits.fuel)"),
        ("a trap", describing("(unreachable)"), "`describe` failed (trap)"),
        ("memory", describing("(drop (memory.grow (i32.const 9000))) (unreachable)"), "(limits.memory)"),
        ("a giant", describing(giant), "(limits.result)"),
        ("a pointer", describing("(i32.const 0x7ffffff0)"), "`describe` failed (result-invalid)"),
    ]);
}

#[test]
fn a_description_that_contradicts_itself_is_refused() {
    let state = |name: String| StateInfo { name, terminal: false, expected_within: None };
    let to = |n: usize| edge(Origin::Absent, Trigger::Event(format!("e{n}")), "open");
    all_are_refused(vec![
        ("no name", described(|d| d.name.clear()), "the machine's name \"\""),
        ("a path for a name", described(|d| d.name = "../etc".into()), "the machine's name"),
        ("a long name", described(|d| d.name = "a".repeat(MAX_NAME + 1)), "at most 256 bytes"),
        ("no state's name", described(|d| d.states.push(state(String::new()))), "the state \"\" is empty"),
        ("a long state", described(|d| d.states.push(state("s".repeat(257)))), "is longer than 256 bytes"),
        ("a NUL", described(|d| d.states.push(state("a\0b".into()))), "holds a control character"),
        (
            "a control",
            described(|d| d.edges.push(edge(Origin::Absent, Trigger::Event("a\u{9b}".into()), "open"))),
            "control",
        ),
        ("twice", described(|d| d.states.push(d.states[0].clone())), "declared twice"),
        ("nowhere", described(|d| d.edges[0].target = "nowhere".into()), "\"nowhere\" is not declared"),
        (
            "out of the end",
            described(|d| d.edges[0].origin = Origin::State("shut".into())),
            "nothing leaves a terminal state",
        ),
        ("many states", described(|d| d.states = (0..257).map(|n| state(n.to_string())).collect()), "the limit is 256"),
        ("many edges", described(|d| d.edges = (0..4097).map(to).collect()), "the limit is 4096"),
        ("many layouts", described(|d| d.reads = (2..300).collect()), "the limit is 256"),
        ("no beginning", described(|d| d.edges.retain(|e| e.origin != Origin::Absent)), "no entity can ever exist"),
        ("no version", described(|d| d.version = "one".into()), "semantic version"),
    ]);
}

#[test]
fn what_reaches_out_or_runs_by_itself_is_refused() {
    let honest = Guest::describing(&description("bad")).text();
    let importing =
        |import: &str| with_metadata(&honest.replacen("(module", &format!("(module {import}"), 1), CONTRACT);
    let wat = |text: &str| wat::parse_str(text).unwrap();
    let newer = |text: &str| text.replace("@0.1.0", "@0.9.0");
    all_are_refused(vec![
        ("WASI's clock", importing(r#"(import "wasi_snapshot_preview1" "clock_time_get" (func))"#), "clock_time_get"),
        ("WASI's dice", importing(r#"(import "wasi_snapshot_preview1" "random_get" (func))"#), "random_get"),
        ("a component's clock", wat(r#"(component (import "wasi:clocks/wall-clock@0.2.6" (instance)))"#), "wall-clock"),
        ("a function of nobody's", importing(r#"(import "env" "now" (func))"#), "env.now"),
        ("a start function", guest(|g| g.fields = "(func $s) (start $s)".into()), "start function"),
        ("a start inside", wat("(component (core module (func $s) (start $s)))"), "start function"),
        ("an initialiser", guest(|g| g.fields = r#"(func (export "_initialize"))"#.into()), "start function"),
        ("another contract", with_metadata(&newer(&honest), &newer(CONTRACT)), "this host serves"),
        ("no migrate", with_metadata(&honest.replace("#migrate", "#other"), CONTRACT), "migrate"),
        ("other types", guest(|g| g.contract = CONTRACT.replace("revision: u64,", "revision: s64,")), "its `apply`"),
        ("shared memory", guest(|g| g.fields = "(func (drop (i32.atomic.load (i32.const 0))))".into()), "threads"),
        ("nothing at all", vec![], "it is empty"),
        ("half of it", Guest::describing(&description("bad")).module()[..900].to_vec(), "not valid"),
    ]);
}

fn repeated(what: &str, times: usize) -> String {
    what.repeat(times)
}

/// What would keep the compiler busy, or hold memory before any rule is asked: refused well within the deadline of a command.
#[test]
fn compile_bombs_are_refused_in_time() {
    let fields = |fields: String| guest(|g| g.fields = fields);
    let functions = (0..60_000).fold(String::new(), |mut all, n| {
        let _ = write!(all, "(func $f{n} (result i64) (i64.const {n}))");
        all
    });
    let mut padded = Guest::describing(&description("bad")).module();
    // A custom section of 4 MiB.
    padded.extend([0, 0x80, 0x80, 0x80, 0x02]);
    padded.extend(vec![0; 4 << 20]);
    let chain = |length: usize| {
        let step = "(local.set 0 (i64.add (i64.mul (local.get 0) (local.get 1)) (i64.const 7)))
                    (if (i64.eqz (local.get 0)) (then (local.set 1 (local.get 0))))";
        fields(format!("(func $giant (param i64 i64) (result i64) {} (local.get 0))", repeated(step, length)))
    };
    let nested = |depth: usize| fields(format!("(func {}{})", repeated("block ", depth), repeated("end ", depth)));
    let locals = |n: usize| fields(format!("(func (local {}))", repeated("i64 ", n)));
    // 7 kB: every variable changes within 300 loops. Without a bound, a few times of this take minutes.
    let loops = |n: usize| {
        let step = (0..n)
            .map(|i| format!("(local.set {0} (i64.add (local.get {0}) (local.get {1})))", 1 + i, 1 + (i + 1) % n));
        let (begin, end) = (repeated("loop ", n), repeated("local.get 0 br_if 0 end ", n));
        fields(format!("(func (param i32) (local {}) {begin} {} {end})", repeated("i64 ", n), step.collect::<String>()))
    };
    // 40 functions, each within its own bound.
    let all = (0..40).fold(String::new(), |all, _| {
        let branch = "(if (i64.eqz (local.get 0)) (then (local.set 1 (local.get 0))))";
        format!("{all}(func (local {}) {})", repeated("i64 ", 400), repeated(branch, 1_000))
    });
    all_are_refused(vec![
        ("nested loops", loops(300), "merges of locals at blocks in one function; the limit is 500000 (fixed)"),
        ("branches everywhere", fields(all), "merges of locals at blocks; the limit is 6000000 (fixed)"),
        ("giant bytes", padded, "the limit is 4194304 (fixed)"),
        ("a giant function", chain(60_000), "bytes of code in one function; the limit is 131072 (fixed)"),
        ("deep nesting", nested(2_000), "levels of blocks in one function; the limit is 1000"),
        ("many locals", locals(40_000), "locals in one function; the limit is 5000 (fixed)"),
        ("many functions", fields(functions), "functions; the limit is 10000 (fixed)"),
        ("much memory", guest(|g| g.pages = 20_000), "(limits.memory)"),
        ("all memory", guest(|g| g.pages = 65_536), "(limits.memory)"),
        ("a giant table", fields("(table 50000 funcref)".into()), "(limits.tables)"),
        ("a table beyond the pool", fields("(table 5000000 funcref)".into()), "(limits.tables)"),
        ("many tables", fields(repeated("(table 1 funcref)", 50)), "tables; the limit is 4 (fixed)"),
        ("two memories", fields("(memory 1)".into()), "2 memories; the limit is 1 (fixed)"),
    ]);
}

/// A refused component as a machine's configured rules: the run says so and decides nothing.
#[test]
fn a_run_with_refused_rules_says_so() {
    let site = Site::new("");
    let file = site.path("bad.wasm");
    std::fs::write(&file, describing("(loop $l (br $l)) (unreachable)")).unwrap();
    site.configure(&(machine_with("bad", &file, "") + &events(1)));
    let error = site.refused(1, &["run", "--until-idle"])["error"].take();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("machine `bad`") && message.contains("(limits.fuel)"), "{message}");
}
