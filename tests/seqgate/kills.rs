//! G11, G2, G3: the process dies at chosen points of its commits and at random moments, again and again; what stands in
//! the end is what the oracle says, and what a run has that nobody disturbed.

mod stream;
mod tables;

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seqgate_model::{self as model, Step};

use self::stream::{Stream, stream};
use self::tables::Tables;
use crate::program::{Site, batch, events, machine, until};

const SEED: u64 = 20_261_130;
/// Times that the process dies at each point of a commit.
const AT_EACH_POINT: usize = 6;
const AT_RANDOM: usize = 20;
const SIGABRT: i32 = 6;
const SIGKILL: i32 = 9;

fn site(stream: &Stream, partitions: u32) -> Site {
    let machines = ["orders", "subscriptions", "accounts"].map(|m| machine(m, ""));
    let site = Site::new(&(batch(16) + &machines.concat() + &events(partitions)));
    site.write(&stream.lines);
    site
}

fn read(site: &Site, stream: &Stream) -> Tables {
    let ids: BTreeSet<String> = deliveries(stream).filter_map(|event| event.map(|e| e.id.clone())).collect();
    tables::read(&site.path("seqgate.db"), ids)
}

fn deliveries(stream: &Stream) -> impl Iterator<Item = Option<&model::Event>> {
    stream.history.steps.iter().map(|step| match step {
        Step::Deliver(model::Delivery { meaning: model::Meaning::Event(event), .. }) => Some(&**event),
        _ => None,
    })
}

/// What must have become of a stream in one partition.
fn truth(stream: &Stream) -> model::Observed {
    let replayed = model::replay(&stream.history, &model::serial(&stream.history));
    assert_eq!(replayed.complaints, Vec::<String>::new());
    replayed.observed
}

#[track_caller]
fn agree(truth: &model::Observed, tables: &Tables) {
    let differences = model::diff(truth, &tables.observed);
    assert!(differences.is_empty(), "seed {SEED}: {} differences\n{}", differences.len(), differences.join("\n"));
}

/// What holds whatever was killed: revisions and consumed versions without a hole or a repetition, every id once.
fn sound(tables: &Tables) {
    let mut ids = BTreeSet::new();
    for (entity, rows) in &tables.history {
        for (n, row) in (1..).zip(rows) {
            assert_eq!(row.revision, n, "{entity:?}: revisions are consecutive");
            assert_eq!(row.consumed, Some(n), "{entity:?}: versions are consumed one after the other");
            assert_eq!(row.previous_state.is_none(), n == 1, "{entity:?}: a change begins where the last one ended");
            let event = row.event.as_ref().expect("these streams have events only");
            assert!(ids.insert(event.key.clone()), "{:?} has two revisions", event.key);
        }
        for pair in rows.windows(2) {
            assert_eq!(pair[0].next_state, pair[1].previous_state, "{entity:?}");
        }
    }
}

/// The same revisions, but for the moment at which they were decided.
fn same_history(undisturbed: &Tables, killed: &Tables) {
    assert_eq!(undisturbed.history.keys().collect::<Vec<_>>(), killed.history.keys().collect::<Vec<_>>());
    for (entity, rows) in &undisturbed.history {
        let timeless = |rows: &[seqgate_decide::writes::HistoryRow]| -> Vec<_> {
            rows.iter().cloned().map(|row| seqgate_decide::writes::HistoryRow { decided_at: 0, ..row }).collect()
        };
        let event = |row: &seqgate_decide::writes::HistoryRow| row.event.as_ref().map(|e| e.key.id.clone());
        let (a, b) = (timeless(rows), timeless(&killed.history[entity]));
        assert_eq!(a.iter().map(event).collect::<Vec<_>>(), b.iter().map(event).collect::<Vec<_>>(), "{entity:?}");
        for (a, b) in a.iter().zip(&b) {
            assert_eq!((a.data_digest, a.effects_digest, a.rules), (b.data_digest, b.effects_digest, b.rules));
        }
    }
}

#[test]
fn at_every_point_of_a_commit() {
    let stream = stream(SEED, 120);
    let truth = truth(&stream);
    let undisturbed = site(&stream, 1);
    let report = undisturbed.run();
    assert!(report["batches"].as_u64().unwrap() > 50, "there are commits to die in: {report}");
    let undisturbed = read(&undisturbed, &stream);
    agree(&truth, &undisturbed);
    sound(&undisturbed);
    for point in ["before-begin", "mid-write", "before-commit", "after-commit"] {
        let killed = site(&stream, 1);
        let mut random = StdRng::seed_from_u64(SEED);
        for n in 1..=AT_EACH_POINT {
            let at = format!("{point}:{}", random.random_range(1..=12));
            let died = killed.seqgate(&["run", "--until-idle", "--fail-at", &at]);
            assert_eq!(died.status.signal(), Some(SIGABRT), "death {n}, at {at}: {}", died.err);
        }
        killed.run();
        let killed = read(&killed, &stream);
        agree(&truth, &killed);
        sound(&killed);
        same_history(&undisturbed, &killed);
    }
}

/// Kills the run each time some more deliveries were committed, wherever it is then.
fn kill_at_random(site: &Site, deliveries: u64) {
    let mut random = StdRng::seed_from_u64(SEED);
    let database = site.path("seqgate.db");
    for n in 1..=AT_RANDOM as u64 {
        let least = n * deliveries / (AT_RANDOM as u64 + 4) + random.random_range(0..20);
        let mut run = site.start(&["run"]);
        until("enough was committed", || {
            assert!(run.runs(), "it ended by itself: {}", run.told());
            (tables::received(&database) >= least).then_some(())
        });
        // The moment itself is arbitrary.
        std::thread::sleep(std::time::Duration::from_micros(random.random_range(0..20_000)));
        assert_eq!(run.kill().status.signal(), Some(SIGKILL), "death {n}");
    }
    site.run();
}

#[test]
fn at_random_moments_in_one_partition() {
    let stream = stream(SEED + 1, 200);
    let site = site(&stream, 1);
    kill_at_random(&site, stream.lines.len() as u64);
    let tables = read(&site, &stream);
    agree(&truth(&stream), &tables);
    sound(&tables);
}

#[test]
fn at_random_moments_in_four_partitions() {
    let stream = stream(SEED + 2, 200);
    let (undisturbed, killed) = (site(&stream, 4), site(&stream, 4));
    undisturbed.run();
    kill_at_random(&killed, stream.lines.len() as u64);
    let (undisturbed, killed) = (read(&undisturbed, &stream), read(&killed, &stream));
    agree(&undisturbed.observed, &killed);
    sound(&killed);
    same_history(&undisturbed, &killed);
}
