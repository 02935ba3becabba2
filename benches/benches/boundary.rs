//! The boundary: the real `orders` component asked in a fresh instance each time (R8), as `run` asks it.
//!
//! Workload: an order in `pending`, and its payment of 300 bytes of JSON. `applied` goes to `paid`, cancels a timer and
//! sends a message; `refused` is the same payment of another amount, which the rules read whole and answer with a code.
//! A figure is everything that one decision pays: store, instance, arguments in, answer out, all dropped.
//!
//! | figure | instances |
//! |---|---|
//! | `pooled/…` | from slots that are wiped between uses: what `run` does |
//! | `on demand/…` | mapped for each |
//! | `native/…` | none: the same rules as Rust, through the test kit; what the work itself takes |

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use seqgate::rules::build::build;
use seqgate::rules::{Allocation, Engine, EngineOptions, Limits, LoadedRules, Prepared};
use seqgate_benches::payment;
use seqgate_decide::rules::{EntityView, EventView, Rules, TriggerView};
use seqgate_guest::testing::Native;
use seqgate_guest::testing::scenario::{Entity, Event, PendingTimer, Subject, Trigger};

const ORDER: &[u8] = br#"{"total":1999,"currency":"EUR"}"#;
const DUE: i64 = 1_800_000;

fn component() -> Prepared {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machines/orders");
    build(&folder).expect("the orders component is built")
}

fn event(data: &[u8]) -> EventView<'_> {
    EventView {
        id: "order-1024-2",
        source: "/shop/orders",
        trigger: TriggerView::Event("order.paid"),
        key: b"order-1024",
        version: Some(2),
        time: 1_000,
        idempotency_key: Some("pay:order-1024"),
        correlation_id: Some("checkout-77"),
        content_type: Some("application/json"),
        attributes: &[],
        met: &[],
        data,
    }
}

fn payments() -> [(&'static str, String); 2] {
    let paid = payment();
    let other = paid.replacen("1999", "1998", 1);
    [("applied", paid), ("refused", other)]
}

fn instances(c: &mut Criterion) {
    let prepared = component();
    let timers = [("payment-timeout".to_owned(), DUE)];
    let current = EntityView {
        key: b"order-1024",
        version: 1,
        revision: 1,
        state: "pending",
        entered: 0,
        schema: 1,
        data: ORDER,
        timers: &timers,
    };
    for (name, allocation) in [("pooled", EngineOptions::default().allocation), ("on demand", Allocation::OnDemand)] {
        let engine = Engine::new(&EngineOptions { allocation, ..EngineOptions::default() }).expect("an engine");
        let rules = LoadedRules::load(&engine, &prepared, Limits::default(), None).expect("rules");
        let mut session = rules.open();
        let mut group = c.benchmark_group(name);
        for (what, data) in payments() {
            let answer = session.apply(Some(&current), &event(data.as_bytes())).expect("no fault");
            assert_eq!(answer.is_ok(), what == "applied", "{answer:?}");
            group
                .bench_function(what, |b| b.iter(|| session.apply(black_box(Some(&current)), &event(data.as_bytes()))));
        }
        group.finish();
    }
}

fn native(c: &mut Criterion) {
    let mut rules = Native::<orders::Orders>::new();
    let current = Entity {
        key: b"order-1024".to_vec(),
        version: 1,
        revision: 1,
        state: "pending".into(),
        entered: 0,
        schema: 1,
        data: ORDER.to_vec(),
        timers: vec![PendingTimer { name: "payment-timeout".into(), due: DUE }],
    };
    let mut group = c.benchmark_group("native");
    for (what, data) in payments() {
        let event = Event {
            id: "order-1024-2".into(),
            source: "/shop/orders".into(),
            trigger: Trigger::Event("order.paid".into()),
            key: b"order-1024".to_vec(),
            version: Some(2),
            time: 1_000,
            idempotency_key: Some("pay:order-1024".into()),
            correlation_id: Some("checkout-77".into()),
            content_type: Some("application/json".into()),
            attributes: vec![],
            met: vec![],
            data: data.into_bytes(),
        };
        let answer = rules.apply(Some(&current), &event).expect("no fault");
        assert_eq!(answer.is_ok(), what == "applied", "{answer:?}");
        group.bench_function(what, |b| b.iter(|| rules.apply(black_box(Some(&current)), &event)));
    }
    group.finish();
}

criterion_group!(benches, instances, native);
criterion_main!(benches);
