//! G10: a guest stops within its fuel, time, memory, tables, stack and answer, and the next call knows nothing of it.

use std::time::{Duration, Instant};

use seqgate_decide::rules::{Fault, Rules};

use super::super::{Allocation, Engine, EngineOptions, Limits, fault};
use super::guest::Guest;
use super::{engine, event, load, load_with};

fn fault_of(guest: &Guest) -> Fault {
    load(guest).unwrap().open().apply(None, &event(b"")).unwrap_err()
}

#[test]
fn an_endless_loop_runs_out_of_fuel() {
    let rules = load(&Guest::applying("(loop $l (br $l)) (unreachable)")).unwrap();
    let mut session = rules.open();
    let fault = session.apply(None, &event(b"")).unwrap_err();
    assert_eq!(fault.code, fault::FUEL, "{fault:?}");
    assert!(fault.message.contains("`apply` (called by `apply`)"), "{fault:?}");
    assert_eq!(session.fuel_used(), rules.limits().fuel);
}

#[test]
fn memory_is_bounded() {
    let grows = Guest::applying("(drop (memory.grow (i32.const 300))) (unreachable)");
    let fault = fault_of(&grows);
    assert_eq!(fault.code, fault::MEMORY, "{fault:?}");
    assert!(fault.message.contains("the limit is 16777216"), "{fault:?}");
}

/// A module's own maximum is no limit of the host's: growth beyond it answers −1 and costs nothing.
#[test]
fn growth_beyond_the_modules_own_maximum_is_the_guests_affair() {
    let guest = Guest::new();
    // 204 pages are there, then two growths to 254 fail: counted, they would pass the limit of 256.
    let grow = |pages, answer| {
        format!("(if (i32.ne (memory.grow (i32.const {pages})) (i32.const {answer})) (then (unreachable)))")
    };
    let apply = [grow(200, 4), grow(50, -1), grow(50, -1), guest.apply.clone()].concat();
    let text =
        Guest { apply, ..guest }.text().replace("(memory (export \"memory\") 4)", "(memory (export \"memory\") 4 250)");
    let module = super::guest::with_metadata(&text, super::guest::CONTRACT);
    let prepared = super::prepare(&module, super::MAX_COMPONENT).unwrap();
    let rules = super::LoadedRules::load(&engine(), &prepared, Limits::default(), None).unwrap();
    rules.open().apply(None, &event(b"")).unwrap().unwrap();
}

/// More calls than slots wait for each other; none fails.
#[test]
fn a_full_pool_makes_calls_wait() {
    let options = EngineOptions { allocation: Allocation::Pooled { instances: 1 }, ..EngineOptions::default() };
    let rules = load_with(&Engine::new(&options).unwrap(), &Guest::new(), Limits::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = rules.open();
                (0..100).for_each(|_| assert!(session.apply(None, &event(b"")).unwrap().is_ok()));
            });
        }
    });
}

#[test]
fn sessions_move_between_threads() {
    fn sendable<T: Send>(_: T) {}
    sendable(load(&Guest::new()).unwrap().open());
}

#[test]
fn a_guest_that_starts_larger_than_the_limit_is_refused() {
    let error = load(&Guest { pages: 300, ..Guest::new() }).unwrap_err().to_string();
    assert!(error.contains("`describe` failed (memory)"), "{error}");
}

#[test]
fn growing_memory_costs_fuel() {
    let used = |pages: u32| {
        let guest = Guest::new();
        let apply = format!("(drop (memory.grow (i32.const {pages}))) {}", guest.apply);
        let mut session = load(&Guest { apply, ..guest }).unwrap().open();
        session.apply(None, &event(b"")).unwrap().unwrap();
        session.fuel_used()
    };
    assert_eq!(used(101) - used(1), 100 * 255);
}

#[test]
fn tables_are_bounded() {
    let guest = Guest {
        fields: "(table $t 1 funcref)".into(),
        ..Guest::applying("(drop (table.grow $t (ref.null func) (i32.const 20000))) (unreachable)")
    };
    assert_eq!(fault_of(&guest).code, fault::TABLE);
}

