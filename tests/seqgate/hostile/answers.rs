//! Answers that are too large, or none at all.

use super::{Hostile, each_costs_one_event};

const RESULT: &[&str] = &["the limit is 4194304 bytes (limits.result)", "apply"];
const NONE: &[&str] = &["the contract does not allow", "apply"];

/// Lays an answer out by hand: `ok`, the state, the data, the effects, the notes, each an address and a length.
fn answer(state: (i64, i64), data: (i64, i64), effects: (i64, i64), notes: (i64, i64)) -> String {
    let words = [0, state.0, state.1, data.0, data.1, effects.0, effects.1, notes.0, notes.1];
    let stores = words
        .iter()
        .enumerate()
        .map(|(n, word)| format!("(i32.store offset={} (i32.const 0) (i32.const {word})) ", n * 4));
    stores.collect::<String>() + "(i32.const 0)"
}

/// `open`, written at 512.
const OPEN: &str = "(i32.store (i32.const 512) (i32.const 0x6e65706f)) ";
const STATE: (i64, i64) = (512, 4);
const NOTHING: (i64, i64) = (8, 0);
const GROWN: &str = "(drop (memory.grow (i32.const 150))) ";

#[test]
fn giant_answers_are_not_taken_out_of_the_guest() {
    let giant = |data, effects, notes| [OPEN, GROWN, &answer(STATE, data, effects, notes)].concat();
    // Every note is the same 4 KiB of memory, said 2,000 times; its list is at 64 KiB.
    let echo = format!(
        "{OPEN}{GROWN} (local $at i32) (local.set $at (i32.const 1048576))
         (loop $l (i32.store (local.get $at) (i32.const 2097152)) (i32.store offset=4 (local.get $at) (i32.const 4096))
           (local.set $at (i32.add (local.get $at) (i32.const 8)))
           (br_if $l (i32.lt_u (local.get $at) (i32.const 1064576)))) {}",
        answer(STATE, NOTHING, NOTHING, (1_048_576, 2_000))
    );
    let mut echo = Hostile::doing("echo", &echo.replace("(local $at i32)", ""), "result-too-large", RESULT);
    echo.guest.apply = format!("(local $at i32) {}", echo.guest.apply);
    each_costs_one_event(&[
        Hostile::doing("giant-data", &giant((65_536, 5_000_000), NOTHING, NOTHING), "result-too-large", RESULT),
        Hostile::doing("giant-notes", &giant(NOTHING, NOTHING, (65_536, 1_000_000)), "result-too-large", RESULT),
        Hostile::doing("effects-of-little", &giant(NOTHING, (65_536, 100_000), NOTHING), "result-too-large", RESULT),
        // A million effects are 64 MB of memory in the guest.
        Hostile::doing(
            "million-effects",
            &giant(NOTHING, (65_536, 1_000_000), NOTHING).replace("(i32.const 150)", "(i32.const 1000)"),
            "result-too-large",
            RESULT,
        )
        .settings("limits.memory = \"128MiB\""),
        Hostile::doing("million-in-16", &giant(NOTHING, (65_536, 1_000_000), NOTHING), "result-invalid", NONE),
        echo,
        Hostile::doing(
            "small-result",
            &giant((65_536, 9_000), NOTHING, NOTHING),
            "result-too-large",
            &["8192 bytes (limits.result)"],
        )
        .settings("limits.result = \"8KiB\""),
        Hostile::doing(
            "data-over-1mib",
            &giant((65_536, 1_048_577), NOTHING, NOTHING),
            "result-too-large",
            &["the entity's data has 1048577 bytes; the limit is 1048576 (fixed)"],
        ),
    ]);
}

