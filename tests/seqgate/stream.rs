//! A seeded stream: lives of orders, subscriptions and accounts, and what happens to streams on their way.

use std::collections::BTreeSet;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seqgate_model::{
    Delivery, Dependency, EntityId, Event, History, MachineSetup, Meaning, Ordering, Policy, Setup, SourceSetup, Step,
    Target, Value,
};

const MACHINES: [&str; 3] = ["orders", "subscriptions", "accounts"];
/// [`TIME`](crate::program::TIME) in milliseconds.
const TIME: i64 = 4_951_706_400_000;

/// What a line means, where it means something.
type Sent = Option<Event>;

/// A stream as lines, and as the oracle wants it.
pub struct Stream {
    /// The file.
    pub lines: Vec<String>,
    /// Its meaning in one partition.
    pub history: History,
}

impl Stream {
    /// The ids of its events.
    pub fn ids(&self) -> BTreeSet<String> {
        let id = |step: &Step| match step {
            Step::Deliver(Delivery { meaning: Meaning::Event(event), .. }) => Some(event.id.clone()),
            _ => None,
        };
        self.history.steps.iter().filter_map(id).collect()
    }
}

/// The stream of a seed over this many entities.
pub fn stream(seed: u64, entities: usize) -> Stream {
    let mut random = StdRng::seed_from_u64(seed);
    let lives: Vec<Vec<Event>> = (0..entities).map(|n| life(&mut random, n)).collect();
    let mut sent: Vec<(f64, Sent)> = Vec::new();
    for (n, mut events) in lives.iter().cloned().enumerate() {
        depend(&mut random, n, &lives, &mut events);
        let start: f64 = random.random_range(0.0..80.0);
        for (i, event) in events.iter().enumerate() {
            // A step is 1 long: some events come before those that they follow.
            let at = start + i as f64 + random.random_range(0.0..2.0);
            copies(&mut random, event, at, &mut sent);
            // Some never come, but the first always does.
            if i == 0 || !random.random_bool(0.004) {
                sent.push((at, Some(event.clone())));
            }
        }
    }
    sent.extend((0..entities / 8).map(|_| (random.random_range(0.0..100.0), None)));
    sent.sort_by(|a, b| a.0.total_cmp(&b.0));
    history(seed, sent.into_iter().map(|(_, sent)| sent).collect())
}

fn history(seed: u64, sent: Vec<Sent>) -> Stream {
    let (mut lines, mut steps, mut position) = (Vec::new(), Vec::new(), 0);
    for sent in sent {
        let line = sent.as_ref().map_or_else(|| "{\"no\":\"event\"".to_owned(), line);
        let meaning = match sent {
            Some(event) => Meaning::Event(Box::new(event)),
            None => Meaning::Malformed { entity: None, why: "it ends early" },
        };
        let (source, bytes) = ("events".to_owned(), line.clone().into_bytes());
        steps.push(Step::Deliver(Delivery {
            source,
            partition: 0,
            position,
            received: 0,
            bytes,
            meaning,
            replay: false,
        }));
        position += line.len() as u64 + 1;
        lines.push(line);
    }
    let machine = MachineSetup {
        ordering: Ordering::Versioned,
        on_illegal: Policy::Park,
        on_malformed: Policy::Park,
        on_fault: Policy::Park,
        on_unknown: Policy::Park,
        ignore: BTreeSet::new(),
        on_early_wait: false,
        early_after: 3_600_000,
    };
    let setup = Setup {
        machines: MACHINES.map(|m| (m.to_owned(), machine.clone())).into(),
        sources: vec![SourceSetup { name: "events".into(), partitions: 1 }],
        markers: false,
    };
    Stream { lines, history: History { seed, setup, steps } }
}

