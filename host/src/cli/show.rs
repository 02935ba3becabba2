//! Values as the command line shows them: keys, payloads, times, positions, events.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seqgate_decide::envelope::{MAX_DEPTH, depth};
use seqgate_decide::event::Event;
use seqgate_decide::ids::{EntityId, Position};
use seqgate_decide::writes::Actor;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::output::{Object, plain};
use crate::config::units::span;

/// A key for people: its text, or `hex:…` where it is none.
pub fn key(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) => plain(text).into_owned(),
        Err(_) => format!("hex:{}", hex(key)),
    }
}

/// An entity for people: `orders/o1`.
pub fn entity(id: &EntityId) -> String {
    format!("{}/{}", id.machine, key(&id.key))
}

/// A key as the arguments of a command.
pub fn key_argument(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => quoted(text),
        _ => format!("{} --key-hex", hex(bytes)),
    }
}

/// A text as one word of a shell.
pub fn quoted(text: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:@,+=%".contains(c);
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(safe) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Members `machine` and `key`; a key that is no text is `hex:…` there, and marked by a member `key_hex`.
pub fn entity_members(id: &EntityId) -> Object {
    let object = Object::new().put("machine", &*id.machine);
    match std::str::from_utf8(&id.key) {
        Ok(text) => object.put("key", text),
        Err(_) => object.put("key", key(&id.key)).put("key_hex", hex(&id.key)),
    }
}

/// The same where there may be none.
pub fn entity_members_or_null(id: Option<&EntityId>) -> Object {
    let none = || Object::new().put("machine", None::<&str>).put("key", None::<&str>);
    id.map_or_else(none, entity_members)
}

/// The deepest JSON that is put into an answer as JSON: with the answer around it, readers that stop at
/// [`MAX_DEPTH`] still read it.
const SHOWN_DEPTH: usize = MAX_DEPTH - 8;

/// Members `data` and `data_encoding`: `json` with every digit as it is, `text` (also JSON that nests too deep to be read
/// back), or `base64`.
pub fn data_members(data: &[u8]) -> Object {
    let text = std::str::from_utf8(data);
    let shallow = text.ok().filter(|text| depth(text.as_bytes()) <= SHOWN_DEPTH);
    let json = shallow.and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
    match (json, text) {
        (Some(json), _) => Object::new().put("data", json).put("data_encoding", "json"),
        (None, Ok("")) => Object::new().put("data", None::<&str>).put("data_encoding", "empty"),
        (None, Ok(text)) => Object::new().put("data", text).put("data_encoding", "text"),
        (None, Err(_)) => Object::new().put("data", STANDARD.encode(data)).put("data_encoding", "base64"),
    }
}

/// A payload for people, in one line.
pub fn data(data: &[u8]) -> String {
    match std::str::from_utf8(data) {
        Ok("") => "(empty)".to_owned(),
        Ok(text) => plain(text).into_owned(),
        Err(_) => format!("base64:{}", STANDARD.encode(data)),
    }
}

/// An event, whole.
pub fn event(event: &Event) -> Object {
    let attributes: serde_json::Map<String, serde_json::Value> =
        event.attributes.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    Object::new()
        .put("source", &*event.key.source)
        .put("id", &*event.key.id)
        .put("type", &*event.kind)
        .put("version", event.version)
        .put("previous", event.previous)
        .put("time", time(event.time))
        .put("idempotency_key", event.idempotency_key.as_deref())
        .put("depends_on", event.depends_on_text())
        .put("logical_time", event.logical_time)
        .put("content_type", event.content_type.as_deref())
        .put("attributes", attributes)
        .put("digest", event.digest.to_string())
        .and(data_members(&event.data))
}

/// `source/partition@offset` in its parts.
pub fn position(position: &Position) -> Object {
    Object::new().put("source", &*position.source).put("partition", position.partition).put("offset", position.offset)
}

/// Who and why.
pub fn actor(by: &Actor) -> Object {
    Object::new().put("name", &by.name).put("reason", &by.reason)
}

/// A time as RFC 3339 in UTC; one that RFC 3339 cannot write stays milliseconds.
pub fn time(millis: i64) -> String {
    at(millis).and_then(|t| t.format(&Rfc3339).ok()).unwrap_or_else(|| format!("{millis} ms"))
}

/// Reads a time of RFC 3339; digits beyond the millisecond are cut.
pub fn parse_time(text: &str) -> Option<i64> {
    let at = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// A time to the second.
pub fn seconds(millis: i64) -> String {
    time(millis - millis.rem_euclid(1000))
}

/// A time and how long ago it was, for tables.
pub fn since(millis: i64, now: i64) -> String {
    let gone = if millis > now { format!("in {}", span(millis - now)) } else { span(now - millis) };
    format!("{} ({gone})", seconds(millis))
}

/// The time of day where it was today, else the whole time.
pub fn clock(millis: i64, now: i64) -> String {
    match (at(millis), at(now)) {
        (Some(t), Some(today)) if t.date() == today.date() => format!("{:02}:{:02}", t.hour(), t.minute()),
        _ => seconds(millis),
    }
}

fn at(millis: i64) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok()
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Hexadecimal digits as bytes.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("hex:").unwrap_or(text).as_bytes();
    let digit = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

/// A text where there is one, `-` otherwise.
pub fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |v| v.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_shown_as_they_are() {
        let check = |data: &[u8], expect: &str| assert_eq!(data_members(data).to_string(), expect);
        check(
            br#"{"total":92233720368547758070.50}"#,
            r#"{"data":{"total":92233720368547758070.50},"data_encoding":"json"}"#,
        );
        check(b"null", r#"{"data":null,"data_encoding":"json"}"#);
        check(b"", r#"{"data":null,"data_encoding":"empty"}"#);
        check(b"a\0b", r#"{"data":"a\u0000b","data_encoding":"text"}"#);
        check(b"\xff\x00", r#"{"data":"/wA=","data_encoding":"base64"}"#);
    }

    #[test]
    fn keys_that_are_no_text_are_marked() {
        let json = |key: &[u8]| entity_members(&EntityId::new("orders", key)).to_string();
        assert_eq!(json(b"o1"), r#"{"machine":"orders","key":"o1"}"#);
        assert_eq!(json(b"\xff\x01"), r#"{"machine":"orders","key":"hex:ff01","key_hex":"ff01"}"#);
        assert_eq!(key_argument(b"o 1"), "'o 1'");
        assert_eq!(key_argument(b"it's"), r"'it'\''s'");
        assert_eq!(key_argument(b"\xff\x01"), "ff01 --key-hex");
        assert_eq!(unhex("hex:ff01"), Some(vec![0xff, 1]));
        assert_eq!(unhex("ff0"), None);
    }

    #[test]
    fn times_are_utc_and_ages() {
        let ten = 1_796_032_800_000; // 2026-11-30T10:00:00Z
        assert_eq!(time(ten + 250), "2026-11-30T10:00:00.25Z");
        assert_eq!(since(ten, ten + 185_000), "2026-11-30T10:00:00Z (3 min)");
        assert_eq!(since(ten + 60_000, ten), "2026-11-30T10:01:00Z (in 1 min)");
        assert_eq!(clock(ten, ten + 1000), "10:00");
        assert_eq!(clock(ten, ten + 86_400_000), "2026-11-30T10:00:00Z");
        assert_eq!(time(i64::MAX), format!("{} ms", i64::MAX));
    }
}
