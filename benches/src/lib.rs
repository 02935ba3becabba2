//! What the benchmarks have in common: one order's event, and rules that answer at once.
//!
//! `cargo bench -p seqgate-benches --bench core` and `--bench boundary`; each says in its header what it measures, and
//! measures a baseline in the same run. Figures mean something on a quiet machine only, and beside their baseline.

use std::fmt::Write as _;
use std::sync::Arc;

use seqgate_decide::decide::{Decision, Input, Undecided, decide};
use seqgate_decide::envelope::{Decoded, Limits, Received, decode};
use seqgate_decide::event::Event;
use seqgate_decide::ids::{Digest, Position};
use seqgate_decide::machine::{Machine, Machines};
use seqgate_decide::rules::{
    Description, Edge, Effect, EntityView, EventView, Failure, Fault, Message, Migrated, Origin, Reason, Rejection,
    Rules, StateInfo, Transition, Trigger,
};
use seqgate_decide::setup::Setup;
use seqgate_decide::world::{Entity, Need, World};
use seqgate_decide::writes::RulesRef;

/// A payment of 300 bytes, as `orders` reads it; members that it does not know make up its size.
pub fn payment() -> String {
    let mut data = r#"{"amount":1999,"currency":"EUR","method":"card","lines":["#.to_owned();
    let mut n = 1;
    while data.len() < 260 {
        let comma = if n > 1 { "," } else { "" };
        let _ = write!(data, r#"{comma}{{"sku":"sku-{n:04}","count":{n},"price":19.90}}"#);
        n += 1;
    }
    let rest = 300 - data.len() - r#"],"note":""}"#.len();
    let _ = write!(data, r#"],"note":"{}"}}"#, "x".repeat(rest));
    data
}

/// An order's event as a line of JSON.
pub fn line(order: u32, kind: &str, version: u64, data: &str) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"order-{order}-{version}","source":"/shop/orders","type":"{kind}","subject":"order-{order}","time":"2026-03-01T12:00:00Z","datacontenttype":"application/json","machine":"orders","entityversion":{version},"idempotencykey":"{kind}:order-{order}:{version}","correlationid":"checkout-77","data":{data}}}"#
    )
}

/// Reads a line, as a source does.
///
/// # Panics
/// Where the line is no readable event.
pub fn read(line: &str, machines: &Machines) -> Arc<Event> {
    let received =
        Received { bytes: line.as_bytes(), key: None, record_time: None, received_at: 0, machine: Some("orders") };
    match decode(&received, machines, &Limits::default()) {
        Decoded::Event(event) => event,
        Decoded::Malformed(malformed) => panic!("{malformed:?}"),
    }
}

/// Rules with the graph of orders that take every event along its edge, with a message for a payment. They do no work,
/// so that what is left is the core's.
pub struct Yes(Arc<Description>);

impl Yes {
    /// Such rules.
    pub fn new() -> Self {
        let state = |name: &str| StateInfo { name: name.into(), terminal: false, expected_within: None };
        let edge =
            |origin, kind: &str, to: &str| Edge { origin, trigger: Trigger::Event(kind.into()), target: to.into() };
        let from = |name: &str| Origin::State(name.into());
        Self(Arc::new(Description {
            name: "orders".into(),
            version: "1.0.0".into(),
            schema: 1,
            reads: vec![],
            states: ["pending", "paid", "shipped", "delivered"].map(state).into(),
            edges: vec![
                edge(Origin::Absent, "order.created", "pending"),
                edge(from("pending"), "order.paid", "paid"),
                edge(from("paid"), "order.shipped", "shipped"),
                edge(from("shipped"), "order.delivered", "delivered"),
            ],
        }))
    }
}

impl Default for Yes {
    fn default() -> Self {
        Self::new()
    }
}

impl Rules for Yes {
    fn description(&self) -> &Arc<Description> {
        &self.0
    }

    fn apply(
        &mut self,
        current: Option<&EntityView<'_>>,
        _: &EventView<'_>,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        let data = br#"{"total":1999,"currency":"EUR","paid":1999}"#.to_vec();
        let Some(current) = current else {
            return Ok(Ok(Transition { state: "pending".into(), data, ..Transition::default() }));
        };
        let state = match current.state {
            "pending" => "paid",
            "paid" => "shipped",
            _ => "delivered",
        };
        let message = Message {
            topic: "fulfilment".into(),
            kind: "fulfilment.requested".into(),
            key: None,
            content_type: "application/json".into(),
            attributes: vec![],
            data: br#"{"order":"order-1024"}"#.to_vec(),
        };
        let effects = if state == "paid" { vec![Effect::Send(message)] } else { vec![] };
        Ok(Ok(Transition { state: state.into(), data, effects, notes: vec![] }))
    }

    fn compensate(
        &mut self,
        _: Option<&EntityView<'_>>,
        _: &EventView<'_>,
        _: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        Ok(Err(Rejection::Illegal(Reason::new("none", "nothing is compensated"))))
    }

    fn migrate(&mut self, _: &EntityView<'_>) -> Result<Result<Migrated, Reason>, Fault> {
        Ok(Err(Reason::new("none", "there is one layout")))
    }
}

/// A machine `orders` with rules that do no work.
pub fn machines() -> Machines {
    let mut machines = Machines::default();
    let in_force = RulesRef { activation: 1, digest: Digest([0; 32]) };
    machines.insert(Machine::new(Arc::new(Setup::new("orders")), Box::new(Yes::new()), in_force));
    machines
}

/// An event, delivered.
pub fn delivered(event: Arc<Event>) -> Input {
    let position = Position { source: "orders-file".into(), partition: 0, offset: 0 };
    Input::Event { event, position, redelivered: false }
}

/// Decides, loading what is missing as absent.
///
/// # Panics
/// Where the input is refused.
pub fn decided(world: &mut World, machines: &mut Machines, input: &Input) -> Decision {
    loop {
        match decide(world, machines, input, 1) {
            Ok(decision) => return decision,
            Err(Undecided::Need(need)) => match need {
                Need::Entity(id) => world.put_entity(Entity::absent(id)),
                Need::Inbox(key) => world.put_inbox(key, None),
                Need::History(id, version) => world.put_history(id, version, None),
                Need::Instance(why) => panic!("no memory for the rules: {why}"),
                Need::Intent(machine, key) => world.put_intent(machine, key, None),
            },
            Err(refused) => panic!("{refused:?}"),
        }
    }
}
