//! The `dependson` attribute: what must have happened before (R1).

use std::fmt::Write as _;
use std::sync::Arc;

use crate::ids::{EntityId, MAX_KEY, MAX_NAME};
use crate::rules::{Dependency, Reason};

/// The most items that `dependson` may hold.
pub const MAX_ITEMS: usize = 32;
/// The longest `dependson`, in bytes.
pub const MAX_LENGTH: usize = 4096;

/// One item of `dependson`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DependsOn {
    /// This entity must have applied an event of this type.
    Type(Arc<str>),
    /// Another entity must have come to a version; written `machine/key@version`, the key percent-encoded.
    Entity(Dependency),
}

/// Reads `dependson`. Blanks around items are dropped; an empty item, an unreadable one or too many are refused.
pub fn parse(text: &str) -> Result<Vec<DependsOn>, Reason> {
    if text.len() > MAX_LENGTH {
        return Err(refused(format!("it is {} bytes long; the limit is {MAX_LENGTH}", text.len())));
    }
    let items =
        text.split(',').map(|item| parse_item(item.trim_matches([' ', '\t']))).collect::<Result<Vec<_>, _>>()?;
    if items.len() > MAX_ITEMS {
        return Err(refused(format!("it has {} items; the limit is {MAX_ITEMS}", items.len())));
    }
    Ok(items)
}

/// Writes items as [`parse`] reads them; `None` for none.
pub fn to_text(items: &[DependsOn]) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let mut text = String::new();
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            text.push(',');
        }
        match item {
            DependsOn::Type(name) => text.push_str(name),
            DependsOn::Entity(d) => {
                text.push_str(&d.entity.machine);
                text.push('/');
                percent_encode(&d.entity.key, &mut text);
                let _ = write!(text, "@{}", d.version);
            }
        }
    }
    Some(text)
}

/// Whether a text is a machine's name: `[a-z][a-z0-9-]*`.
pub fn is_machine_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Reads a version as R1 writes it in text: decimal digits without leading zeros, 1 to 2^64−1.
pub fn parse_version(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    if plain { digits.parse().ok() } else { None }
}

fn refused(why: impl std::fmt::Display) -> Reason {
    Reason::new("dependson", format!("`dependson` cannot be read: {why}"))
}

fn parse_item(item: &str) -> Result<DependsOn, Reason> {
    if item.is_empty() {
        return Err(refused("an item is empty"));
    }
    if let Some((target, digits)) = item.rsplit_once('@')
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        return parse_target(item, target, digits);
    }
    if item.len() > MAX_NAME || item.chars().any(super::is_control) {
        return Err(refused(format!("`{}` is no event type", super::shown(item))));
    }
    Ok(DependsOn::Type(item.into()))
}

fn parse_target(item: &str, target: &str, digits: &str) -> Result<DependsOn, Reason> {
    let bad = |what: &str| refused(format!("`{}` is not machine/key@version: {what}", super::shown(item)));
    let (machine, key) = target.split_once('/').ok_or_else(|| bad("there is no `/`"))?;
    if !is_machine_name(machine) {
        return Err(bad("the machine's name is not [a-z][a-z0-9-]*"));
    }
    let key = percent_decode(key).ok_or_else(|| bad("the key is not percent-encoded"))?;
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(bad("a key has 1 to 512 bytes"));
    }
    let version = parse_version(digits).ok_or_else(|| bad("a version is 1 to 2^64-1 without leading zeros"))?;
    Ok(DependsOn::Entity(Dependency { entity: EntityId::new(machine, key), version }))
}

fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(b) = bytes.next() {
        out.push(if b == b'%' { hex(bytes.next()?)? << 4 | hex(bytes.next()?)? } else { b });
    }
    Some(out)
}

/// Everything but unreserved characters (RFC 3986, section 2.3) is encoded.
fn percent_encode(key: &[u8], out: &mut String) {
    for &b in key {
        if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
            out.push(b as char);
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, ()>) {
        let got = parse(text).map(|items| to_text(&items).unwrap_or_default());
        assert_eq!(got.as_deref().map_err(|_| ()), expect, "{text:?}");
    }

    #[test]
    fn items_are_types_or_targets() {
        check("order.paid", Ok("order.paid"));
        check(" order.paid , orders/o2@2", Ok("order.paid,orders/o2@2"));
        check("orders/a%2Fb%40@18446744073709551615", Ok("orders/a%2Fb%40@18446744073709551615"));
        check("orders/a/b@3", Ok("orders/a%2Fb@3"));
        check("mail@example", Ok("mail@example"));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in [
            "",
            "a,,b",
            "a,",
            "orders/o2@0",
            "orders/o2@01",
            "orders/@1",
            "orders/o%2@1",
            "orders/%zz@1",
            "Orders/o@1",
            "o@1",
            "orders/o@18446744073709551616",
        ] {
            check(text, Err(()));
        }
        check(&vec!["t"; 33].join(","), Err(()));
        assert!(parse(&vec!["t"; 32].join(",")).is_ok());
    }
}
