//! Inputs with the right answers beside them, typed by hand from docs/concepts/rules.md: raw lines, the machine with its
//! options, and what must come out of the built program. A file in `data/` is a case, and has a test of its name below.
//!
//! `expect` may have: `verdicts` (exactly these), `verdicts_min`, `entities` and `absent` of the case's machine, `others`
//! (entities of other machines), `outbox` (messages by type), `codes` (dead letters, open or closed, by code), `conflicts`
//! (by code), `waiting` (deferred events by reason).

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde_json::Value;

use crate::program::{self, Site};

const MACHINES: [&str; 3] = ["orders", "subscriptions", "accounts"];
const OPTIONS: [&str; 7] =
    ["ordering", "on_illegal", "on_malformed", "on_fault", "on_unknown", "on_early", "many_sources"];

#[derive(serde::Deserialize)]
struct Case {
    title: String,
    machine: String,
    lines: Vec<Line>,
    #[serde(default = "two")]
    partitions: u32,
    #[serde(default)]
    ignore: Vec<String>,
    expect: Expect,
    #[serde(flatten)]
    options: BTreeMap<String, String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    verdicts: Option<Value>,
    verdicts_min: BTreeMap<String, u64>,
    entities: BTreeMap<String, BTreeMap<String, Value>>,
    others: BTreeMap<String, BTreeMap<String, BTreeMap<String, Value>>>,
    absent: Vec<String>,
    outbox: BTreeMap<String, u64>,
    codes: Option<BTreeMap<String, u64>>,
    conflicts: Option<BTreeMap<String, u64>>,
    waiting: Option<BTreeMap<String, u64>>,
}

fn two() -> u32 {
    2
}

/// A line's bytes. JSON's `\ud800` alone stands for the three bytes that UTF-8 forbids.
struct Line(Vec<u8>);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Line;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a line")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Line, E> {
                Ok(Line(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

impl Case {
    fn read(name: &str) -> Self {
        let path = program::root().join("tests/seqgate/cases/data").join(format!("{name}.json"));
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let case: Self = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for option in case.options.keys() {
            assert!(OPTIONS.contains(&option.as_str()), "{name}: there is no option `{option}`");
        }
        case
    }

    fn site(&self, source: &str) -> Site {
        let ignore = serde_json::to_string(&self.ignore).unwrap();
        let options = self.options.iter().map(|(key, value)| format!("{key} = \"{value}\"\n"));
        let options = options.chain([format!("ignore = {ignore}\n")]).collect::<String>();
        let machines = MACHINES.map(|m| program::machine(m, if m == self.machine { &options } else { "" }));
        let site = Site::new(&(machines.concat() + source));
        for Line(bytes) in &self.lines {
            site.append_bytes(bytes);
            site.append_bytes(b"\n");
        }
        site
    }

    fn differences(&self, site: &Site) -> Vec<String> {
        let (want, mut bad) = (&self.expect, Vec::new());
        let got = site.verdicts();
        if want.verdicts.as_ref().is_some_and(|w| *w != got) {
            bad.push(format!("verdicts {got}, not {}", want.verdicts.as_ref().unwrap()));
        }
        for (verdict, least) in &want.verdicts_min {
            if got[verdict].as_u64().unwrap_or(0) < *least {
                bad.push(format!("verdicts {got}, not at least {least} {verdict}"));
            }
        }
        self.entities(site, &self.machine, &want.entities, &mut bad);
        for (machine, entities) in &want.others {
            self.entities(site, machine, entities, &mut bad);
        }
        for key in &want.absent {
            let shown = site.seqgate(&["entity", "show", &self.machine, key, "--json"]);
            if shown.code() == Some(0) && shown.json()["version"] != 0 {
                bad.push(format!("{key} is there: {}", shown.out));
            }
        }
        let outbox = tally(site, &["outbox", "list"], "type");
        for (kind, n) in &want.outbox {
            if outbox.get(kind).unwrap_or(&0) != n {
                bad.push(format!("outbox {outbox:?}, not {n} of {kind}"));
            }
        }
        let lists = [
            (["dead-letter", "list"], "code", &want.codes),
            (["conflict", "list"], "code", &want.conflicts),
            (["deferred", "list"], "reason", &want.waiting),
        ];
        for (list, member, want) in lists {
            if let Some(want) = want {
                let got = tally(site, &list, member);
                if got != *want {
                    bad.push(format!("{list:?} has {got:?}, not {want:?}"));
                }
            }
        }
        bad
    }

    fn entities(
        &self,
        site: &Site,
        machine: &str,
        entities: &BTreeMap<String, BTreeMap<String, Value>>,
        bad: &mut Vec<String>,
    ) {
        for (key, members) in entities {
            let shown = site.seqgate(&["entity", "show", machine, key, "--json"]);
            if shown.code() != Some(0) {
                bad.push(format!("{key} is not shown: {}", shown.err));
                continue;
            }
            let entity = shown.json();
            for (member, want) in members {
                let got = match member.as_str() {
                    "blocked" if !want.is_null() => &entity["blocked"]["reason"],
                    member => &entity[member],
                };
                let same = match member.as_str() {
                    // As it is written: no number goes through a float here.
                    "data_contains" => data(&shown.out).contains(want.as_str().unwrap()),
                    _ => got == want,
                };
                if !same {
                    bad.push(format!("{key}: {member} is {got}, not {want}"));
                }
            }
        }
    }
}

fn data(entity: &str) -> String {
    #[derive(serde::Deserialize)]
    struct Shown {
        data: Option<Box<serde_json::value::RawValue>>,
    }
    serde_json::from_str::<Shown>(entity).unwrap().data.map(|data| data.to_string()).unwrap_or_default()
}

fn tally(site: &Site, list: &[&str], member: &str) -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::new();
    for item in site.list(list) {
        *counted.entry(item[member].as_str().unwrap_or("null").to_owned()).or_default() += 1;
    }
    counted
}

fn check(name: &str) {
    let case = Case::read(name);
    let site = case.site(&program::events(case.partitions));
    check_in(name, &case, &site);
}

/// The same lines through the ingest's log.
fn check_ingested(name: &str) {
    let case = Case::read(name);
    let site = case.site(&program::embedded(case.partitions));
    site.seqgate(&["ingest", "events.jsonl"]).exits(0);
    check_in(name, &case, &site);
}

fn check_in(name: &str, case: &Case, site: &Site) {
    site.seqgate(&["run", "--until-idle"]).exits(0);
    let bad = case.differences(site);
    assert!(bad.is_empty(), "{name}: {}\n  {}", case.title, bad.join("\n  "));
}

macro_rules! cases {
    ($($name:ident)*) => {
        const ALL: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check(&stringify!($name).replace('_', "-"));
            }
        )*
        mod ingested {
            $(
                #[test]
                fn $name() {
                    super::check_ingested(&stringify!($name).replace('_', "-"));
                }
            )*
        }
    };
}

