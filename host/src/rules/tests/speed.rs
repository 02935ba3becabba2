//! How long a decision takes: fresh store, fresh instance, `apply`, everything dropped. Run alone, in release:
//! `cargo test --release -p seqgate --lib rules::tests::speed -- --ignored --nocapture`. With a component's path in
//! `SEQGATE_GUEST` it measures that instead of the small guest here.

use std::time::{Duration, Instant};

use seqgate_decide::rules::Rules;

use super::super::prepare::MAX_COMPONENT;
use super::super::{Allocation, Engine, EngineOptions, Limits, LoadedRules, prepare};
use super::guest::Guest;
use super::{entity, event};

#[test]
#[ignore = "measures, and is right only in release on a quiet machine"]
fn a_decision() {
    let module = std::env::var_os("SEQGATE_GUEST").map_or_else(
        // What a small Rust guest has: 17 pages.
        || Guest { pages: 17, ..Guest::new() }.module(),
        |path| std::fs::read(path).unwrap(),
    );
    let start = Instant::now();
    let prepared = prepare(&module, MAX_COMPONENT).unwrap();
    println!("prepare {} bytes: {:?}", module.len(), start.elapsed());
    for allocation in [Allocation::OnDemand, Allocation::Pooled { instances: 64 }] {
        let start = Instant::now();
        let engine = Engine::new(&EngineOptions { allocation, ..EngineOptions::default() }).unwrap();
        println!("{allocation:?}: engine {:?}", start.elapsed());
        let start = Instant::now();
        let rules = LoadedRules::load(&engine, &prepared, Limits::default(), None).unwrap();
        println!("  compile and describe {:?}", start.elapsed());
        for threads in [1, 2] {
            let took = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| decide(&rules))).collect();
                workers.into_iter().map(|worker| worker.join().unwrap()).max().unwrap()
            });
            println!("  {threads} threads: {took:?} a decision on each");
        }
    }
}

fn decide(rules: &std::sync::Arc<LoadedRules>) -> Duration {
    const ROUNDS: u32 = 20_000;
    let data = br#"{"total":1999,"currency":"EUR","lines":[{"sku":"a-1","count":2},{"sku":"b-7","count":1}]}"#;
    let mut session = rules.open();
    let current = entity("open", b"{}");
    let mut once = || session.apply(Some(&current), &event(data));
    (0..1_000).for_each(|_| drop(once()));
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| drop(once()));
    let took = start.elapsed() / ROUNDS;
    println!("    fuel {}", session.fuel_used());
    took
}
