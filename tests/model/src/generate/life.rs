//! Authors: each entity's own stream of events, mostly as its machine allows.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::line::{Body, Draft};
use crate::machines::{Answer, Facts, From, Input, Trigger, machine};
use crate::{EntityId, Value};

/// An entity as its author sees it.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) entity: EntityId,
    pub(super) state: Option<String>,
    pub(super) facts: Facts,
    /// The last version that its author gave.
    pub(super) version: u64,
    /// Versions jump, and name what they follow.
    pub(super) filtered: bool,
    /// Where the author's events go: a source, or one by one to each.
    pub(super) source: Option<usize>,
    /// How often things go wrong: 1 is often, 0.3 seldom.
    trouble: f64,
    /// The last type that changed its state.
    pub(super) last: Option<String>,
    period: u32,
}

const MAX: &str = "170141183460469231731687303715884105727";

impl Life {
    pub(super) fn new(entity: EntityId, filtered: bool, source: Option<usize>, trouble: f64) -> Life {
        Life { entity, state: None, facts: Facts::new(), version: 0, filtered, source, trouble, last: None, period: 0 }
    }

    /// Nothing legal is left; where more comes, it is refused.
    pub(super) fn is_over(&self) -> bool {
        self.state.as_deref().is_some_and(|s| !machine(&self.entity.machine).is_live(s))
    }

    /// Another entity in its stead.
    pub(super) fn reborn(&self) -> Life {
        let EntityId { machine, key } = self.entity.clone();
        Life::new(EntityId { machine, key: key + "+" }, self.filtered, self.source, self.trouble)
    }

    fn noun(&self) -> &'static str {
        match self.entity.machine.as_str() {
            "orders" => "order",
            "subscriptions" => "subscription",
            _ => "account",
        }
    }

    /// Its next event: mostly legal, now and then out of place, of an unknown type, or with a payload that cannot be read.
    pub(super) fn next(&mut self, rng: &mut StdRng) -> (String, Body) {
        let rules = machine(&self.entity.machine);
        let legal = self.legal(rng);
        let kinds = rules.edges.iter().filter_map(|e| if let Trigger::Event(kind) = e.1 { Some(kind) } else { None });
        let all: Vec<&str> = kinds.collect();
        let compensated: Vec<&str> = rules
            .edges
            .iter()
            .filter(|e| matches!((e.0, self.state.as_deref()), (From::In(s), Some(state)) if s == state))
            .filter_map(|e| if let Trigger::Compensation(kind) = e.1 { Some(kind) } else { None })
            .collect();
        let odd = |rng: &mut StdRng, p: f64| rng.random_bool(p * self.trouble);
        let kind = if odd(rng, 0.04) {
            format!("{}.exploded", self.noun())
        } else if rng.random_bool(0.06) {
            format!("{}.note_added", self.noun())
        } else if odd(rng, 0.08) {
            (*all.choose(rng).unwrap_or(&"order.paid")).to_owned()
        } else if !compensated.is_empty() && rng.random_bool(0.6) {
            compensated[0].to_owned()
        } else {
            legal.unwrap_or_else(|| (*all.choose(rng).unwrap_or(&"order.paid")).to_owned())
        };
        let body = self.body(rng, &kind);
        let data = match &body {
            Body::Json(value) | Body::Base64(value) => Some(value),
            _ => None,
        };
        let input = Input { state: self.state.as_deref(), facts: &self.facts, trigger: Trigger::Event(&kind), data };
        if rules.knows(&kind)
            && let Answer::Move(step) = rules.apply(&input)
        {
            (self.state, self.facts, self.last) = (Some(step.state), step.facts, Some(kind.clone()));
        }
        (kind, body)
    }

    /// Data for a type; now and then it is not what the type needs.
    pub(super) fn body(&mut self, rng: &mut StdRng, kind: &str) -> Body {
        let bad = rng.random_bool(0.06 * self.trouble);
        let value = match kind {
            "order.created" => {
                let total = amount(rng);
                Value::object([("total", spelled(rng, total)), ("currency", currency(rng))])
            }
            "order.paid" => {
                let total = self.facts.get("total").cloned().unwrap_or_else(|| "1000".to_owned());
                let total = if rng.random_bool(0.1 * self.trouble) { "3".to_owned() } else { total };
                let money = self.facts.get("currency").cloned().unwrap_or_else(|| "EUR".to_owned());
                Value::object([("amount", spelled(rng, total)), ("currency", Value::text(money))])
            }
            "account.opened" => Value::object([("currency", currency(rng))]),
            "account.credited" | "account.debited" => self.movement(rng, kind),
            "subscription.created" => match rng.random_range(0..3) {
                0 => Value::object([("plan", Value::text("A"))]),
                1 => Value::object([("plan", Value::text("A")), ("trial_end", Value::number(5))]),
                _ => Value::object([("trial_end", Value::text("2026-12-30T00:00:00Z")), ("plan", Value::text("B"))]),
            },
            "subscription.renewed" => {
                self.period += if rng.random_bool(0.85) { 1 } else { 0 };
                let period = format!("{:04}-{:02}", 2026 + self.period / 12, self.period % 12 + 1);
                Value::object([("period", Value::text(period))])
            }
            "order.refunded" => match rng.random_range(0..3) {
                0 => Value::object([("amount", Value::number(7)), ("currency", Value::text("CHF"))]),
                1 => Value::object([("amount", Value::text("7"))]),
                _ => Value::object([]),
            },
            _ => return idle(rng),
        };
        if bad {
            return spoiled(rng, kind, value);
        }
        if rng.random_bool(0.1) { Body::Base64(value) } else { Body::Json(value) }
    }

    /// A type that has an edge from here.
    pub(super) fn legal(&self, rng: &mut StdRng) -> Option<String> {
        let rules = machine(&self.entity.machine);
        let kinds = rules.edges.iter().filter_map(|e| if let Trigger::Event(kind) = e.1 { Some(kind) } else { None });
        let legal: Vec<&str> = kinds.filter(|kind| rules.edge(self.state.as_deref(), Trigger::Event(kind))).collect();
        legal.choose(rng).map(|kind| (*kind).to_owned())
    }

    /// Data for a draft's type, written anew.
    pub(super) fn body_of(&mut self, rng: &mut StdRng, draft: &Draft) -> Body {
        self.body(rng, &draft.event.kind)
    }

    /// Mostly within the balance; now and then up to the brim, or beyond it.
    fn movement(&self, rng: &mut StdRng, kind: &str) -> Value {
        let balance = self.facts.get("balance").cloned().unwrap_or_else(|| "0".to_owned());
        let amount = match rng.random_range(0..10) {
            0 => MAX.to_owned(),
            1..5 if kind == "account.debited" && balance != "0" => balance,
            _ => amount(rng),
        };
        let money = match self.facts.get("currency") {
            Some(own) if rng.random_bool(0.92) => own.clone(),
            _ => "CHF".to_owned(),
        };
        Value::object([("amount", spelled(rng, amount)), ("currency", Value::text(money))])
    }
}

