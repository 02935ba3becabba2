//! G11, G2, G3: the process dies at chosen points of its commits and at random moments, again and again; what stands in
//! the end is what the oracle says, and what a run has that nobody disturbed.

use std::os::unix::process::ExitStatusExt as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seqgate_model as model;

use crate::program::{Site, batch, embedded, events, machine, until};
use crate::stream::{Stream, stream};
use crate::tables::{self, Tables};

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

/// The same stream, in the log of the ingest.
fn ingested(stream: &Stream, partitions: u32) -> Site {
    let machines = ["orders", "subscriptions", "accounts"].map(|m| machine(m, ""));
    let site = Site::new(&(batch(16) + &machines.concat() + &embedded(partitions)));
    site.write(&stream.lines);
    site.seqgate(&["ingest", "events.jsonl"]).exits(0);
    site
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

#[test]
fn at_every_point_of_a_commit() {
    let stream = stream(SEED, 120);
    let truth = truth(&stream);
    let undisturbed = site(&stream, 1);
    let report = undisturbed.run();
    assert!(report["batches"].as_u64().unwrap() > 50, "there are commits to die in: {report}");
    let undisturbed = tables::of(&undisturbed, &stream);
    agree(&truth, &undisturbed);
    undisturbed.sound();
    for point in ["before-begin", "mid-write", "before-commit", "after-commit"] {
        let killed = site(&stream, 1);
        let mut random = StdRng::seed_from_u64(SEED);
        for n in 1..=AT_EACH_POINT {
            let at = format!("{point}:{}", random.random_range(1..=12));
            let died = killed.seqgate(&["run", "--until-idle", "--fail-at", &at]);
            assert_eq!(died.status.signal(), Some(SIGABRT), "death {n}, at {at}: {}", died.err);
        }
        killed.run();
        let killed = tables::of(&killed, &stream);
        agree(&truth, &killed);
        killed.sound();
        undisturbed.same_history(&killed);
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
    let tables = tables::of(&site, &stream);
    agree(&truth(&stream), &tables);
    tables.sound();
}

/// One runs undisturbed, the other is killed again and again.
#[track_caller]
fn comes_to_the_same(stream: &Stream, undisturbed: &Site, killed: &Site) {
    undisturbed.run();
    kill_at_random(killed, stream.lines.len() as u64);
    let (undisturbed, killed) = (tables::of(undisturbed, stream), tables::of(killed, stream));
    agree(&undisturbed.observed, &killed);
    killed.sound();
    undisturbed.same_history(&killed);
}

#[test]
fn at_random_moments_behind_the_ingest() {
    let stream = stream(SEED + 3, 200);
    comes_to_the_same(&stream, &ingested(&stream, 4), &ingested(&stream, 4));
}

#[test]
fn at_random_moments_in_four_partitions() {
    let stream = stream(SEED + 2, 200);
    comes_to_the_same(&stream, &site(&stream, 4), &site(&stream, 4));
}
