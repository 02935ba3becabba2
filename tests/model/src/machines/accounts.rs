//! `accounts` (R11).

use super::amount::{MAX, amount};
use super::{Answer, Edge, Facts, From, Input, Machine, Trigger, name, to};

const EDGES: &[Edge] = &[
    (From::Absent, Trigger::Event("account.opened"), "open"),
    (From::In("open"), Trigger::Event("account.credited"), "open"),
    (From::In("open"), Trigger::Event("account.debited"), "open"),
    (From::In("open"), Trigger::Event("account.frozen"), "frozen"),
    (From::In("frozen"), Trigger::Event("account.unfrozen"), "open"),
    (From::In("open"), Trigger::Event("account.closed"), "closed"),
];

pub(super) static MACHINE: Machine =
    Machine { live: &["open", "frozen"], edges: EDGES, decide, compensate: |_, _| None };

fn decide(input: &Input) -> Answer {
    match (input.trigger, input.state) {
        (Trigger::Event("account.opened"), _) => opened(input),
        (Trigger::Event("account.credited"), _) => moved(input, u128::checked_add),
        (Trigger::Event("account.debited"), _) => moved(input, u128::checked_sub),
        (Trigger::Event("account.frozen"), Some("open")) => to("frozen", input.facts, vec![]),
        (Trigger::Event("account.unfrozen"), Some("frozen")) => to("open", input.facts, vec![]),
        (Trigger::Event("account.closed"), Some("open")) if balance(input.facts) == 0 => {
            to("closed", input.facts, vec![])
        }
        _ => Answer::Illegal,
    }
}

fn opened(input: &Input) -> Answer {
    match (input.data.and_then(|d| name(d, "currency")), input.state) {
        (None, _) => Answer::Malformed,
        (Some(_), Some(_)) => Answer::Illegal,
        (Some(currency), None) => to("open", &facts(0, currency), vec![]),
    }
}

/// A credit or debit: overdraft, overflow, a foreign currency and movement while frozen are illegal.
fn moved(input: &Input, change: fn(u128, u128) -> Option<u128>) -> Answer {
    let Some(data) = input.data else {
        return Answer::Malformed;
    };
    let (Some(amount), Some(currency)) = (amount(data.get("amount")), name(data, "currency")) else {
        return Answer::Malformed;
    };
    match change(balance(input.facts), amount) {
        Some(balance)
            if balance <= MAX && input.state == Some("open") && input.facts.get("currency") == Some(&currency) =>
        {
            to("open", &facts(balance, currency), vec![])
        }
        _ => Answer::Illegal,
    }
}

fn facts(balance: u128, currency: String) -> Facts {
    Facts::from([("balance".to_owned(), balance.to_string()), ("currency".to_owned(), currency)])
}

fn balance(facts: &Facts) -> u128 {
    facts.get("balance").and_then(|b| b.parse().ok()).unwrap_or(0)
}