/// Data of a type that needs none: it is not read, so it may be anything.
fn idle(rng: &mut StdRng) -> Body {
    match rng.random_range(0..8) {
        0 => Body::Absent,
        1 => Body::Text("héllo \"there\" \\ %".to_owned()),
        2 => Body::Json(Value::object([("note", Value::text("a\0b😀")), ("n", Value::number("1000"))])),
        3 => Body::Json(nested(127)),
        4 => Body::Json(Value::List(vec![Value::Null, Value::Bool(true), Value::number("-0"), Value::number("1.50")])),
        _ => Body::Json(Value::object([])),
    }
}

/// Arrays in arrays; the envelope is level 1, so 127 of them reach level 128 (R1).
pub(super) fn nested(levels: usize) -> Value {
    (1..levels).fold(Value::List(vec![]), |inner, _| Value::List(vec![inner]))
}

fn spoiled(rng: &mut StdRng, kind: &str, value: Value) -> Body {
    let Value::Object(mut members) = value else {
        return Body::Absent;
    };
    let Some(first) = members.first_mut() else {
        return Body::Json(Value::object([("amount", Value::number("0"))]));
    };
    if kind == "subscription.created" {
        return Body::Json(Value::Object(members));
    }
    let wrong = match first.0.as_str() {
        "currency" => vec![Value::text(""), Value::number(1)],
        "period" => vec![Value::text("2026-13"), Value::text("2026"), Value::number(202612)],
        _ => vec![
            Value::number("0"),
            Value::number("-5"),
            Value::number("1.0"),
            Value::number("1e3"),
            Value::text("007"),
            Value::text(""),
            Value::number("170141183460469231731687303715884105728"),
            Value::Bool(true),
        ],
    };
    if kind != "order.refunded" && rng.random_bool(0.2) {
        members.remove(0);
    } else if let Some(wrong) = wrong.choose(rng) {
        first.1 = wrong.clone();
    }
    Body::Json(Value::Object(members))
}

fn amount(rng: &mut StdRng) -> String {
    let all = ["1", "1000", "1999", "25000", "9007199254740993", "92233720368547758070"];
    (*all.choose(rng).unwrap_or(&"1")).to_owned()
}

fn spelled(rng: &mut StdRng, amount: String) -> Value {
    if rng.random_bool(0.25) { Value::text(amount) } else { Value::number(amount) }
}

fn currency(rng: &mut StdRng) -> Value {
    Value::text(if rng.random_bool(0.8) { "EUR" } else { "ZWL" })
}
