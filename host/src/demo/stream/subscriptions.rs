//! Subscriptions, month after month.

use rand::RngExt as _;
use rand::rngs::StdRng;
use seqgate_decide::verdict::Verdict;

use super::event::text;
use super::story::{Data, Story};

/// A subscription's life.
pub fn subscription(key: String, rng: &mut StdRng) -> Story {
    let mut story = Story::new("subscriptions", key, rng.random_range(0..86_400));
    if rng.random_bool(0.4) {
        story.apply("subscription.created", vec![("trial_end", text("2099-01-01T00:00:00Z"))], "trialing");
        if rng.random_bool(0.1) {
            return story;
        }
        story.apply("subscription.activated", Vec::new(), "active");
    } else {
        story.apply("subscription.created", Vec::new(), "active");
    }
    let mut month = rng.random_range(0..12);
    for _ in 0..rng.random_range(1..8) {
        turn(&mut story, &mut month, rng);
    }
    if rng.random_bool(0.15) {
        story.apply("subscription.cancelled", Vec::new(), "cancelled");
        if rng.random_bool(0.2) {
            story.refused("subscription.renewed", period(month), Verdict::Illegal);
        }
    }
    story
}

/// What happens to an active subscription; afterwards it is active again, or the story has stopped.
fn turn(story: &mut Story, month: &mut u32, rng: &mut StdRng) {
    match rng.random_range(0..100) {
        0..12 => {
            story.apply("subscription.payment_failed", Vec::new(), "past_due");
            if rng.random_bool(0.3) {
                story.apply("subscription.payment_failed", Vec::new(), "past_due");
            }
            renew(story, month, rng);
        }
        12..20 => {
            story.apply("subscription.paused", Vec::new(), "paused");
            if rng.random_bool(0.05) {
                story.refused("subscription.renewed", period(*month), Verdict::Illegal);
            }
            story.apply("subscription.resumed", Vec::new(), "active");
        }
        20..28 => {
            story.filtered("subscription.viewed");
            renew(story, month, rng);
        }
        28..30 => story.lost("subscription.payment_failed"),
        30..32 => story.refused("subscription.renewed", vec![("period", text("2026-13"))], Verdict::Malformed),
        32..33 => story.refused("subscription.upgraded", Vec::new(), Verdict::Illegal),
        _ => renew(story, month, rng),
    }
}

fn renew(story: &mut Story, month: &mut u32, rng: &mut StdRng) {
    let (_, key) = story.address();
    let data = period(*month);
    let paid = data[0].1.clone();
    let intent = format!("renew:{key}:{}", paid.trim_matches('"'));
    story.intending(intent).apply("subscription.renewed", data, "active");
    story.sends("invoice.paid");
    if !story.stopped() {
        story.end.figure = Some(("period", paid));
    }
    if rng.random_bool(0.05) {
        story.intent_again();
    }
    *month += 1;
}

/// A month, counted from January 2026.
pub fn period(month: u32) -> Data {
    vec![("period", text(&format!("{}-{:02}", 2026 + month / 12, month % 12 + 1)))]
}
