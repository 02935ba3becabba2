//! G2, G11: nothing that was answered 202 is missing after the process was killed, wherever it was.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::http::{address, try_request};
use super::{BATCH, ONE, batch, site};
use crate::program::{Site, created};

/// How often the process dies.
const DEATHS: u64 = 6;

/// Posts from several connections until nobody answers any more; gives the ids that were answered 202.
fn post_until_it_dies(at: &str, death: u64, kill: impl FnOnce()) -> BTreeSet<String> {
    let (taken, over) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicBool::new(false)));
    let posting = |worker: u64| {
        let (taken, over, at) = (taken.clone(), over.clone(), at.to_owned());
        std::thread::spawn(move || {
            for n in 0.. {
                let keys: Vec<String> = (0..1 + n % 3).map(|i| format!("d{death}-w{worker}-{n}-{i}")).collect();
                let events: Vec<String> = keys.iter().map(|key| created(key).v(1).line()).collect();
                let (kind, body) = match events.as_slice() {
                    [one] => (ONE, one.clone()),
                    many => (BATCH, batch(many)),
                };
                match try_request(&at, "POST", "/v1/events", &[("content-type", kind)], body.as_bytes()) {
                    Ok(answer) if answer.status == 202 => taken.lock().unwrap().extend(keys),
                    Ok(answer) => assert!(matches!(answer.status, 429 | 503), "{answer:?}"),
                    Err(_) if over.load(Ordering::SeqCst) => return,
                    // The process died by itself, at the point where it was told to.
                    Err(_) => return,
                }
            }
        })
    };
    let workers: Vec<_> = (0..3).map(posting).collect();
    kill();
    over.store(true, Ordering::SeqCst);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    Arc::into_inner(taken).unwrap().into_inner().unwrap()
}

/// Every key that was taken is an entity.
#[track_caller]
fn all_there(site: &Site, taken: &BTreeSet<String>) {
    site.run();
    let there: BTreeSet<String> = site
        .list(&["entity", "list", "--limit", "100000"])
        .iter()
        .map(|e| e["key"].as_str().unwrap().to_owned())
        .collect();
    let missing: Vec<_> = taken.difference(&there).collect();
    assert_eq!(missing, Vec::<&String>::new(), "answered 202, and missing");
    let verdicts = site.verdicts();
    assert_eq!(verdicts, json!({"applied": there.len()}), "each came once");
}

#[test]
fn nothing_answered_is_missing_after_a_kill() {
    let site = site("");
    let mut taken = BTreeSet::new();
    for death in 0..DEATHS {
        let run = site.start(&["run"]);
        let at = address(&run);
        taken.extend(post_until_it_dies(&at, death, move || {
            // The moment is arbitrary.
            std::thread::sleep(std::time::Duration::from_millis(60 + 45 * death));
            run.kill();
        }));
    }
    assert!(taken.len() as u64 > DEATHS, "something was taken: {}", taken.len());
    all_there(&site, &taken);
}

#[test]
fn nothing_answered_is_missing_after_a_death_within_a_commit() {
    let site = site("");
    let mut taken = BTreeSet::new();
    for (death, point) in (100..).zip(["before-begin", "mid-write", "before-commit", "after-commit"]) {
        let run = site.start(&["run", "--fail-at", &format!("{point}:12")]);
        let at = address(&run);
        taken.extend(post_until_it_dies(&at, death, move || drop(run.wait())));
    }
    all_there(&site, &taken);
}
