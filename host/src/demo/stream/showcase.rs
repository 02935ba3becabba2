//! A life for each verdict, small enough to be told in a sentence.

use seqgate_decide::verdict::Verdict;

use super::accounts::Account;
use super::delivery::{named, plainly};
use super::event::Event;
use super::orders::money;
use super::sensors::Sensor;
use super::story::Story;
use super::subscriptions::period;
use super::truth::{Example, Life, Line};

/// The lives, and their examples in the order of verdicts.
pub fn all() -> (Vec<Life>, Vec<Example>) {
    let tales: [fn() -> (Life, Example); 9] =
        [applied, duplicate, stale, conflict, deferred, illegal, malformed, fault, skipped];
    tales.into_iter().map(|tale| tale()).unzip()
}

fn example(verdict: Verdict, id: impl Into<String>, text: impl Into<String>) -> Example {
    Example { verdict, id: id.into(), text: text.into(), cite: false }
}

fn cited(verdict: Verdict, id: impl Into<String>, text: impl Into<String>) -> Example {
    Example { cite: true, ..example(verdict, id, text) }
}

fn paid_order(key: &str) -> Story {
    let mut story = Story::new("orders", key.into(), 0);
    story.apply("order.created", money("total", "4999"), "pending");
    story.intending(format!("pay:{key}")).apply("order.paid", money("amount", "4999"), "paid");
    story.sends("fulfilment.requested");
    story
}

fn applied() -> (Life, Example) {
    let mut story = paid_order("order-early");
    story.apply("order.shipped", Vec::new(), "shipped");
    let id = story.last_id();
    let mut life = plainly(story);
    life.lines.swap(1, 2);
    (life, example(Verdict::Applied, id, "(shipped) came before v2 (paid): it waited, then took effect in its turn"))
}

fn duplicate() -> (Life, Example) {
    let mut story = paid_order("order-twice");
    story.intent_again();
    let id = story.last_id();
    let mut life = plainly(story);
    life.lines.push(Line { verdict: Verdict::Duplicate, ..life.lines[1].clone() });
    (
        life,
        example(
            Verdict::Duplicate,
            id,
            "pays again under a new id, but with the same intent: fulfilment is requested once",
        ),
    )
}

fn stale() -> (Life, Example) {
    let mut sensor = Sensor::new("sensor-late".into());
    sensor.report(0, 20_500);
    sensor.report(3, 21_500);
    let id = sensor.late().map(|version| sensor.id(version)).unwrap_or_default();
    (sensor.life(), example(Verdict::Stale, id, "came after v5: a snapshot only moves forward, nothing changes"))
}

fn conflict() -> (Life, Example) {
    let mut account = Account::open("account-rival".into(), "EUR", 1, 0);
    account.credit(10_000);
    let rival: Option<Event> = account.story.steps.last().map(|step| named(&step.event, "rival"));
    let mut life = plainly(account.story);
    let rival = rival.map(|mut event| {
        event.data[0].1 = "90000".into();
        life.lines.push(Line { text: event.line(), verdict: Verdict::Conflict });
        event.id
    });
    let text = "says 90000 where v2 said 10000: quarantined, the first one stands";
    (life, example(Verdict::Conflict, rival.unwrap_or_default(), text))
}

fn deferred() -> (Life, Example) {
    let mut story = Story::new("subscriptions", "sub-gap".into(), 0);
    story.apply("subscription.created", Vec::new(), "active");
    story.lost("subscription.renewed");
    story.apply("subscription.renewed", period(1), "active");
    let id = story.last_id();
    (
        plainly(story),
        example(Verdict::Deferred, id, "waits for v2, which was lost; no other subscription waits with it"),
    )
}

fn illegal() -> (Life, Example) {
    let mut account = Account::open("account-overdrawn".into(), "ETH", 1, 0);
    account.credit(36_893_488_147_419_103_232);
    account.overdraw();
    let id = account.story.last_id();
    account.credit(1);
    (plainly(account.story), cited(Verdict::Illegal, id, "is parked, and v4 waits behind it"))
}

fn malformed() -> (Life, Example) {
    let mut story = Story::new("orders", "order-cents".into(), 0);
    story.apply("order.created", money("total", "1999"), "pending");
    story.refused("order.paid", money("amount", "19.99"), Verdict::Malformed);
    let id = story.last_id();
    (plainly(story), cited(Verdict::Malformed, id, "is parked"))
}

fn fault() -> (Life, Example) {
    let mut sensor = Sensor::new("sensor-zero".into());
    sensor.report(0, 21_500);
    sensor.divide_by_zero(0);
    let id = sensor.id(2);
    (
        sensor.life(),
        example(Verdict::Fault, id, "divides by zero in the rules (a bug on purpose): the trap costs this event alone"),
    )
}

fn skipped() -> (Life, Example) {
    let mut story = Story::new("orders", "order-noted".into(), 0);
    story.apply("order.created", money("total", "1999"), "pending");
    story.ignored("order.note_added", Vec::new());
    let id = story.last_id();
    story.apply("order.cancelled", Vec::new(), "cancelled");
    let text = "is a note, ignored by configuration: its version is consumed, and v3 follows";
    (plainly(story), example(Verdict::Skipped, id, text))
}
