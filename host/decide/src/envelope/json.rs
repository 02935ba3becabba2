//! The envelope as a list of members whose values are exact slices of the source.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::rules::Reason;

/// The deepest nesting that is read; the envelope's own object is level 1.
pub const MAX_DEPTH: usize = 128;

/// The members of an envelope, in order of appearance.
pub(super) struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

/// Reads an envelope's object. A repeated member is refused, written plainly or with escapes: readers disagree on which
/// one counts, and an event must not mean two things.
pub(super) fn members(bytes: &[u8]) -> Result<Members<'_>, Reason> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Reason::new("empty", "the line is blank"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Reason::new("utf-8", format!("the envelope is not UTF-8 from byte {}", e.valid_up_to())))?;
    // Raw values are skipped without a limit of their own, so depth is looked at first.
    if depth(bytes) > MAX_DEPTH {
        return Err(Reason::new("too-deep", format!("the envelope nests deeper than {MAX_DEPTH} levels")));
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_any(MembersVisitor).map_err(not_json)?;
    reader.end().map_err(not_json)?;
    let mut names: Vec<&str> = members.0.iter().map(|(name, _)| name.as_ref()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            Err(Reason::new("repeated-member", format!("the member `{}` is there twice", super::shown(pair[0]))))
        }
        None => Ok(members),
    }
}

fn not_json(error: serde_json::Error) -> Reason {
    Reason::new("json", format!("the envelope is not a JSON object: {error}"))
}

/// The deepest nesting of brackets outside strings. Text that is no JSON gets some number, and is refused by the parser.
pub fn depth(bytes: &[u8]) -> usize {
    let (mut now, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for &byte in bytes {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(12);
        while let Some(name) = map.next_key::<Name<'de>>()? {
            members.push((name.0, map.next_value::<&'de RawValue>()?));
            if members.len() > 1024 {
                return Err(A::Error::custom("it has more than 1024 members"));
            }
        }
        Ok(Members(members))
    }
}

/// A member's name, borrowed where it holds no escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

impl<'a> Members<'a> {
    /// A member's exact text; JSON null means absent (R1).
    pub fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.get()).filter(|v| *v != "null")
    }

    /// A member that must be a JSON string, unescaped.
    pub fn string(&self, name: &str) -> Result<Option<Cow<'a, str>>, Reason> {
        self.get(name).map(|raw| unescaped(name, raw)).transpose()
    }
}

/// The text of a JSON string.
pub(super) fn unescaped<'a>(name: &str, raw: &'a str) -> Result<Cow<'a, str>, Reason> {
    if !raw.starts_with('"') {
        return Err(Reason::new(name, format!("`{}` must be a string, not {}", super::shown(name), super::shown(raw))));
    }
    serde_json::from_str::<Name<'a>>(raw)
        .map(|name| name.0)
        .map_err(|e| Reason::new(name, format!("`{}` is no readable string: {e}", super::shown(name))))
}
