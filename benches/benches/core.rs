//! The core alone: reading an envelope, comparing JSON, deciding. No store, no Wasm, one thread.
//!
//! Workload: one order (`order-1024`) of a versioned machine; its payment, with an idempotency key and a payload of 300
//! bytes of JSON, in an envelope of about 600. The rules answer at once, so `decide` is the core's own work, the digests
//! of data and effects included; everything that it asks for is loaded.
//!
//! | figure | what happens | beside it |
//! |---|---|---|
//! | `envelope/decode` | bytes to event, both digests | `envelope/serde_json`: the same bytes to a `Value`; `envelope/sha256`: one digest of the payload |
//! | `json/canonical` | the payload by value | `json/serde_json`: to a `Value` (members sorted) and back to text |
//! | `decide/applied` | a transition with a message and an intent | `decide/rules`: what the rules alone take |
//! | `decide/duplicate` | its inbox key is known | |
//! | `decide/gap` | version 4 where 2 is next: it waits | |
//! | `decide/gap behind 1000` | the same where 1,000 events wait already | |
//! | `decide/batch of 512` | four events of each of 128 new orders, decided, absorbed and merged; per batch | |

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use seqgate_benches::{Yes, decided, delivered, line, machines, payment, read};
use seqgate_decide::decide::decide;
use seqgate_decide::rules::{EntityView, EventView, Rules, TriggerView};
use seqgate_decide::world::World;
use seqgate_decide::writes::Writes;
use seqgate_decide::{canonical, digest};
use serde_json::Value;

fn envelope(c: &mut Criterion) {
    let machines = machines();
    let payload = payment();
    let line = line(1024, "order.paid", 2, &payload);
    let mut group = c.benchmark_group("envelope");
    group.throughput(Throughput::Bytes(line.len() as u64));
    group.bench_function("decode", |b| b.iter(|| read(black_box(&line), &machines)));
    group.bench_function("serde_json", |b| b.iter(|| serde_json::from_str::<Value>(black_box(&line))));
    group.bench_function("sha256", |b| b.iter(|| digest::of_bytes(black_box(payload.as_bytes()))));
    group.finish();
}

fn json(c: &mut Criterion) {
    let payload = payment();
    let mut group = c.benchmark_group("json");
    group.throughput(Throughput::Bytes(payload.len() as u64));
    group.bench_function("canonical", |b| b.iter(|| canonical::of(None, black_box(payload.as_bytes()))));
    let there_and_back = |text: &str| serde_json::from_str::<Value>(text).map(|value| value.to_string());
    group.bench_function("serde_json", |b| b.iter(|| there_and_back(black_box(&payload))));
    group.finish();
}

fn decisions(c: &mut Criterion) {
    let mut machines = machines();
    let event = |order, kind: &str, version| delivered(read(&line(order, kind, version, &payment()), &machines));
    let (created, paid) = (event(1024, "order.created", 1), event(1024, "order.paid", 2));
    let later = event(1024, "order.shipped", 4);
    let waiting: Vec<_> = (5..1_005).map(|version| event(1024, "order.shipped", version)).collect();
    let lives = ["order.created", "order.paid", "order.shipped", "order.delivered"];
    let lives = (1..).zip(lives).flat_map(|(version, kind)| (0..128).map(move |order| (order, kind, version)));
    let all: Vec<_> = lives.map(|(order, kind, version)| event(order, kind, version)).collect();

    let mut world = World::new();
    let mut first = decided(&mut world, &mut machines, &created);
    world.absorb(&mut first);
    let mut group = c.benchmark_group("decide");
    for (name, input) in [("applied", &paid), ("duplicate", &created), ("gap", &later)] {
        decided(&mut world, &mut machines, input);
        group.bench_function(name, |b| b.iter(|| decide(&world, &mut machines, black_box(input), 1)));
    }
    let mut rules = Yes::new();
    group.bench_function("rules", |b| b.iter(|| rules.apply(Some(&ENTITY), black_box(&EVENT))));

    let mut crowded = world.clone();
    for input in &waiting {
        let mut decision = decided(&mut crowded, &mut machines, input);
        crowded.absorb(&mut decision);
    }
    group.bench_function("gap behind 1000", |b| b.iter(|| decide(&crowded, &mut machines, black_box(&later), 1)));

    group.throughput(Throughput::Elements(all.len() as u64));
    let mut batch = |mut world: World| {
        let mut writes = Writes::default();
        for input in &all {
            let mut decision = decided(&mut world, &mut machines, input);
            world.absorb(&mut decision);
            writes.merge(decision.writes);
        }
        writes
    };
    group.bench_function("batch of 512", |b| b.iter_batched(World::new, &mut batch, BatchSize::LargeInput));
    group.finish();
}

const ENTITY: EntityView<'static> = EntityView {
    key: b"order-1024",
    version: 1,
    revision: 1,
    state: "pending",
    entered: 0,
    schema: 1,
    data: b"{}",
    timers: &[],
};

const EVENT: EventView<'static> = EventView {
    id: "order-1024-2",
    source: "/shop/orders",
    trigger: TriggerView::Event("order.paid"),
    key: b"order-1024",
    version: Some(2),
    time: 0,
    idempotency_key: None,
    correlation_id: None,
    content_type: None,
    attributes: &[],
    met: &[],
    data: b"{}",
};

criterion_group!(benches, envelope, json, decisions);
criterion_main!(benches);
