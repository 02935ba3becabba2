//! Subscriptions: a trial, renewals by the month, and dunning when a payment fails.
//!
//! Codes: `wrong-state`, `period-not-later`, and the SDK's `unknown-type` and `bad-data`.

use seqgate_guest::prelude::*;

seqgate_guest::table! {
    /// The rules of a subscription.
    pub machine Subscriptions "subscriptions", schema 1;

    states {
        Trialing  "trialing"  within 31 days;
        Active    "active";
        PastDue   "past_due"  within 15 days;
        Paused    "paused";
        Cancelled "cancelled" terminal;
        Expired   "expired"   terminal;
    }
    events {
        Created(NewSubscription) "subscription.created":        absent => Trialing, absent => Active;
        Activated                "subscription.activated":      Trialing => Active;
        Renewed(Renewal)         "subscription.renewed":        Active | PastDue => Active;
        PaymentFailed            "subscription.payment_failed": Active | PastDue => PastDue;
        Paused                   "subscription.paused":         Active => Paused;
        Resumed                  "subscription.resumed":        Paused => Active;
        Cancelled                "subscription.cancelled":      live => Cancelled;
    }
    timers {
        TrialEnd "trial-end": Trialing => Expired;
        Dunning  "dunning":   PastDue => Expired;
    }
    compensations {
        LateRenewal "subscription.renewed": Cancelled => Cancelled, Expired => Expired;
    }
}

seqgate_guest::export!(Subscriptions);
seqgate_guest::scenario_tests!(Subscriptions);

/// What is kept about a subscription.
#[derive(Debug, Serialize, Deserialize)]
pub struct Subscription {
    /// The last period that was paid for.
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<Period>,
}

/// `subscription.created`: with a trial, where `trial_end` is a text.
#[derive(Debug, Deserialize)]
pub struct NewSubscription {
    #[serde(default)]
    trial_end: Loose<String>,
}

/// `subscription.renewed`: another period is paid for.
#[derive(Debug, Deserialize)]
pub struct Renewal {
    period: Period,
}

/// A month, written `2026-12`. The order of the texts is that of the months.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct Period(String);

impl TryFrom<String> for Period {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let month = match text.as_bytes() {
            [year @ .., b'-', tens, ones] if year.len() == 4 && year.iter().all(u8::is_ascii_digit) => [*tens, *ones],
            _ => [0, 0],
        };
        match month {
            [b'0', b'1'..=b'9'] | [b'1', b'0'..=b'2'] => Ok(Self(text)),
            _ => Err("a period is a month such as 2026-12"),
        }
    }
}

/// `invoice.paid`.
#[derive(Serialize)]
struct InvoicePaid<'a> {
    /// The same however often the renewal is decided.
    invoice: String,
    period: &'a Period,
}

/// `refund.requested`: give back what the renewal brought.
#[derive(Serialize)]
struct RefundRequested<'a> {
    /// The id of the refused renewal.
    cause: &'a str,
}

impl Machine for Subscriptions {
    type Data = Subscription;

    fn apply(subscription: Option<Subscription>, event: Event, cx: &Context<Self>) -> Answer<Self> {
        match (subscription, event) {
            (None, Event::Created(NewSubscription { trial_end })) => Ok(create(trial_end.0, cx)),
            (Some(it), Event::Activated) => Ok(cx.to(State::Active, it).cancel(Timer::TrialEnd)),
            (Some(it), Event::Renewed(Renewal { period })) => renew(it, period, cx),
            (Some(it), Event::PaymentFailed) => {
                let first = cx.state() == Some(State::Active);
                let step = cx.to(State::PastDue, it);
                // A second failure does not buy more time.
                Ok(if first { step.start(Timer::Dunning, after(days(14))) } else { step })
            }
            (Some(it), Event::Paused) => Ok(cx.to(State::Paused, it)),
            (Some(it), Event::Resumed) => Ok(cx.to(State::Active, it)),
            (Some(it), Event::Cancelled) => Ok(cx.to(State::Cancelled, it)),
            _ => Err(cx.wrong_state()),
        }
    }

    fn fire(it: Subscription, timer: Timer, cx: &Context<Self>) -> Answer<Self> {
        match timer {
            Timer::TrialEnd => note!(cx, "not activated before the trial ended"),
            Timer::Dunning => note!(cx, "no payment within the time of dunning"),
        }
        Ok(cx.to(State::Expired, it))
    }

    fn compensate(
        subscription: Option<Subscription>,
        compensation: Compensation,
        _: &Failure,
        cx: &Context<Self>,
    ) -> Answer<Self> {
        match (subscription, cx.state(), compensation) {
            (Some(it), Some(state), Compensation::LateRenewal) => {
                note!(cx, "renewed after its end: the money goes back");
                let request = RefundRequested { cause: cx.event_id() };
                Ok(cx.to(state, it).send(Message::json("payments", "refund.requested", &request)))
            }
            _ => Err(cx.wrong_state()),
        }
    }
}

fn create(trial_end: Option<String>, cx: &Context<Subscriptions>) -> Step {
    let subscription = Subscription { period: None };
    let Some(end) = trial_end else {
        return cx.to(State::Active, subscription);
    };
    let step = cx.to(State::Trialing, subscription);
    match end.parse() {
        Ok(end) => step.start(Timer::TrialEnd, at(end)),
        Err(error) => {
            // It is a trial all the same; when nobody ends it, it is reported as stuck.
            note!(cx, "the trial has no end: {error}");
            step
        }
    }
}

fn renew(it: Subscription, period: Period, cx: &Context<Subscriptions>) -> Answer<Subscriptions> {
    if let Some(last) = &it.period {
        ensure!(period > *last, "period-not-later", "{} does not come after {}", period.0, last.0);
    }
    let invoice = InvoicePaid { invoice: cx.derive_id(0), period: &period };
    let message = Message::json("billing", "invoice.paid", &invoice);
    let step = cx.to(State::Active, Subscription { period: Some(period) });
    Ok(step.cancel(Timer::Dunning).send(message))
}

type Step = seqgate_guest::Step<Subscriptions>;
