//! Lines that R1 does not read, and whose refusal they still are.

use rand::RngExt;
use rand::rngs::StdRng;

use super::line::{Draft, Member, members, object};
use crate::{EntityId, Ordering};

/// A malformed line, the entity that it still concerns, and why it is malformed.
pub(super) type Bad = (Vec<u8>, Option<EntityId>, &'static str);

/// Spoils a good event of a machine with that ordering.
pub(super) fn malformed(rng: &mut StdRng, draft: &Draft, ordering: Ordering) -> Bad {
    match rng.random_range(0..5) {
        0 => unreadable(rng, draft),
        1 => unaddressed(rng, draft),
        _ => addressed(rng, draft, ordering),
    }
}

/// Not a JSON object that could be looked into: it concerns nobody.
fn unreadable(rng: &mut StdRng, draft: &Draft) -> Bad {
    let (all, event) = members(rng, draft);
    let line = object(&all, false);
    let with = |extra: &str| format!("{},{extra}}}", &line[..line.len() - 1]).into_bytes();
    let (bytes, why) = match rng.random_range(0..10) {
        0 => (Vec::new(), "a blank line"),
        1 => (b"not json".to_vec(), "no JSON"),
        2 => (line.as_bytes()[..line.len() - 2].to_vec(), "cut off"),
        3 => (format!("[{line}]").into_bytes(), "an array"),
        4 => (with(&format!("\"type\":\"{}\"", event.kind)), "a repeated member"),
        5 => (with("\"ty\\u0070e\":\"order.paid\""), "a repeated member, escaped"),
        6 => (with("\"note\":\"\u{1}\"").into_iter().map(|b| if b == 1 { 0xff } else { b }).collect(), "bad UTF-8"),
        7 => {
            let mut all = all;
            all.retain(|(name, _)| name != "data" && name != "data_base64");
            all.push(("data".to_owned(), format!("{}{}", "[".repeat(128), "]".repeat(128))));
            (object(&all, false).into_bytes(), "level 129")
        }
        8 => (format!("{line} {{}}").into_bytes(), "something behind the object"),
        _ => (with("\"raw\":\"\u{1}\""), "a raw control character in a string"),
    };
    (bytes, None, why)
}

/// An object without a valid machine or subject: it concerns nobody either.
fn unaddressed(rng: &mut StdRng, draft: &Draft) -> Bad {
    let (mut all, _) = members(rng, draft);
    let why = match rng.random_range(0..7) {
        0 => drop_member(&mut all, "subject", "no subject"),
        1 => set(&mut all, "subject", "\"\"", "an empty key"),
        2 => set(&mut all, "subject", &format!("\"{}\"", "k".repeat(513)), "a key of 513 bytes"),
        3 => set(&mut all, "subject", "7", "a key that is no string"),
        4 => drop_member(&mut all, "machine", "no machine"),
        5 => set(&mut all, "machine", "\"toasters\"", "a machine that is not configured"),
        _ => set(&mut all, "subject", "null", "a null subject"),
    };
    (object(&all, false).into_bytes(), None, why)
}

/// Machine and subject are good, something else is not: in causal and arrival machines a refusal of that entity.
fn addressed(rng: &mut StdRng, draft: &Draft, ordering: Ordering) -> Bad {
    let (mut all, event) = members(rng, draft);
    let versions = ["0", "-1", "1.0", "1e0", "\"01\"", "\"+1\"", "\" 1\"", "true", "\"\"", "18446744073709551616"];
    let numbered = matches!(ordering, Ordering::Versioned | Ordering::Snapshot);
    let why = match rng.random_range(0..24) {
        0 => drop_member(&mut all, "id", "no id"),
        1 => drop_member(&mut all, "source", "no source"),
        2 => drop_member(&mut all, "type", "no type"),
        3 => drop_member(&mut all, "specversion", "no specversion"),
        4 => set(&mut all, "specversion", "\"0.3\"", "another specversion"),
        5 => set(&mut all, "id", "\"\"", "an empty id"),
        6 => set(&mut all, "id", "\"a\\u0000b\"", "a NUL in the id"),
        7 => set(&mut all, "type", "\"order\\u0085paid\"", "a control character in the type"),
        8 => set(&mut all, "id", &format!("\"{}\"", "i".repeat(257)), "an id of 257 bytes"),
        9 => set(&mut all, "time", "\"yesterday\"", "a time that is not RFC 3339"),
        10 => set(&mut all, "idempotencykey", "\"\"", "an empty idempotency key"),
        11 => set(&mut all, "idempotencykey", "\"a\\tb\"", "a control character in the idempotency key"),
        12 => set(&mut all, "dependson", "\"order.paid,,order.created\"", "an empty item"),
        13 => set(&mut all, "dependson", &format!("\"{}\"", vec!["t"; 33].join(",")), "33 items"),
        14 => set(&mut all, "extra", "{\"a\":1}", "an extension that is an object"),
        15 => set(&mut all, "extra", "[1]", "an extension that is an array"),
        16 => {
            all.retain(|(name, _)| name != "data" && name != "data_base64");
            all.push(("data".to_owned(), "{}".to_owned()));
            all.push(("data_base64".to_owned(), "\"e30=\"".to_owned()));
            "both data and data_base64"
        }
        17 => {
            all.retain(|(name, _)| name != "data");
            set(&mut all, "data_base64", "\"%%%\"", "bad base64")
        }
        18 => {
            all.extend((0..65).map(|i| (format!("ext{i}"), "\"x\"".to_owned())));
            "65 extensions"
        }
        19 if numbered => drop_member(&mut all, "entityversion", "no version where the ordering needs one"),
        20 if ordering == Ordering::Versioned => {
            let version = event.version.unwrap_or(1).to_string();
            set(&mut all, "previousversion", &version, "a previous version that is not below the version")
        }
        _ => {
            let version = versions[rng.random_range(0..versions.len())];
            set(&mut all, "entityversion", version, "a version that is none")
        }
    };
    (object(&all, false).into_bytes(), Some(event.entity()), why)
}

fn set(all: &mut Vec<Member>, name: &str, json: &str, why: &'static str) -> &'static str {
    all.retain(|(n, _)| n != name);
    all.push((name.to_owned(), json.to_owned()));
    why
}

fn drop_member(all: &mut Vec<Member>, name: &str, why: &'static str) -> &'static str {
    all.retain(|(n, _)| n != name);
    why
}
