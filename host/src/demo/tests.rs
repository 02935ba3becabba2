//! The stream is the same for a seed, causes every verdict, and ends as it was made to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use seqgate_decide::verdict::Verdict;
use tokio::sync::watch;

use super::{Options, demonstrate, report, stream};

const EVENTS: usize = 2_000;

#[test]
fn a_seed_is_a_stream() {
    let (one, same, other) = (stream::generate(EVENTS, 7), stream::generate(EVENTS, 7), stream::generate(EVENTS, 8));
    assert_eq!(one.bytes(), same.bytes());
    assert_eq!(one.truth, same.truth);
    assert_ne!(one.bytes(), other.bytes());
}

#[test]
fn every_verdict_is_meant_to_happen() {
    for seed in 1..=20 {
        let stream = stream::generate(EVENTS, seed);
        assert_eq!(stream.lines.len(), EVENTS, "seed {seed}");
        for verdict in Verdict::ALL {
            assert!(stream.truth.verdicts.get(&verdict).is_some_and(|n| *n > 0), "seed {seed}: no {verdict}");
            assert!(stream.examples.iter().any(|e| e.verdict == verdict), "no example of {verdict}");
        }
        assert_eq!(stream.truth.verdicts.values().sum::<u64>(), EVENTS as u64, "seed {seed}");
        assert_eq!(stream.truth.outbox.len(), 3, "seed {seed}");
    }
    assert_eq!(stream::generate(0, 1).lines.len(), stream::FEWEST);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_ends_as_it_was_made_to() {
    for seed in 1..=3 {
        let options = Options { events: EVENTS, seed, dir: None, keep: false };
        let decided = Arc::new(AtomicU64::new(0));
        let counter = decided.clone();
        let progress = move |n| {
            counter.fetch_add(n, Ordering::Relaxed);
        };
        let (_stop, stopped) = watch::channel(false);
        let outcome = demonstrate(&options, progress, stopped).await.expect("a demo");
        assert!(outcome.is_right(), "seed {seed}: {:#?}", outcome.found.differences);
        assert_eq!(decided.load(Ordering::Relaxed), EVENTS as u64, "seed {seed}");
        assert_eq!(outcome.report.swept, 0, "seed {seed}");
        assert_eq!(outcome.examples.len(), Verdict::ALL.len(), "seed {seed}");
        assert!(report::summary(&outcome).right, "seed {seed}");
        assert!(report::text(&outcome, "seqgate", 80).lines().all(|l| l.chars().count() <= 120), "seed {seed}");
        let path = outcome.folder.path().to_owned();
        assert!(path.join("seqgate.db").exists());
        drop(outcome);
        assert!(!path.exists(), "a temporary folder stays behind");
    }
}