#[test]
fn deep_recursion_ends_at_the_stack() {
    let fields = "(func $deep (param i64) (result i64) \
                  (i64.add (call $deep (i64.add (local.get 0) (i64.const 1))) (local.get 0)))";
    let apply = "(drop (call $deep (i64.const 0))) (unreachable)";
    let fault = fault_of(&Guest { fields: fields.into(), ..Guest::applying(apply) });
    assert_eq!(fault.code, fault::STACK, "{fault:?}");
    assert!(fault.message.contains("`deep`"), "{fault:?}");
}

#[test]
fn traps_are_named_with_the_guests_function() {
    for (body, name) in [
        ("(unreachable)", "unreachable"),
        ("(i32.div_u (i32.const 1) (i32.sub (local.get 0) (local.get 0)))", "divide by zero"),
        ("(i32.load (i32.const -8))", "out of bounds"),
    ] {
        let fields = format!("(func $orders::pay::h0123456789abcdef (param i32) (result i32) {body})");
        let fault =
            fault_of(&Guest { fields, ..Guest::applying("(call $orders::pay::h0123456789abcdef (local.get 0))") });
        assert_eq!(fault.code, fault::TRAP);
        assert!(fault.message.contains(name), "{fault:?}");
        assert!(fault.message.contains("orders::pay"), "{fault:?}");
    }
}

#[test]
fn mangled_names_are_readable() {
    let name = "$_ZN6orders3pay17h0123456789abcdefE";
    let fields = format!("(func {name} (result i32) (unreachable))");
    let fault = fault_of(&Guest { fields, ..Guest::applying(&format!("(call {name})")) });
    assert!(fault.message.contains("`orders::pay`"), "{fault:?}");
}

