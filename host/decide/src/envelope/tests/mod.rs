//! R1, clause by clause: what is read, and by which code the rest is refused.

#![allow(clippy::unwrap_used, reason = "a test may stop where it is wrong")]

mod attributes;
mod payload;

use std::sync::Arc;

use super::{Decoded, Directory, Limits, Malformed, Received, decode};
use crate::event::Event;
use crate::ids::{MAX_KEY, MAX_NAME};
use crate::setup::Ordering;

/// One machine of each ordering, named after it.
struct All;

impl Directory for All {
    fn ordering(&self, machine: &str) -> Option<Ordering> {
        let all = [Ordering::Versioned, Ordering::Causal, Ordering::Snapshot, Ordering::Arrival];
        all.into_iter().find(|o| o.name() == machine)
    }
}

const RECEIVED_AT: i64 = 7_000;

fn received(line: &[u8]) -> Received<'_> {
    Received { bytes: line, key: None, record_time: None, received_at: RECEIVED_AT, machine: Some("versioned") }
}

fn read(received: &Received<'_>) -> Result<Arc<Event>, Malformed> {
    match decode(received, &All, &Limits { data: 64 }) {
        Decoded::Event(event) => Ok(event),
        Decoded::Malformed(malformed) => Err(malformed),
    }
}

fn read_line(line: &str) -> Result<Arc<Event>, Malformed> {
    read(&received(line.as_bytes()))
}

/// A good envelope, with members replaced or added; one without a value is left out.
fn line(changes: &[(&str, &str)]) -> String {
    let good = [
        ("specversion", r#""1.0""#),
        ("id", r#""e1""#),
        ("source", r#""/shop""#),
        ("type", r#""order.paid""#),
        ("subject", r#""o1""#),
        ("entityversion", "1"),
    ];
    let kept = good.into_iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let all = kept.chain(changes.iter().copied().filter(|(_, raw)| !raw.is_empty()));
    format!("{{{}}}", all.map(|(name, raw)| format!("{name:?}:{raw}")).collect::<Vec<_>>().join(","))
}

/// One member's value: is the envelope readable, or by which code is it not?
fn check(name: &str, raw: &str, expect: &str) {
    check_all(&[(name, raw)], expect);
}

fn check_all(changes: &[(&str, &str)], expect: &str) {
    check_line(&line(changes), expect);
}

fn check_line(line: &str, expect: &str) {
    let got = read_line(line).map_or_else(|m| m.reason.code, |_| "ok".into());
    assert_eq!(got, expect, "{}", super::shown(line));
}

/// The payload that rules see.
fn check_data(changes: &[(&str, &str)], expect: &[u8]) {
    let event = read_line(&line(changes)).unwrap_or_else(|m| panic!("{changes:?}: {m:?}"));
    assert_eq!(String::from_utf8_lossy(&event.data), String::from_utf8_lossy(expect), "{changes:?}");
}

fn check_time(text: &str, expect: Option<i64>) {
    let got = read_line(&line(&[("time", &format!("{text:?}"))])).map_err(|m| m.reason.code);
    assert_eq!(got.map(|e| e.time), expect.ok_or("time".into()), "{text}");
}

fn text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes))
}

/// R5: in machines without versions, a malformed envelope may be a refusal of the entity that it names.
#[test]
fn the_entity_of_what_is_malformed() {
    let check = |line: &str, expect: Option<&str>| {
        let malformed = read_line(line).unwrap_err();
        assert_eq!(malformed.entity.map(|e| e.to_string()).as_deref(), expect, "{}", super::shown(line));
    };
    let causal = ("machine", "\"causal\"");
    check(&line(&[causal, ("id", "")]), Some("causal/o1"));
    check(&line(&[causal, ("data", "1"), ("data_base64", "\"\"")]), Some("causal/o1"));
    check(&line(&[("specversion", "2")]), Some("versioned/o1"));
    check(&line(&[("machine", "\"unheard-of\""), ("id", "")]), None);
    check(&line(&[("subject", ""), ("id", "")]), None);
    check(&line(&[("subject", &text(513))]), None);
    check(&line(&[("data", &"[".repeat(200))]), None);
    check(&line(&[causal]).replacen('{', "{\"id\":\"e1\",", 1), None);
    check(&line(&[causal]).replace('}', ""), None);
    check("[]", None);
}

/// Whatever comes, decoding ends with an event within the limits or with a reason.
#[test]
fn mutations_never_panic_and_never_pass_a_limit() {
    let lines = [
        line(&[("data", r#"{"a":[1,2.5e3,"\u00e9"],"b":{}}"#), ("time", r#""2024-02-29T12:00:00.5+02:00""#)]),
        line(&[("machine", "\"causal\""), ("dependson", r#""a, orders/a%2Fb@3""#), ("logicaltime", "\"9\"")]),
        line(&[("data_base64", r#""AAH/""#), ("idempotencykey", r#""pay:1""#), ("x", "true")]),
        line(&[("datacontenttype", r#""text/plain""#), ("data", r#""t\n""#), ("previousversion", "0")]),
        line(&[("id", &text(250)), ("type", &text(250)), ("subject", &text(505))]),
    ];
    const SPICE: [&[u8]; 16] = [
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"null",
        b"\\u0000",
        b"\xff",
        b"\xc2\x85",
        b"0",
        b"-",
        b"xxxxxxxx",
        b" ",
    ];
    let mut random = Random(0x5e9_6a7e);
    let mut readable = 0;
    for _ in 0..20_000 {
        let mut bytes = lines[random.below(lines.len())].clone().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => drop(bytes.remove(at)),
                1 => drop(bytes.splice(at..at, SPICE[random.below(SPICE.len())].iter().copied())),
                2 => bytes[at] ^= 1 << random.below(8),
                _ => {
                    let end = (at + random.below(12)).min(bytes.len());
                    let part = bytes[at..end].to_vec();
                    let to = random.below(bytes.len());
                    drop(bytes.splice(to..to, part));
                }
            }
        }
        match read(&received(&bytes)) {
            Ok(event) => {
                readable += 1;
                within_limits(&event);
            }
            Err(malformed) => assert!(!malformed.reason.code.is_empty() && malformed.reason.message.len() < 1_000),
        }
    }
    assert!(
        (2_000..18_000).contains(&readable),
        "{readable} of 20,000 were readable: the mutations test one side only"
    );
}

fn within_limits(event: &Event) {
    let names = [Some(&event.key.id), Some(&event.kind), event.idempotency_key.as_ref()];
    for name in names.into_iter().flatten() {
        assert!((1..=MAX_NAME).contains(&name.len()) && !name.chars().any(super::is_control), "{event:?}");
    }
    assert!((1..=MAX_KEY).contains(&event.entity.key.len()) && event.data.len() <= 64, "{event:?}");
    let uses = All.ordering(&event.entity.machine).is_some_and(Ordering::uses_versions);
    assert_eq!(event.version.is_some(), uses, "{event:?}");
    assert!(event.version != Some(0) && event.previous.is_none_or(|p| Some(p) < event.version), "{event:?}");
    let written = event.depends_on_text().map(|text| Event::parse_depends_on(&text));
    assert_eq!(written.unwrap_or(Ok(vec![])).as_ref(), Ok(&event.depends_on), "what the store writes is read back");
}

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}
