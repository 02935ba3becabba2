//! R11 in examples.

use super::*;

fn ask(machine_name: &str, state: Option<&str>, facts: &[(&str, &str)], kind: &str, data: Option<Value>) -> Answer {
    let facts = facts.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let input = Input { state, facts: &facts, trigger: Trigger::Event(kind), data: data.as_ref() };
    machine(machine_name).apply(&input)
}

fn money(amount: Value) -> Option<Value> {
    Some(Value::object([("amount", amount), ("currency", Value::text("EUR"))]))
}

const MAX: &str = "170141183460469231731687303715884105727";

#[test]
fn amounts_are_exact_up_to_two_to_the_127_minus_one() {
    let open = [("balance", "0"), ("currency", "EUR")];
    for good in [Value::number(1), Value::text("1"), Value::number(MAX), Value::text(MAX)] {
        assert!(matches!(ask("accounts", Some("open"), &open, "account.credited", money(good)), Answer::Move(_)));
    }
    let over = "170141183460469231731687303715884105728";
    for bad in ["0", "-1", "1.0", "1e3", over] {
        assert_eq!(
            ask("accounts", Some("open"), &open, "account.credited", money(Value::number(bad))),
            Answer::Malformed
        );
    }
    for bad in ["", "01", "+1", " 1", "1.0", over, "0x1"] {
        assert_eq!(
            ask("accounts", Some("open"), &open, "account.credited", money(Value::text(bad))),
            Answer::Malformed
        );
    }
}

#[test]
fn payload_is_checked_before_state_and_state_with_business() {
    let facts = [("total", "5"), ("currency", "EUR")];
    let paid = |state, amount: &str| ask("orders", state, &facts, "order.paid", money(Value::number(amount)));
    assert_eq!(paid(Some("shipped"), "0"), Answer::Malformed);
    assert_eq!(paid(None, "5"), Answer::Illegal);
    assert_eq!(paid(Some("pending"), "4"), Answer::Illegal);
    assert!(matches!(paid(Some("pending"), "5"), Answer::Move(_)));
}

#[test]
fn a_full_account_overflows_and_an_empty_one_is_not_overdrawn() {
    let full = [("balance", MAX), ("currency", "EUR")];
    assert_eq!(ask("accounts", Some("open"), &full, "account.credited", money(Value::number(1))), Answer::Illegal);
    assert_eq!(ask("accounts", Some("open"), &full, "account.closed", None), Answer::Illegal);
    let empty = [("balance", "0"), ("currency", "EUR")];
    assert_eq!(ask("accounts", Some("open"), &empty, "account.debited", money(Value::number(1))), Answer::Illegal);
    assert!(matches!(ask("accounts", Some("open"), &empty, "account.closed", None), Answer::Move(_)));
}

#[test]
fn a_renewal_names_a_later_period() {
    let last = [("period", "2026-12")];
    let renew = |period| {
        ask("subscriptions", Some("active"), &last, "subscription.renewed", Some(Value::object([("period", period)])))
    };
    assert_eq!(renew(Value::text("2026-12")), Answer::Illegal);
    assert!(matches!(renew(Value::text("2027-01")), Answer::Move(_)));
    assert_eq!(renew(Value::text("2027-13")), Answer::Malformed);
    assert_eq!(renew(Value::number(2027)), Answer::Malformed);
}

#[test]
fn a_trial_ends_when_it_says() {
    let data = Value::object([("trial_end", Value::text("2026-12-30T00:00:00Z"))]);
    let Answer::Move(m) = ask("subscriptions", None, &[], "subscription.created", Some(data)) else { panic!() };
    assert_eq!((m.state.as_str(), m.effects), ("trialing", vec![Effect::StartAt("trial-end", 1_798_588_800_000)]));
}

#[test]
fn early_looks_along_event_and_timer_edges_only() {
    let orders = machine("orders");
    assert!(orders.early(None, "order.shipped"));
    assert!(orders.early(Some("pending"), "order.delivered"));
    assert!(!orders.early(Some("pending"), "order.created"), "nothing leads back to absent");
    assert!(!orders.early(Some("cancelled"), "order.paid"), "a compensation edge is no way");
    assert!(!orders.early(Some("paid"), "order.shipped"), "it has an edge from here");
    assert!(!orders.early(None, "order.exploded"));
    assert!(machine("subscriptions").early(Some("paused"), "subscription.renewed"));
    assert!(machine("subscriptions").early(None, "subscription.cancelled"), "from any live state");
}

#[test]
fn facts_are_read_leniently() {
    let want = BTreeMap::from([("balance".to_owned(), MAX.to_owned()), ("currency".to_owned(), "EUR".to_owned())]);
    let number = format!(r#"{{"balance":{MAX},"currency":"EUR","more":[1]}}"#);
    let text = format!(r#"{{"balance":"{MAX}","currency":"EUR"}}"#);
    assert_eq!(facts("accounts", number.as_bytes()), want);
    assert_eq!(facts("accounts", text.as_bytes()), want);
    assert_eq!(facts("subscriptions", number.as_bytes()), BTreeMap::new());
}
