//! What a guest keeps for itself must change nothing: not between events, and not between processors.

use serde_json::json;

use super::{Hostile, description, opened};
use crate::program::lines;

/// Answers with the last digit of the count in `$n` as the entity's data.
fn with_count(hostile: &mut Hostile, count: &str) {
    let words = [0, 512, 4, 528, 1, 8, 0, 8, 0];
    let stores =
        words.iter().enumerate().map(|(n, w)| format!("(i32.store offset={} (i32.const 0) (i32.const {w}))", n * 4));
    let open = "(i32.store (i32.const 512) (i32.const 0x6e65706f))
                (i32.store8 (i32.const 528) (i32.add (local.get $n) (i32.const 48)))";
    hostile.guest.apply = format!("{count} {open} {} (i32.const 0)", stores.collect::<String>());
}

#[test]
fn what_is_counted_in_one_call_is_unknown_to_the_next() {
    let mut global = Hostile::new("counts-in-a-global", "", &[]).fields("(global $count (mut i32) (i32.const 0))");
    let count =
        "(local $n i32) (local.set $n (i32.add (global.get $count) (i32.const 1))) (global.set $count (local.get $n))";
    with_count(&mut global, count);
    let mut memory = Hostile::new("counts-in-memory", "", &[]);
    let count = "(local $n i32) (local.set $n (i32.add (i32.load (i32.const 262136)) (i32.const 1)))
                 (i32.store (i32.const 262136) (local.get $n))";
    with_count(&mut memory, count);
    let mut table = Hostile::new("counts-in-a-table", "", &[]).fields("(table $t 0 100 funcref)");
    let count = "(local $n i32) (drop (table.grow $t (ref.null func) (i32.const 1))) (local.set $n (table.size $t))";
    with_count(&mut table, count);
    let guests = [global, memory, table];
    let site = super::site(&guests);
    let events = guests.iter().flat_map(|g| (1..=3).flat_map(|v| ["a", "b"].map(|key| opened(g.name, key).v(v))));
    site.write(&lines(&events.collect::<Vec<_>>()));
    site.run();
    for guest in &guests {
        for key in ["a", "b"] {
            assert_eq!(site.stands(guest.name, key), ("open".into(), 3, 3));
            let entity = site.entity(guest.name, key);
            assert_eq!(entity["data"], json!(1), "{}: {entity}", guest.name);
        }
    }
}

/// 0/0 has a sign on some processors and none on others; the guest sees the same bits on all.
#[test]
fn nan_has_the_same_bits_everywhere() {
    let zero = "(f64.convert_i32_s (i32.sub (local.get 0) (local.get 0)))";
    let bits = format!("(i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 (f64.div {zero} {zero})) (i64.const 32)))");
    let canonical = format!("(if (i32.ne {bits} (i32.const 0x7ff80000)) (then (unreachable)))");
    let mut nan = Hostile::new("nan", "", &[]);
    nan.guest.apply = format!("{canonical} {}", nan.guest.apply);
    let guests = [nan];
    let site = super::site(&guests);
    site.write(&lines(&[opened("nan", "a")]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 1}));
}

/// A description that counts its calls says the same every time, since every time is the first.
#[test]
fn a_description_is_the_same_at_every_call() {
    let mut fickle = Hostile::new("fickle", "", &[]).fields("(global $count (mut i32) (i32.const 0))");
    let other = fickle.guest.memory.description(&seqgate_decide::rules::Description {
        version: "2.0.0".into(),
        states: vec![],
        ..description("fickle")
    });
    fickle.guest.describe = format!(
        "(if (global.get $count) (then (return (i32.const {other})))) (global.set $count (i32.const 1)) {}",
        fickle.guest.describe
    );
    let guests = [fickle];
    let site = super::site(&guests);
    site.write(&lines(&[opened("fickle", "a")]));
    site.run();
    site.append(&lines(&[opened("fickle", "a").v(2)]));
    site.run();
    assert_eq!(site.stands("fickle", "a"), ("open".into(), 2, 2));
    let rules = site.list(&["rules", "list"]);
    assert_eq!(rules[0]["version"], "1.0.0", "{rules:?}");
}
