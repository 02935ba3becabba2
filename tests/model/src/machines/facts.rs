//! The comparable facts of an entity's data.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Reads from an engine's state data what can be compared with the oracle: of accounts `balance` and `currency`, of
/// orders `total` and `currency`, of subscriptions nothing. Digits may stand as a JSON number or a string; other members
/// are left aside. Data that is no JSON object has no facts.
pub fn facts(machine: &str, data: &[u8]) -> BTreeMap<String, String> {
    let wanted: &[&str] = match machine {
        "orders" => &["total", "currency"],
        "accounts" => &["balance", "currency"],
        _ => &[],
    };
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(data).unwrap_or_default();
    let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    wanted.iter().filter_map(|name| Some(((*name).to_owned(), text(members.get(*name)?)))).collect()
}
