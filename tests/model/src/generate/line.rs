//! Lines and what they mean: the same event may be written in many ways.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use crate::{Dependency, Event, Value};

/// How an event carries its data.
#[derive(Clone, Debug)]
pub(super) enum Body {
    Json(Value),
    /// JSON bytes in `data_base64`.
    Base64(Value),
    /// A JSON string under a content type that is not JSON.
    Text(String),
    Absent,
}

/// An event before it is written: `data` and `value` of the event are not set yet.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) event: Event,
    pub(super) body: Body,
}

/// A member of the envelope: its name and the JSON of its value.
pub(super) type Member = (String, String);

/// Writes the draft in one of its ways; the event returned is what the line means.
pub(super) fn write(rng: &mut StdRng, draft: &Draft) -> (Vec<u8>, Event) {
    let (mut members, event) = members(rng, draft);
    if rng.random_bool(0.3) {
        members.shuffle(rng);
    }
    let spaced = rng.random_bool(0.15);
    (object(&members, spaced).into_bytes(), event)
}

/// The envelope's members in the usual order.
pub(super) fn members(rng: &mut StdRng, draft: &Draft) -> (Vec<Member>, Event) {
    let mut event = draft.event.clone();
    let mut out: Vec<Member> = Vec::new();
    let mut put = |name: &str, json: String| out.push((name.to_owned(), json));
    put("specversion", "\"1.0\"".to_owned());
    put("id", string(rng, &event.id));
    put("source", string(rng, &event.source));
    put("type", string(rng, &event.kind));
    put("subject", string(rng, &event.key));
    put("machine", string(rng, &event.machine));
    if let Some(time) = event.time {
        put("time", format!("\"{}\"", instant(time)));
    }
    for (name, version) in [("entityversion", event.version), ("previousversion", event.previous)] {
        match version {
            Some(v) if rng.random_bool(0.3) => put(name, format!("\"{v}\"")),
            Some(v) => put(name, v.to_string()),
            None if rng.random_bool(0.03) => put(name, "null".to_owned()),
            None => {}
        }
    }
    if let Some(key) = &event.idempotency_key {
        put("idempotencykey", string(rng, key));
    }
    if !event.depends_on.is_empty() {
        let blank = if rng.random_bool(0.3) { " , " } else { "," };
        let items: Vec<String> = event.depends_on.iter().map(item).collect();
        put("dependson", string(rng, &items.join(blank)));
    }
    if let Some(logical) = event.logical_time {
        put("logicaltime", logical.to_string());
    }
    if rng.random_bool(0.1) {
        put("correlationid", string(rng, "c-1"));
        put("shopregion", string(rng, "north"));
    }
    if let Some(content_type) = &event.content_type {
        put("datacontenttype", string(rng, content_type));
    }
    match &draft.body {
        Body::Json(value) => {
            let json = json(rng, value);
            put("data", json.clone());
            (event.data, event.value) = (json.into_bytes(), Some(value.clone()));
        }
        Body::Base64(value) => {
            let json = json(rng, value);
            put("data_base64", format!("\"{}\"", base64(json.as_bytes())));
            (event.data, event.value) = (json.into_bytes(), Some(value.clone()));
        }
        Body::Text(text) => {
            put("data", string(rng, text));
            event.data = text.clone().into_bytes();
        }
        Body::Absent => {}
    }
    (out, event)
}

/// An object of these members; raw line ends never occur, because a line is an event.
pub(super) fn object(members: &[Member], spaced: bool) -> String {
    let (comma, colon) = if spaced { (" ,\t", " : ") } else { (",", ":") };
    let all: Vec<String> = members.iter().map(|(name, json)| format!("\"{name}\"{colon}{json}")).collect();
    format!("{{{}}}", all.join(comma))
}

/// An item of `dependson`.
pub(super) fn item(dependency: &Dependency) -> String {
    match dependency {
        Dependency::Type(kind) => kind.clone(),
        Dependency::Version(t) => format!("{}/{}@{}", t.entity.machine, percent(&t.entity.key), t.version),
    }
}

fn percent(key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    key.bytes().map(|b| if plain(b) { (b as char).to_string() } else { format!("%{b:02X}") }).collect()
}

/// A JSON string; now and then with an escape that it would not need.
pub(super) fn string(rng: &mut StdRng, text: &str) -> String {
    let odd = rng.random_bool(0.05);
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if (c as u32) < 0x20 || (odd && c.is_ascii_lowercase()) => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn json(rng: &mut StdRng, value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(spelled) => spelled.clone(),
        Value::Text(text) => string(rng, text),
        Value::List(items) => {
            let all: Vec<String> = items.iter().map(|v| json(rng, v)).collect();
            format!("[{}]", all.join(","))
        }
        Value::Object(members) => {
            let all: Vec<Member> = members.iter().map(|(k, v)| (k.clone(), json(rng, v))).collect();
            object(&all, rng.random_bool(0.1))
        }
    }
}

/// The same data, serialised anew by somebody else: members in another order, numbers spelled otherwise, another carrier.
pub(super) fn reserialised(rng: &mut StdRng, body: &Body) -> Body {
    match body {
        Body::Json(value) if rng.random_bool(0.2) => Body::Base64(respelled(rng, value)),
        Body::Json(value) | Body::Base64(value) => Body::Json(respelled(rng, value)),
        other => other.clone(),
    }
}

fn respelled(rng: &mut StdRng, value: &Value) -> Value {
    match value {
        Value::Number(n) if n.bytes().all(|b| b.is_ascii_digit()) => match rng.random_range(0..4) {
            0 => Value::Number(format!("{n}.0")),
            1 => Value::Number(format!("{n}e0")),
            2 if n.len() > 1 && n.ends_with("000") => Value::Number(format!("{}.0e3", &n[..n.len() - 3])),
            _ => value.clone(),
        },
        Value::Object(members) => {
            let mut all: Vec<(String, Value)> = members.iter().map(|(k, v)| (k.clone(), respelled(rng, v))).collect();
            all.shuffle(rng);
            Value::Object(all)
        }
        Value::List(items) => Value::List(items.iter().map(|v| respelled(rng, v)).collect()),
        other => other.clone(),
    }
}

/// RFC 3339 in UTC with milliseconds.
pub(super) fn instant(ms: i64) -> String {
    let (seconds, milli) = (ms.div_euclid(1000), ms.rem_euclid(1000));
    let (mut days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let leap = |y: i64| (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    let mut year = 1970;
    while days >= if leap(year) { 366 } else { 365 } {
        days -= if leap(year) { 366 } else { 365 };
        year += 1;
    }
    let lengths = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (h, m, s) = (rest / 3600, rest / 60 % 60, rest % 60);
    let fraction = if milli == 0 { String::new() } else { format!(".{milli:03}") };
    format!("{year:04}-{month:02}-{:02}T{h:02}:{m:02}:{s:02}{fraction}Z", days + 1)
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| (w << 8) | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let sextet = (word >> (18 - 6 * i)) & 63;
            out.push(if i <= chunk.len() { ALPHABET[sextet as usize] as char } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_base64_are_written_as_others_read_them() {
        assert_eq!(instant(1_798_588_800_000), "2026-12-30T00:00:00Z");
        assert_eq!(instant(951_782_400_250), "2000-02-29T00:00:00.250Z");
        assert_eq!((base64(b"f"), base64(b"fo"), base64(b"foo")), ("Zg==".into(), "Zm8=".into(), "Zm9v".into()));
    }
}
