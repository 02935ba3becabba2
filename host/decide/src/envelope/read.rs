//! The attributes of R1, one after the other.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::json::{self, Members};
use super::{Decoded, Directory, Malformed, depends, is_control, shown};
use crate::canonical;
use crate::digest;
use crate::event::Event;
use crate::ids::{EntityId, EventKey, MAX_KEY, MAX_NAME};
use crate::rules::Reason;

/// The longest `source`, in bytes: what an index entry of either store holds.
const MAX_SOURCE: usize = 1024;
/// The most unknown extensions, and their names and values together, in bytes.
const MAX_EXTENSIONS: usize = 64;
const MAX_EXTENSION_BYTES: usize = 8 * 1024;

/// What was received, with what the source knows about it.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// A CloudEvent in JSON structured form.
    pub bytes: &'a [u8],
    /// The record's key, which stands in for a missing `subject`.
    pub key: Option<&'a [u8]>,
    /// The record's time, which stands in for a missing `time`.
    pub record_time: Option<i64>,
    /// The time of receipt, which stands in for both.
    pub received_at: i64,
    /// The machine that the source is configured for.
    pub machine: Option<&'a str>,
}

/// Configured limits.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest payload, in bytes.
    pub data: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { data: 1024 * 1024 }
    }
}

/// Decodes an envelope.
///
/// Never fails: what cannot be understood is [`Decoded::Malformed`] with a reason, and the caller keeps the bytes.
pub fn decode(received: &Received<'_>, directory: &dyn Directory, limits: &Limits) -> Decoded {
    let members = match json::members(received.bytes) {
        Ok(members) => members,
        Err(reason) => return Decoded::Malformed(Malformed { reason, entity: None }),
    };
    let entity = entity(&members, received, directory);
    match entity.clone().and_then(|entity| event(&members, entity, received, directory, limits)) {
        Ok(event) => Decoded::Event(Arc::new(event)),
        Err(reason) => Decoded::Malformed(Malformed { reason, entity: entity.ok() }),
    }
}

fn entity(members: &Members<'_>, received: &Received<'_>, directory: &dyn Directory) -> Result<EntityId, Reason> {
    let named = members.string("machine")?;
    let machine = named
        .as_deref()
        .or(received.machine)
        .ok_or_else(|| Reason::new("machine", "`machine` is missing, and the source is not configured for one"))?;
    if !depends::is_machine_name(machine) {
        return Err(Reason::new("machine", format!("`{}` is no machine's name: [a-z][a-z0-9-]*", shown(machine))));
    }
    if directory.ordering(machine).is_none() {
        return Err(Reason::new("machine", format!("no machine `{}` is configured", shown(machine))));
    }
    let subject = members.string("subject")?;
    let key = subject
        .as_deref()
        .map(str::as_bytes)
        .or(received.key)
        .ok_or_else(|| Reason::new("subject", "`subject` is missing, and the record has no key"))?;
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(Reason::new("subject", format!("a key has 1 to {MAX_KEY} bytes; this one has {}", key.len())));
    }
    Ok(EntityId::new(machine, key))
}

fn event(
    members: &Members<'_>,
    entity: EntityId,
    received: &Received<'_>,
    directory: &dyn Directory,
    limits: &Limits,
) -> Result<Event, Reason> {
    match members.string("specversion")?.as_deref() {
        Some("1.0") => {}
        Some(other) => {
            return Err(Reason::new("specversion", format!("`specversion` is `{}`, not `1.0`", shown(other))));
        }
        None => return Err(Reason::new("specversion", "`specversion` is missing; it must be `1.0`")),
    }
    let id = required(members, "id", MAX_NAME)?;
    let source = required(members, "source", MAX_SOURCE)?;
    let kind = required(members, "type", MAX_NAME)?;
    let idempotency_key = optional(members, "idempotencykey", MAX_NAME)?;
    let (version, previous) = versions(members, &entity, directory)?;
    let logical_time = members.get("logicaltime").map(|raw| whole("logicaltime", raw)).transpose()?;
    let depends_on = match text(members, "dependson")? {
        Some(text) => depends::parse(&text)?,
        None => Vec::new(),
    };
    let time = match text(members, "time")? {
        Some(text) => timestamp(&text)?,
        None => received.record_time.unwrap_or(received.received_at),
    };
    let content_type = text(members, "datacontenttype")?;
    let attributes = attributes(members)?;
    let data = data(members, content_type.as_deref(), limits)?;
    let (digest, value_digest) = digest::of_content(&entity, &kind, version, content_type.as_deref(), &data);
    Ok(Event {
        key: EventKey { machine: entity.machine.clone(), source, id },
        entity,
        kind,
        version,
        previous,
        time,
        idempotency_key,
        depends_on,
        logical_time,
        content_type: content_type.map(Arc::from),
        attributes,
        data: data.into(),
        digest,
        value_digest,
    })
}

fn required(members: &Members<'_>, name: &str, most: usize) -> Result<Arc<str>, Reason> {
    optional(members, name, most)?.ok_or_else(|| Reason::new(name, format!("`{name}` is missing")))
}

/// A name: not empty, bounded, without control characters.
fn optional(members: &Members<'_>, name: &str, most: usize) -> Result<Option<Arc<str>>, Reason> {
    let Some(text) = text(members, name)? else { return Ok(None) };
    if text.len() > most {
        return Err(Reason::new(name, format!("`{name}` is {} bytes long; the limit is {most}", text.len())));
    }
    if text.chars().any(is_control) {
        return Err(Reason::new(name, format!("`{name}` holds a control character")));
    }
    Ok(Some(text.into()))
}