/// Everything that one entity lives through, in order; in some lives an event that the rules refuse.
fn life(random: &mut StdRng, n: usize) -> Vec<Event> {
    let eur = |name: &'static str, amount: &str| [(name, Value::number(amount)), ("currency", Value::text("EUR"))];
    let mut events = Vec::new();
    let machine = MACHINES[n % 3];
    let key = format!("{}{n}", &machine[..1]);
    let mut push = |kind: &str, value: Value| {
        let version = events.len() as u64 + 1;
        events.push(event(machine, &key, kind, version, value));
    };
    let none = || Value::object([]);
    match machine {
        "orders" => {
            push("order.created", Value::object(eur("total", "1999")));
            push("order.paid", Value::object(eur("amount", if random.random_bool(0.1) { "1998" } else { "1999" })));
            push("order.shipped", none());
            push("order.delivered", none());
            if random.random_bool(0.5) {
                push("order.refunded", none());
            }
        }
        "subscriptions" => {
            push("subscription.created", none());
            for month in 1..=random.random_range(3..10) {
                let late = random.random_bool(0.02);
                let period = if late { "2000-01".to_owned() } else { format!("2027-{month:02}") };
                push("subscription.renewed", Value::object([("period", Value::text(period))]));
                match random.random_range(0..4) {
                    0 => push("subscription.payment_failed", none()),
                    1 => {
                        push("subscription.paused", none());
                        push("subscription.resumed", none());
                    }
                    _ => {}
                }
            }
        }
        _ => {
            push("account.opened", Value::object([("currency", Value::text("EUR"))]));
            let mut balance = 0;
            for _ in 0..random.random_range(8..30) {
                let amount: u64 = random.random_range(1..1000);
                let overdraft = random.random_bool(0.005);
                let debit = overdraft || (amount <= balance && random.random_bool(0.4));
                let amount = if overdraft { 1_000_000 } else { amount };
                balance = if overdraft || !debit { balance + amount } else { balance - amount };
                let kind = if debit { "account.debited" } else { "account.credited" };
                push(kind, Value::object(eur("amount", &amount.to_string())));
            }
        }
    }
    if machine == "subscriptions" && random.random_bool(0.3) {
        intents(random, &mut events);
    }
    events
}

/// One renewal takes an intent, and a later event comes with the same.
fn intents(random: &mut StdRng, events: &mut [Event]) {
    let intent = format!("renew:{}", events[0].key);
    let later = random.random_range(2..events.len());
    events[1].idempotency_key = Some(intent.clone());
    events[later].idempotency_key = Some(intent);
}

fn event(machine: &str, key: &str, kind: &str, version: u64, value: Value) -> Event {
    Event {
        machine: machine.to_owned(),
        source: "/tests".to_owned(),
        id: format!("{key}-{version}"),
        kind: kind.to_owned(),
        key: key.to_owned(),
        version: Some(version),
        previous: None,
        time: Some(TIME),
        idempotency_key: None,
        depends_on: Vec::new(),
        logical_time: None,
        content_type: None,
        data: json(&value).into_bytes(),
        value: Some(value),
    }
}

/// Some events wait for a version of an entity that was made before theirs.
fn depend(random: &mut StdRng, n: usize, lives: &[Vec<Event>], events: &mut [Event]) {
    for event in events.iter_mut().filter(|_| n > 0) {
        if random.random_bool(0.03) {
            let other = &lives[random.random_range(0..n)];
            let version = random.random_range(1..=other.len()) as u64;
            let entity = EntityId { machine: other[0].machine.clone(), key: other[0].key.clone() };
            event.depends_on.push(Dependency::Version(Target { entity, version }));
        }
    }
}

/// Copies, under the same id and fresh ones, and contents that contradict.
fn copies(random: &mut StdRng, event: &Event, at: f64, sent: &mut Vec<(f64, Sent)>) {
    let mut later = |copy: Event, random: &mut StdRng| sent.push((at + random.random_range(0.0..30.0), Some(copy)));
    if random.random_bool(0.12) {
        later(event.clone(), random);
    }
    if random.random_bool(0.03) {
        later(Event { id: format!("{}-again", event.id), ..event.clone() }, random);
    }
    if random.random_bool(0.01) {
        let value = Value::object([("other", Value::text("content"))]);
        later(Event { data: json(&value).into_bytes(), value: Some(value), ..event.clone() }, random);
    }
}

fn line(event: &Event) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let mut line = format!(
        "{{\"specversion\":\"1.0\",\"id\":{},\"source\":{},\"type\":{},\"machine\":{},\"subject\":{},\"entityversion\":{},\
         \"time\":\"{}\",",
        text(&event.id),
        text(&event.source),
        text(&event.kind),
        text(&event.machine),
        text(&event.key),
        event.version.unwrap(),
        crate::program::TIME
    );
    if let Some(intent) = &event.idempotency_key {
        line.push_str(&format!("\"idempotencykey\":{},", text(intent)));
    }
    if let [Dependency::Version(target)] = &event.depends_on[..] {
        let item = format!("{}/{}@{}", target.entity.machine, target.entity.key, target.version);
        line.push_str(&format!("\"dependson\":{},", text(&item)));
    }
    line + &format!("\"data\":{}}}", String::from_utf8_lossy(&event.data))
}

fn json(value: &Value) -> String {
    match value {
        Value::Number(digits) => digits.clone(),
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(k, v)| format!("\"{k}\":{}", json(v))).collect();
            format!("{{{}}}", members.join(","))
        }
        other => panic!("no stream has {other:?}"),
    }
}
