//! `orders` (R11).

use super::amount::amount;
use super::{Answer, Edge, Effect, Facts, From, Input, Machine, Move, Trigger, name, to};

const MINUTE: i64 = 60_000;

const EDGES: &[Edge] = &[
    (From::Absent, Trigger::Event("order.created"), "pending"),
    (From::In("pending"), Trigger::Event("order.paid"), "paid"),
    (From::In("paid"), Trigger::Event("order.shipped"), "shipped"),
    (From::In("shipped"), Trigger::Event("order.delivered"), "delivered"),
    (From::In("pending"), Trigger::Event("order.cancelled"), "cancelled"),
    (From::In("paid"), Trigger::Event("order.cancelled"), "cancelled"),
    (From::In("paid"), Trigger::Event("order.refunded"), "refunded"),
    (From::In("shipped"), Trigger::Event("order.refunded"), "refunded"),
    (From::In("delivered"), Trigger::Event("order.refunded"), "refunded"),
    (From::In("pending"), Trigger::Timer("payment-timeout"), "cancelled"),
    (From::In("cancelled"), Trigger::Compensation("order.paid"), "cancelled"),
];

pub(super) static MACHINE: Machine =
    Machine { live: &["pending", "paid", "shipped", "delivered"], edges: EDGES, decide, compensate };

fn decide(input: &Input) -> Answer {
    match input.trigger {
        Trigger::Event("order.created") => created(input),
        Trigger::Event("order.paid") => paid(input),
        Trigger::Event("order.refunded") => refunded(input),
        Trigger::Event("order.shipped") if input.state == Some("paid") => to("shipped", input.facts, vec![]),
        Trigger::Event("order.delivered") if input.state == Some("shipped") => to("delivered", input.facts, vec![]),
        Trigger::Event("order.cancelled") => match input.state {
            Some("pending") => to("cancelled", input.facts, vec![]),
            Some("paid") => to("cancelled", input.facts, vec![Effect::Send("refund.requested")]),
            _ => Answer::Illegal,
        },
        Trigger::Timer("payment-timeout") if input.state == Some("pending") => to("cancelled", input.facts, vec![]),
        _ => Answer::Illegal,
    }
}

fn created(input: &Input) -> Answer {
    let Some(data) = input.data else {
        return Answer::Malformed;
    };
    let (Some(total), Some(currency)) = (amount(data.get("total")), name(data, "currency")) else {
        return Answer::Malformed;
    };
    if input.state.is_some() {
        return Answer::Illegal;
    }
    let facts = Facts::from([("total".to_owned(), total.to_string()), ("currency".to_owned(), currency)]);
    to("pending", &facts, vec![Effect::StartAfter("payment-timeout", 30 * MINUTE)])
}

fn paid(input: &Input) -> Answer {
    let Some(data) = input.data else {
        return Answer::Malformed;
    };
    let (Some(paid), Some(currency)) = (amount(data.get("amount")), name(data, "currency")) else {
        return Answer::Malformed;
    };
    let matches = input.facts.get("total") == Some(&paid.to_string()) && input.facts.get("currency") == Some(&currency);
    if input.state != Some("pending") || !matches {
        return Answer::Illegal;
    }
    to("paid", input.facts, vec![Effect::Cancel("payment-timeout"), Effect::Send("fulfilment.requested")])
}

/// Amount and currency are optional; where they are, they are parsed and not compared.
fn refunded(input: &Input) -> Answer {
    let Some(data) = input.data else {
        return Answer::Malformed;
    };
    let amount_reads = data.get("amount").is_none() || amount(data.get("amount")).is_some();
    let currency_reads = data.get("currency").is_none() || name(data, "currency").is_some();
    match input.state {
        _ if !amount_reads || !currency_reads => Answer::Malformed,
        Some("paid" | "shipped" | "delivered") => to("refunded", input.facts, vec![]),
        _ => Answer::Illegal,
    }
}

fn compensate(state: &str, kind: &str) -> Option<Move> {
    let listed = (state, kind) == ("cancelled", "order.paid");
    listed.then(|| Move {
        state: state.to_owned(),
        facts: Facts::new(),
        effects: vec![Effect::Send("refund.requested")],
    })
}
