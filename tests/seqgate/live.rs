//! Entities that come from another system, and entities that are erased (R5), through the program.

use serde_json::json;

use crate::program::{Ev, Site, created, ev, events, lines, machine, paid, until};

const BY: [&str; 4] = ["--actor", "ada", "--reason", "ticket 7"];

fn orders() -> Site {
    Site::new(&(machine("orders", "") + &events(2)))
}

fn exported(key: &str, version: u64, state: &str) -> String {
    format!(
        r#"{{"key":"{key}","version":{version},"state":"{state}","schema":1,"data":{{"total":"1999","currency":"EUR"}}}}"#
    )
}

#[test]
fn an_imported_entity_goes_on_and_a_second_import_finds_it() {
    let site = orders();
    site.write(&lines(&[ev("order.shipped", "o1").v(3), paid("o1").v(2)]));
    site.run();
    let file = site.put("export.jsonl", format!("{}\n{}\n", exported("o1", 2, "paid"), exported("o2", 1, "pending")));
    let import = [&["entity", "import", &file, "--machine", "orders"][..], &BY].concat();
    let report = site.ask(&import);
    assert_eq!((&report["imported"], &report["already"]), (&json!(2), &json!(0)), "{report}");
    assert_eq!(site.stands("orders", "o1"), ("shipped".to_owned(), 3, 2));
    let report = site.ask(&import);
    assert_eq!((&report["imported"], &report["already"]), (&json!(0), &json!(2)), "{report}");
    assert_eq!(site.list(&["entity", "history", "orders", "o1"])[0]["cause"], "import");
}

#[test]
fn bad_lines_are_named_and_the_others_are_imported() {
    let site = orders();
    site.write(&[]);
    site.run();
    let text = format!("{}\nnonsense\n{}\n", exported("o1", 1, "nowhere"), exported("o2", 1, "pending"));
    let file = site.put("export.jsonl", text);
    let done = site.seqgate(&["--json", "entity", "import", &file, "--machine", "orders"]).exits(1);
    let report = done.json();
    assert_eq!((&report["imported"], &report["bad"]), (&json!(1), &json!(2)), "{report}");
    assert_eq!(report["lines"][0]["line"], 2, "{report}");
}

#[test]
fn an_erased_entity_keeps_its_place_and_nothing_of_its_contents() {
    let site = orders();
    let first = created("o1").v(1);
    site.write(&lines([&first]));
    site.run();
    site.refused(1, &[&["entity", "erase", "orders", "o1"][..], &BY].concat());
    site.ask(&[&["entity", "erase", "orders", "o1", "--live"][..], &BY].concat());
    let shown = site.entity("orders", "o1");
    assert_eq!(
        (&shown["erased"], &shown["data"], &shown["version"]),
        (&json!(true), &json!(null), &json!(1)),
        "{shown}"
    );
    site.append(&lines(&[first, paid("o1").v(2)]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 1, "duplicate": 1, "skipped": 1}));
}

fn tiny_retention() -> Site {
    let config = "[retention]\nhistory = \"1s\"\ninbox = \"1s\"\nintents = \"1s\"\n\n";
    Site::new(&(config.to_owned() + &machine("orders", "") + &events(2)))
}

fn counted(site: &Site, table: &str) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("sqlite:{}", site.path("seqgate.db").display());
    runtime.block_on(async {
        let mut conn = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.unwrap();
        let sql = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        let n: i64 = sqlx::query_scalar(sql).fetch_one(&mut conn).await.unwrap();
        n.unsigned_abs()
    })
}

/// Two events each of many orders, and one that waits for its predecessor.
fn some_orders(n: u64) -> Vec<Ev> {
    let one = |i: u64| {
        let key = format!("o{i}");
        [created(&key).v(1), paid(&key).v(2).set("idempotencykey", &format!("pay-{i}"))]
    };
    (0..n).flat_map(one).chain([paid("late").v(2).id("late-2")]).collect()
}

#[test]
fn what_is_past_its_retention_goes_and_repeats_are_still_known() {
    let site = tiny_retention();
    let orders = some_orders(600);
    site.write(&lines(&orders));
    site.run();
    assert_eq!((counted(&site, "history"), counted(&site, "inbox")), (1_200, 1_201));
    // Nothing new: only time passes, and each run prunes what is old by then.
    until("all of it is past its retention", || {
        site.run();
        (counted(&site, "history") == 0 && counted(&site, "inbox") == 1).then_some(())
    });
    assert_eq!(counted(&site, "intents"), 600, "paid is no terminal state");
    let shown = site.entity("orders", "o7");
    assert_eq!((&shown["version"], &shown["pruned_through"], &shown["state"]), (&json!(2), &json!(2), &json!("paid")));
    site.seqgate(&["entity", "history", "orders", "o7"]).exits(0).says("Revisions up to 2 are past their retention");
    // The same events once more, under the same ids and under others; then what follows them.
    let again: Vec<Ev> = orders.iter().take(400).map(|e| e.clone().id("again")).collect();
    let again = again.into_iter().zip(0..).map(|(e, i)| e.id(&format!("again-{i}")));
    site.append(&lines(&orders));
    site.append(&lines(&again.collect::<Vec<_>>()));
    site.append(&lines(&[ev("order.shipped", "o7").v(3), created("late").v(1)]));
    site.run();
    assert_eq!(site.verdicts(), json!({"applied": 1_203, "duplicate": 1_601}));
    assert_eq!(site.stands("orders", "o7"), ("shipped".to_owned(), 3, 3));
    assert_eq!(site.stands("orders", "late"), ("paid".to_owned(), 2, 2));
    let note = site.ask(&["event", "show", "again-14"]);
    assert!(note.to_string().contains("duplicate"), "{note}");
}

#[test]
fn a_machine_without_versions_is_warned_that_it_forgets() {
    let site = Site::new(&(machine("orders", "ordering = \"causal\"\nretention = { inbox = \"7d\" }") + &events(2)));
    site.run();
    site.seqgate(&["check"]).exits(0).says("are kept for 7 d");
}

#[test]
fn an_import_that_is_killed_goes_on_where_it_was() {
    const N: u64 = 6_000;
    let text: String = (0..N).map(|i| exported(&format!("o{i}"), 1 + i % 3, "pending") + "\n").collect();
    let whole = orders();
    whole.run();
    let import = |site: &Site| {
        let file = site.put("export.jsonl", &text);
        [&["entity", "import", &file, "--machine", "orders"][..], &BY]
            .concat()
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    let args: Vec<String> = import(&whole);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    whole.ask(&args);
    let cut = orders();
    cut.run();
    let args: Vec<String> = import(&cut);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let running = cut.start(&args);
    until("some are there", || (counted(&cut, "entities") > 0).then_some(()));
    running.kill();
    let there = counted(&cut, "entities");
    assert!(there < N, "it was killed too late");
    let report = cut.ask(&args);
    assert_eq!((&report["already"], &report["imported"]), (&json!(there), &json!(N - there)), "{report}");
    for site in [&whole, &cut] {
        assert_eq!((counted(site, "entities"), counted(site, "history")), (N, N));
    }
    assert_eq!(stands(&whole), stands(&cut));
}

/// Every entity, without the times of its import.
fn stands(site: &Site) -> Vec<String> {
    let mut items = site.list(&["entity", "list", "--limit", "10000"]);
    items.iter_mut().for_each(|e| drop(e.as_object_mut().unwrap().remove("entered")));
    items.iter().map(ToString::to_string).collect()
}