#[test]
fn a_panics_text_reaches_the_fault() {
    let mut guest = Guest::applying("(unreachable)");
    let text = b"no such \0 currency, at src/lib.rs:7";
    let at = guest.memory.put(&[&35_u32.to_le_bytes()[..], text].concat());
    guest.fields = format!(r#"(global (export "seqgate_panic") i32 (i32.const {at}))"#);
    let fault = fault_of(&guest);
    assert_eq!(fault.code, fault::TRAP);
    assert!(fault.message.starts_with("panicked: no such \u{fffd} currency, at src/lib.rs:7"), "{fault:?}");
}

#[test]
fn a_panic_text_that_points_nowhere_is_left_out() {
    for at in [-4, 262_142, 262_140] {
        let fields = format!(r#"(global (export "seqgate_panic") i32 (i32.const {at}))"#);
        let fault = fault_of(&Guest {
            fields,
            ..Guest::applying("(i32.store (i32.const 262140) (i32.const -1)) (unreachable)")
        });
        assert!(fault.message.contains("unreachable"), "{fault:?}");
    }
}

#[test]
fn an_answer_is_bounded() {
    // 16 effects' worth of nothing would do; five megabytes of data is what a confused guest sends.
    let body = "(drop (memory.grow (i32.const 80))) (i32.store (i32.const 16) (i32.const 5000000)) (i32.const 0)";
    assert_eq!(fault_of(&Guest::applying(body)).code, fault::RESULT_TOO_LARGE);
}

#[test]
fn an_answer_that_is_none_is_a_fault() {
    let bad_text = "(i32.store8 (i32.const 64) (i32.const 255)) (i32.store (i32.const 4) (i32.const 64)) \
                    (i32.store (i32.const 8) (i32.const 1)) (i32.const 0)";
    let bad_variant = "(i32.store8 (i32.const 0) (i32.const 7)) (i32.const 0)";
    let bad_pointer = "(i32.const 0x7ffffff0)";
    for body in [bad_text, bad_variant, bad_pointer] {
        let fault = fault_of(&Guest::applying(body));
        assert_eq!(fault.code, fault::RESULT_INVALID, "{fault:?}");
    }
}

/// R5: a time-out with fuel left is tried again with ten times the time, and only then a fault.
#[test]
fn a_time_out_is_retried_then_a_fault() {
    let engine = Engine::new(&EngineOptions { tick: Duration::from_millis(1), ..EngineOptions::default() }).unwrap();
    let limits = Limits { fuel: u64::MAX, time: Duration::from_millis(20), ..Limits::default() };
    let rules = load_with(&engine, &Guest::applying("(loop $l (br $l)) (unreachable)"), limits).unwrap();
    let start = Instant::now();
    let mut session = rules.open();
    let fault = session.apply(None, &event(b"")).unwrap_err();
    assert_eq!(fault.code, fault::TIME, "{fault:?}");
    assert!(fault.message.contains("200ms"), "{fault:?}");
    assert!(start.elapsed() >= Duration::from_millis(219), "{:?}", start.elapsed());
}

/// R5: the retry answers where the first try had too little time.
#[test]
fn a_slow_call_succeeds_on_its_retry() {
    let engine = Engine::new(&EngineOptions { tick: Duration::from_millis(1), ..EngineOptions::default() }).unwrap();
    let guest = Guest::new();
    let apply = format!(
        "(local $n i64) (local.set $n (i64.const ITERATIONS)) \
         (loop $l (br_if $l (i64.ne (local.tee $n (i64.sub (local.get $n) (i64.const 1))) (i64.const 0)))) {}",
        guest.apply
    );
    let slow = |iterations: u64| Guest { apply: apply.replace("ITERATIONS", &iterations.to_string()), ..Guest::new() };
    let limits = Limits { fuel: u64::MAX, time: Duration::from_secs(60), ..Limits::default() };
    // Find a count that takes over 100 ms here at its best, then give it 60: too little, and ten times that is plenty.
    let took = |iterations| {
        let rules = load_with(&engine, &slow(iterations), limits).unwrap();
        let once = || {
            let start = Instant::now();
            rules.open().apply(None, &event(b"")).unwrap().unwrap();
            start.elapsed()
        };
        [once(), once(), once()].into_iter().min().unwrap()
    };
    let mut iterations = 1_000_000;
    while took(iterations) < Duration::from_millis(100) {
        iterations *= 2;
    }
    let limits = Limits { time: Duration::from_millis(60), ..limits };
    let mut session = load_with(&engine, &slow(iterations), limits).unwrap().open();
    let start = Instant::now();
    assert!(session.apply(None, &event(b"")).unwrap().is_ok());
    assert!(start.elapsed() > Duration::from_millis(150), "{:?}: it was not tried twice", start.elapsed());
}

/// R8: what one decision leaves in the guest's memory, in any page of it, the next does not see.
#[test]
fn every_decision_gets_a_fresh_instance() {
    for allocation in [Allocation::OnDemand, Allocation::Pooled { instances: 1 }] {
        let guest = Guest::new();
        // A word in each 64 KiB page of 12 MiB: none may be there yet, then all are.
        let apply = format!(
            "(local $at i32) (drop (memory.grow (i32.const 192))) (loop $l \
               (if (i32.load (local.get $at)) (then (unreachable))) \
               (i32.store (local.get $at) (i32.const 1)) \
               (local.set $at (i32.add (local.get $at) (i32.const 65536))) \
               (br_if $l (i32.lt_u (local.get $at) (i32.const 12582912)))) {}",
            guest.apply
        );
        // Arguments lie at 64 KiB and are not empty; they move out of the way.
        let text = Guest { apply, ..guest }.text().replace("(i32.const 65536))\n", "(i32.const 65544))\n");
        let module = super::guest::with_metadata(&text, super::guest::CONTRACT);
        let prepared = super::prepare(&module, super::MAX_COMPONENT).unwrap();
        let engine = Engine::new(&EngineOptions { allocation, ..EngineOptions::default() }).unwrap();
        let mut session = super::LoadedRules::load(&engine, &prepared, Limits::default(), None).unwrap().open();
        let mut fuel = Vec::new();
        for _ in 0..20 {
            session.apply(None, &event(b"")).unwrap().unwrap();
            fuel.push(session.fuel_used());
        }
        fuel.dedup();
        assert_eq!(fuel.len(), 1, "the same question costs the same: {fuel:?}");
    }
}

#[test]
fn a_session_goes_on_after_a_trap() {
    let guest = Guest::new();
    // Traps for events with data.
    let apply = format!("(if (i32.load offset=192 (local.get 0)) (then (unreachable))) {}", guest.apply);
    let mut session = load(&Guest { apply, ..guest }).unwrap().open();
    assert_eq!(session.apply(None, &event(b"x")).unwrap_err().code, fault::TRAP);
    session.apply(None, &event(b"")).unwrap().unwrap();
}

#[test]
fn the_ticker_ends_with_its_engine() {
    let rules = load_with(&engine(), &Guest::new(), Limits::default()).unwrap();
    // The engine's handle is gone and its ticker still runs for the rules; this returns when both are gone.
    drop(rules);
}
