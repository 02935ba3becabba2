//! Entities that come from another system, and entities that are erased (R5), through the program.

use serde_json::json;

use crate::program::{Site, created, ev, events, lines, machine, paid};

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