#[test]
fn what_is_no_answer_is_a_fault() {
    let text = |bytes: &str, length: i64| {
        format!("(i64.store (i32.const 512) (i64.const {bytes})) {}", answer((512, length), NOTHING, NOTHING, NOTHING))
    };
    let store = |at: u32, word: i64| format!("(i32.store (i32.const {at}) (i32.const {word})) (i32.const 0)");
    each_costs_one_event(&[
        Hostile::doing("not-utf8", &text("0xff", 1), "result-invalid", &["utf-8"]),
        // U+D800, as WTF-8 has it.
        Hostile::doing("lone-surrogate", &text("0x80a0ed", 3), "result-invalid", &["utf-8"]),
        Hostile::doing("overlong", &text("0x80c0", 2), "result-invalid", &["utf-8"]),
        Hostile::doing("no-variant", &store(0, 7), "result-invalid", NONE),
        Hostile::doing(
            "no-rejection",
            &format!("(i32.store (i32.const 4) (i32.const 9)) {}", store(0, 1)),
            "result-invalid",
            NONE,
        ),
        Hostile::doing("pointer-beyond", "(i32.const 0x7ffffff0)", "result-invalid", NONE),
        Hostile::doing("pointer-askew", "(i32.const 6)", "result-invalid", NONE),
        Hostile::doing("text-beyond", &answer((0x7fff_ff00, 4), NOTHING, NOTHING, NOTHING), "result-invalid", NONE),
        Hostile::doing("endless-list", &answer(NOTHING, NOTHING, (8, 0xffff_ffff), NOTHING), "result-invalid", NONE),
        Hostile::doing("list-askew", &answer(NOTHING, NOTHING, (65_537, 1), NOTHING), "result-invalid", NONE),
    ]);
}

/// Data are bytes to the host: whether they are JSON, and how deep, is the rules' own affair, and nothing that shows them
/// stumbles.
#[test]
fn data_that_are_no_json_are_only_bytes() {
    let mut guests = Vec::new();
    for (name, data) in [
        ("deep-json", vec![b'['; 100_000]),
        ("half-json", br#"{"total":1"#.to_vec()),
        ("no-text", vec![0xff, 0, 0xfe]),
        ("whole-deep-json", [vec![b'['; 5_000], vec![b']'; 5_000]].concat()),
    ] {
        guests.push(Hostile::giving(name, |t| t.data = data, "", &[]));
    }
    let site = super::site(&guests);
    let bad = guests.iter().map(|g| super::opened(g.name, "bad").data(super::MALICE));
    site.write(&crate::program::lines(&bad.collect::<Vec<_>>()));
    site.run();
    for guest in &guests {
        assert_eq!(site.stands(guest.name, "bad"), ("open".into(), 1, 1), "{}", guest.name);
        site.seqgate(&["entity", "show", guest.name, "bad"]).exits(0);
        site.seqgate(&["entity", "history", guest.name, "bad"]).exits(0);
    }
}

/// The functions that move arguments in and answers out are the guest's too.
#[test]
fn what_the_guest_does_around_a_call_costs_one_event() {
    let realloc = |name, body: &str, code, says: &[&'static str]| {
        let mut hostile = Hostile::new(name, code, says);
        // Malice is a payload that only large arguments have.
        hostile.malice = format!("\"{}\"", "x".repeat(30_000));
        hostile.guest.realloc = format!("(if (i32.gt_u (local.get 3) (i32.const 20000)) (then {body}))");
        hostile
    };
    let after = |name, body: &str, code, says: &[&'static str]| {
        let mut hostile = Hostile::new(name, code, says);
        let at = hostile.guest.memory.answer(&Ok(super::transition()));
        hostile.guest = hostile.guest.hostile(&format!("(i32.const {at})"));
        let export = "cabi_post_seqgate:machine/rules@0.1.0#apply";
        hostile.fields(&format!(
            "(func (export \"{export}\") (param i32) (if (i32.eq (local.get 0) (i32.const {at})) (then {body})))"
        ))
    };
    each_costs_one_event(&[
        realloc("realloc-beyond", "(return (i32.const -16))", "result-invalid", &["realloc", "apply"]),
        realloc("realloc-traps", "(unreachable)", "trap", &["unreachable"]),
        realloc("realloc-loops", "(loop $l (br $l))", "fuel", &["limits.fuel"]),
        after("post-traps", "(unreachable)", "trap", &["unreachable"]),
        after("post-loops", "(loop $l (br $l))", "fuel", &["limits.fuel"]),
    ]);
}
