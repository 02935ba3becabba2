//! Orders, as shops tell of them. The policy `on_illegal = "compensate"` gives money back that comes after a cancellation.

use rand::RngExt as _;
use rand::rngs::StdRng;
use seqgate_decide::verdict::Verdict;

use super::accounts::Known;
use super::event::text;
use super::story::{Data, Story};

/// A total above 2^64, in the smallest unit of a currency that has many.
const BEYOND_64_BITS: u128 = 36_893_488_147_419_103_232;

/// An order's life. `accounts` are those on which a payment may depend.
pub fn order(key: String, accounts: &[Known], rng: &mut StdRng) -> Story {
    let mut story = Story::new("orders", key, rng.random_range(0..86_400));
    let total = total(rng);
    if rng.random_bool(0.02) {
        story.lost("order.created");
    } else {
        story.apply("order.created", money("total", &total), "pending");
    }
    noted(&mut story, rng);
    match rng.random_range(0..100) {
        0..6 => return story,
        6..14 => cancelled_unpaid(&mut story, &total, rng),
        14..17 => {
            story.refused("order.paid", money("amount", &("1".to_owned() + &total)), Verdict::Illegal);
            shipped(&mut story);
        }
        17..19 => {
            story.refused("order.shipped", Vec::new(), Verdict::Illegal);
            pay(&mut story, &total, accounts, rng);
        }
        19..21 => {
            story.refused("order.paid", money("amount", "19.99"), Verdict::Malformed);
            shipped(&mut story);
        }
        _ => {
            pay(&mut story, &total, accounts, rng);
            after_payment(&mut story, &total, rng);
        }
    }
    story
}

/// `{"total": …, "currency": "EUR"}`, or with an `amount`.
pub fn money(name: &'static str, minor: &str) -> Data {
    vec![(name, minor.to_owned()), ("currency", text("EUR"))]
}

fn total(rng: &mut StdRng) -> String {
    let small = rng.random_range(100..500_000u128);
    (if rng.random_bool(0.02) { small + BEYOND_64_BITS } else { small }).to_string()
}

fn noted(story: &mut Story, rng: &mut StdRng) {
    if rng.random_bool(0.12) {
        story.ignored("order.note_added", vec![("note", text("leave it with the neighbours"))]);
    }
}

fn cancelled_unpaid(story: &mut Story, total: &str, rng: &mut StdRng) {
    story.apply("order.cancelled", Vec::new(), "cancelled");
    if rng.random_bool(0.3) {
        story.compensated("order.paid", money("amount", total));
        story.sends("refund.requested");
    }
}

fn pay(story: &mut Story, total: &str, accounts: &[Known], rng: &mut StdRng) {
    let (_, key) = story.address();
    let account = (!accounts.is_empty()).then(|| &accounts[rng.random_range(0..accounts.len())]);
    let chance = rng.random_range(0..100);
    // The same amount, as a number or as a text.
    let amount = if rng.random_bool(0.5) { total.to_owned() } else { text(total) };
    match account {
        Some(account) if chance < 10 => {
            let version = rng.random_range(1..=account.reaches);
            story.depending(format!("accounts/{}@{version}", account.key));
        }
        Some(account) if chance < 11 => {
            let names = format!("accounts/{}@{}", account.key, account.never);
            story.never_met("order.paid", money("amount", &amount), names);
            return;
        }
        _ => {}
    }
    story.intending(format!("pay:{key}")).apply("order.paid", money("amount", &amount), "paid");
    story.sends("fulfilment.requested");
    if rng.random_bool(0.08) {
        story.intent_again();
    }
}

fn shipped(story: &mut Story) {
    story.apply("order.shipped", Vec::new(), "shipped");
}

fn after_payment(story: &mut Story, total: &str, rng: &mut StdRng) {
    noted(story, rng);
    let chance = rng.random_range(0..100);
    if chance < 8 {
        story.apply("order.cancelled", Vec::new(), "cancelled");
        story.sends("refund.requested");
        return;
    }
    if chance < 12 {
        story.lost("order.shipped");
    } else {
        story.depending("order.paid".into());
        shipped(story);
    }
    noted(story, rng);
    if chance < 85 {
        story.apply("order.delivered", Vec::new(), "delivered");
    }
    if chance > 92 {
        let refund = if chance > 96 { Vec::new() } else { money("amount", total) };
        story.apply("order.refunded", refund, "refunded");
    }
}