/// A string that is absent or not empty.
fn text(members: &Members<'_>, name: &str) -> Result<Option<String>, Reason> {
    match members.string(name)? {
        Some(text) if text.is_empty() => Err(Reason::new(name, format!("`{name}` is empty; leave it out instead"))),
        other => Ok(other.map(Into::into)),
    }
}

fn versions(
    members: &Members<'_>,
    entity: &EntityId,
    directory: &dyn Directory,
) -> Result<(Option<u64>, Option<u64>), Reason> {
    let name = "entityversion";
    let version = members.get(name).map(|raw| whole(name, raw)).transpose()?;
    if version == Some(0) {
        return Err(Reason::new(name, "`entityversion` is 0; versions count from 1"));
    }
    let name = "previousversion";
    let previous = members.get(name).map(|raw| whole(name, raw)).transpose()?;
    let ordering = directory.ordering(&entity.machine).unwrap_or_default();
    if !ordering.uses_versions() {
        return Ok((None, None));
    }
    let Some(version) = version else {
        let why = format!("`entityversion` is missing; `{}` is {ordering} and needs it", entity.machine);
        return Err(Reason::new("entityversion", why));
    };
    match previous {
        Some(previous) if previous >= version => {
            let why = format!("`previousversion` {previous} is not below `entityversion` {version}");
            Err(Reason::new("previousversion", why))
        }
        _ => Ok((Some(version), previous)),
    }
}

/// A whole number as R1 writes one: JSON digits, or a string of digits, without sign, fraction, exponent or leading zero.
fn whole(name: &str, raw: &str) -> Result<u64, Reason> {
    let digits = if raw.starts_with('"') { json::unescaped(name, raw)? } else { raw.into() };
    let value = if digits == "0" { Some(0) } else { depends::parse_version(&digits) };
    value.ok_or_else(|| {
        let why = format!("`{name}` is {}; it must be a whole number up to 2^64-1, in plain digits", shown(raw));
        Reason::new(name, why)
    })
}

fn timestamp(text: &str) -> Result<i64, Reason> {
    let bad = || Reason::new("time", format!("`time` is `{}`, which is not RFC 3339", shown(text)));
    let time = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| bad())?;
    i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).map_err(|_| bad())
}

/// The payload, borrowed from the envelope where it lies there as it is: large ones are copied once, into the event.
fn data<'a>(members: &Members<'a>, content_type: Option<&str>, limits: &Limits) -> Result<Cow<'a, [u8]>, Reason> {
    let data: Cow<'_, [u8]> = match (members.get("data"), members.get("data_base64")) {
        (Some(_), Some(_)) => return Err(Reason::new("data", "both `data` and `data_base64` are there")),
        (Some(raw), None) if raw.starts_with('"') && !canonical::is_json(content_type) => {
            match json::unescaped("data", raw)? {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            }
        }
        (Some(raw), None) => raw.as_bytes().into(),
        (None, Some(raw)) => {
            let text = json::unescaped("data_base64", raw)?;
            let bad = |e| Reason::new("data_base64", format!("`data_base64` cannot be decoded: {e}"));
            STANDARD.decode(text.as_bytes()).map_err(bad)?.into()
        }
        (None, None) => Cow::default(),
    };
    if data.len() > limits.data {
        let why = format!("the payload has {} bytes; the limit is {}", data.len(), limits.data);
        return Err(Reason::new("data-too-large", why));
    }
    Ok(data)
}

/// The attributes that have a field of their own in [`Event`], or none at all.
const READ: [&str; 15] = [
    "specversion",
    "id",
    "source",
    "type",
    "subject",
    "machine",
    "time",
    "datacontenttype",
    "entityversion",
    "previousversion",
    "idempotencykey",
    "dependson",
    "logicaltime",
    "data",
    "data_base64",
];
/// Attributes that are known and only carried.
const CARRIED: [&str; 4] = ["correlationid", "causationid", "traceparent", "dataschema"];

fn attributes(members: &Members<'_>) -> Result<Vec<(String, String)>, Reason> {
    let mut attributes = Vec::new();
    for name in CARRIED {
        if let Some(text) = text(members, name)? {
            attributes.push((name.to_owned(), text));
        }
    }
    let (mut count, mut bytes) = (0, 0);
    for (name, raw) in &members.0 {
        let raw = raw.get();
        if raw == "null" || READ.contains(&name.as_ref()) || CARRIED.contains(&name.as_ref()) {
            continue;
        }
        let value = match raw.as_bytes().first() {
            Some(b'{' | b'[') => {
                return Err(Reason::new("extension", format!("the extension `{}` is no scalar", shown(name))));
            }
            Some(b'"') => {
                let named = |r: Reason| Reason { code: "extension".into(), ..r };
                json::unescaped(name, raw).map_err(named)?.into_owned()
            }
            _ => raw.to_owned(),
        };
        count += 1;
        bytes += name.len() + value.len();
        if count > MAX_EXTENSIONS || bytes > MAX_EXTENSION_BYTES {
            let why = format!("at most {MAX_EXTENSIONS} extensions of {MAX_EXTENSION_BYTES} bytes together are kept");
            return Err(Reason::new("extensions", why));
        }
        attributes.push((name.clone().into_owned(), value));
    }
    Ok(attributes)
}