cases! {
    accounts_refuse
    amounts
    arrival_early
    arrival_goes_on
    arrival_holds
    bad_utf_8
    base64_copy
    cancelled_after_payment
    causal_versions
    compensates
    compensates_renewals
    conflict_copies
    conflict_is_next
    control_characters
    data_forms
    delivered_twice
    dependency_beyond
    dependency_cycle
    dependency_on_the_ignored
    dependency_on_the_skipped
    depends_on_entity
    depends_on_type
    dependson_limits
    duplicate_members
    early_and_unknown
    early_from_nothing
    early_waits
    eight_partitions
    empty_attributes
    envelopes_park_in_arrival
    envelopes_skip_in_arrival
    envelopes_skip_in_causal
    exact_amounts
    extensions
    filtered_stream
    forks
    gap_stays
    id_and_type_limits
    ignored_before_creation
    ignored_in_arrival
    ignored_in_causal
    ignored_type
    illegal_parks_its_entity
    illegal_skips
    intent_of_the_refused
    intents
    keys
    last_version
    late_create
    lines
    logical_time
    machine_names
    nesting
    no_timers
    not_an_envelope
    not_early
    null_is_absent
    odd_keys
    old_version_unfamiliar_id
    one_partition
    own_dependency
    parked_place
    passed_over_while_waiting
    payload_bytes
    payload_skips
    payments
    previous_zero
    refunds
    repeated_members_in_data
    reserialised
    reserialised_waiting
    same_id_other_content
    same_intent
    snapshot_parked_place
    snapshot_supersedes
    snapshot_versions
    snapshot_waits
    snapshots
    sources_apart
    subscription_life
    swap
    terminal
    times
    two_machines
    two_normal_forms
    unknown_follows_illegal
    unknown_parks_illegal_skips
    unknown_skips
    unknown_type
    versions
    waiting_events_too
}

#[test]
fn every_file_is_a_test() {
    let folder = program::root().join("tests/seqgate/cases/data");
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".json", "").replace('-', "_"))
        .collect();
    found.sort();
    assert_eq!(found, ALL);
}
