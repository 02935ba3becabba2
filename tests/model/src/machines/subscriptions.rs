//! `subscriptions` (R11).

use super::{Answer, Edge, Effect, Facts, From, Input, Machine, Move, Trigger, to};
use crate::Value;

const DAY: i64 = 24 * 60 * 60_000;

const EDGES: &[Edge] = &[
    (From::Absent, Trigger::Event("subscription.created"), "trialing"),
    (From::Absent, Trigger::Event("subscription.created"), "active"),
    (From::In("trialing"), Trigger::Event("subscription.activated"), "active"),
    (From::In("active"), Trigger::Event("subscription.renewed"), "active"),
    (From::In("past_due"), Trigger::Event("subscription.renewed"), "active"),
    (From::In("active"), Trigger::Event("subscription.payment_failed"), "past_due"),
    (From::In("past_due"), Trigger::Event("subscription.payment_failed"), "past_due"),
    (From::In("active"), Trigger::Event("subscription.paused"), "paused"),
    (From::In("paused"), Trigger::Event("subscription.resumed"), "active"),
    (From::AnyLive, Trigger::Event("subscription.cancelled"), "cancelled"),
    (From::In("trialing"), Trigger::Timer("trial-end"), "expired"),
    (From::In("past_due"), Trigger::Timer("dunning"), "expired"),
    (From::In("cancelled"), Trigger::Compensation("subscription.renewed"), "cancelled"),
    (From::In("expired"), Trigger::Compensation("subscription.renewed"), "expired"),
];

pub(super) static MACHINE: Machine =
    Machine { live: &["trialing", "active", "past_due", "paused"], edges: EDGES, decide, compensate };

fn decide(input: &Input) -> Answer {
    let facts = input.facts;
    match (input.trigger, input.state) {
        (Trigger::Event("subscription.created"), _) => created(input),
        (Trigger::Event("subscription.renewed"), _) => renewed(input),
        (Trigger::Event("subscription.activated"), Some("trialing")) => {
            to("active", facts, vec![Effect::Cancel("trial-end")])
        }
        (Trigger::Event("subscription.payment_failed"), Some("active")) => {
            to("past_due", facts, vec![Effect::StartAfter("dunning", 14 * DAY)])
        }
        (Trigger::Event("subscription.payment_failed"), Some("past_due")) => to("past_due", facts, vec![]),
        (Trigger::Event("subscription.paused"), Some("active")) => to("paused", facts, vec![]),
        (Trigger::Event("subscription.resumed"), Some("paused")) => to("active", facts, vec![]),
        (Trigger::Event("subscription.cancelled"), Some(state)) if MACHINE.is_live(state) => {
            to("cancelled", facts, vec![])
        }
        (Trigger::Timer("trial-end"), Some("trialing")) => to("expired", facts, vec![]),
        (Trigger::Timer("dunning"), Some("past_due")) => to("expired", facts, vec![]),
        _ => Answer::Illegal,
    }
}

/// `trial_end` counts when it is a string.
fn created(input: &Input) -> Answer {
    let Some(data @ Value::Object(_)) = input.data else {
        return Answer::Malformed;
    };
    let trial = match data.get("trial_end") {
        Some(Value::Text(text)) => match utc(text) {
            Some(due) => Some(due),
            None => return Answer::Malformed,
        },
        _ => None,
    };
    match (input.state, trial) {
        (Some(_), _) => Answer::Illegal,
        (None, Some(due)) => to("trialing", &Facts::new(), vec![Effect::StartAt("trial-end", due)]),
        (None, None) => to("active", &Facts::new(), vec![]),
    }
}

fn renewed(input: &Input) -> Answer {
    let Some(period) = input.data.and_then(period) else {
        return Answer::Malformed;
    };
    let later = input.facts.get("period").is_none_or(|last| period > *last);
    match input.state {
        Some("active" | "past_due") if later => {
            let facts = Facts::from([("period".to_owned(), period)]);
            to("active", &facts, vec![Effect::Send("invoice.paid"), Effect::Cancel("dunning")])
        }
        _ => Answer::Illegal,
    }
}

/// A year and a month: `2026-12`.
fn period(data: &Value) -> Option<String> {
    let Some(Value::Text(text)) = data.get("period") else {
        return None;
    };
    let (year, month) = text.split_once('-')?;
    let digits = |s: &str, n: usize| s.len() == n && s.bytes().all(|b| b.is_ascii_digit());
    let month_reads = digits(month, 2) && (1..=12).contains(&month.parse::<u32>().ok()?);
    (digits(year, 4) && month_reads).then(|| text.clone())
}

/// Milliseconds of `YYYY-MM-DDTHH:MM:SSZ`, the one form that is generated.
fn utc(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    let months = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: i64 = (1970..year).map(|y| if leap(y) { 366 } else { 365 }).sum();
    let days = years + months.iter().take(usize::try_from(month - 1).ok()?).sum::<i64>() + day - 1;
    (text.len() == 20 && text.ends_with('Z')).then(|| days * DAY + (hour * 3600 + minute * 60 + second) * 1000)
}

fn compensate(state: &str, kind: &str) -> Option<Move> {
    let listed = kind == "subscription.renewed" && ["cancelled", "expired"].contains(&state);
    listed.then(|| Move {
        state: state.to_owned(),
        facts: Facts::new(),
        effects: vec![Effect::Send("refund.requested")],
    })
}
