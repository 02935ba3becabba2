//! Orders, from checkout to doorstep.
//!
//! Codes: `wrong-state`, `amount-differs`, `currency-differs`, and the SDK's `unknown-type` and `bad-data`.

use seqgate_guest::prelude::*;

seqgate_guest::table! {
    /// The rules of an order.
    pub machine Orders "orders", schema 1;

    states {
        Pending   "pending"   within 35 minutes;
        Paid      "paid"      within 24 hours;
        Shipped   "shipped"   within 14 days;
        Delivered "delivered";
        Cancelled "cancelled" terminal;
        Refunded  "refunded"  terminal;
    }
    events {
        Created(NewOrder) "order.created":   absent => Pending;
        Paid(Payment)     "order.paid":      Pending => Paid;
        Shipped           "order.shipped":   Paid => Shipped;
        Delivered         "order.delivered": Shipped => Delivered;
        Cancelled         "order.cancelled": Pending | Paid => Cancelled;
        Refunded(Refund)  "order.refunded":  Paid | Shipped | Delivered => Refunded;
    }
    timers {
        PaymentTimeout "payment-timeout": Pending => Cancelled;
    }
    compensations {
        LatePayment "order.paid": Cancelled => Cancelled;
    }
}

seqgate_guest::export!(Orders);
seqgate_guest::scenario_tests!(Orders);

/// What is kept about an order.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    total: Amount,
    currency: Text,
    /// What was paid, once it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    paid: Option<Amount>,
}

/// `order.created`: what the customer owes.
#[derive(Debug, Deserialize)]
pub struct NewOrder {
    total: Amount,
    currency: Text,
}

/// `order.paid`: what arrived.
#[derive(Debug, Deserialize)]
pub struct Payment {
    amount: Amount,
    currency: Text,
}

/// `order.refunded`: what went back. It must be readable where it is given; the payment service has decided it already.
#[derive(Debug, Deserialize)]
pub struct Refund {
    #[serde(rename = "amount")]
    _amount: Option<Amount>,
    #[serde(rename = "currency")]
    _currency: Option<Text>,
}

/// `fulfilment.requested`: pack and ship.
#[derive(Serialize)]
struct FulfilmentRequested<'a> {
    total: Amount,
    currency: &'a Text,
}

/// `refund.requested`: give back what the payment event brought. Where the order took it, the sum is known.
#[derive(Serialize)]
struct RefundRequested<'a> {
    /// The id of the event that asks for it.
    cause: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a Text>,
}

impl Machine for Orders {
    type Data = Order;

    fn apply(order: Option<Order>, event: Event, cx: &Context<Self>) -> Answer<Self> {
        match (order, event) {
            (None, Event::Created(NewOrder { total, currency })) => {
                let order = Order { total, currency, paid: None };
                Ok(cx.to(State::Pending, order).start(Timer::PaymentTimeout, after(minutes(30))))
            }
            (Some(order), Event::Paid(payment)) => pay(order, payment, cx),
            (Some(order), Event::Shipped) => Ok(cx.to(State::Shipped, order)),
            (Some(order), Event::Delivered) => Ok(cx.to(State::Delivered, order)),
            (Some(order), Event::Cancelled) => {
                let refund = order.paid.map(|paid| {
                    let (amount, currency) = (Some(paid), Some(&order.currency));
                    refund(&RefundRequested { cause: cx.event_id(), amount, currency })
                });
                let step = cx.to(State::Cancelled, order);
                Ok(match refund {
                    Some(refund) => step.send(refund),
                    None => step,
                })
            }
            (Some(order), Event::Refunded(_)) => Ok(cx.to(State::Refunded, order)),
            _ => Err(cx.wrong_state()),
        }
    }

    fn fire(order: Order, timer: Timer, cx: &Context<Self>) -> Answer<Self> {
        match timer {
            Timer::PaymentTimeout => {
                note!(cx, "not paid in time");
                Ok(cx.to(State::Cancelled, order))
            }
        }
    }

    fn compensate(order: Option<Order>, compensation: Compensation, _: &Failure, cx: &Context<Self>) -> Answer<Self> {
        match (order, compensation) {
            (Some(order), Compensation::LatePayment) => {
                note!(cx, "paid after it was cancelled: the money goes back");
                let request = RefundRequested { cause: cx.event_id(), amount: None, currency: None };
                Ok(cx.to(State::Cancelled, order).send(refund(&request)))
            }
            (None, Compensation::LatePayment) => Err(cx.wrong_state()),
        }
    }
}

fn pay(order: Order, payment: Payment, cx: &Context<Orders>) -> Answer<Orders> {
    let Payment { amount, currency } = payment;
    ensure!(currency == order.currency, "currency-differs", "paid in {currency}, owed in {}", order.currency);
    ensure!(amount == order.total, "amount-differs", "{amount} paid, {} owed", order.total);
    let request = FulfilmentRequested { total: order.total, currency: &order.currency };
    let request = Message::json("fulfilment", "fulfilment.requested", &request);
    let order = Order { paid: Some(amount), ..order };
    Ok(cx.to(State::Paid, order).cancel(Timer::PaymentTimeout).send(request))
}

fn refund(request: &RefundRequested) -> Message {
    Message::json("payments", "refund.requested", request)
}
