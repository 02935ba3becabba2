//! Reading payloads.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::refusal::Refusal;

/// Reads a payload: a JSON object, or no bytes at all, which read as `{}`.
///
/// Members that `T` does not name are passed over; a member that it names and that comes twice is refused, since
/// nobody can say which of the two is meant.
///
/// # Errors
/// [`Refusal::Malformed`] with the code `bad-data` and a text that names the member, line and column.
pub fn payload<T: DeserializeOwned>(data: &[u8]) -> Result<T, Refusal> {
    let bad = |why: &dyn std::fmt::Display| Refusal::malformed("bad-data", why);
    let data = if data.is_empty() { b"{}" } else { data };
    // A derived struct would read an array too, member by member.
    let first = data.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    if first != Some(&b'{') {
        return Err(bad(&"the data is no JSON object"));
    }
    serde_json::from_slice(data).map_err(|error| bad(&error))
}

/// A member that counts where it can be read as `T`, and is passed over where it is anything else. Always with
/// `#[serde(default)]`, so that it may be absent too.
///
/// ```
/// use seqgate_guest::Loose;
///
/// #[derive(serde::Deserialize)]
/// struct Created { #[serde(default)] trial_end: Loose<String> }
///
/// let read = |json| seqgate_guest::payload::<Created>(json).map(|created| created.trial_end.0);
/// assert_eq!(read(br#"{"trial_end": "2026-12-31"}"#), Ok(Some("2026-12-31".to_owned())));
/// assert_eq!(read(br#"{"trial_end": [7]}"#), Ok(None));
/// assert_eq!(read(b""), Ok(None));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loose<T>(pub Option<T>);

impl<T> Default for Loose<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(serde_json::from_str(raw.get()).ok()))
    }
}

/// Text that is not empty, such as a currency. Compared byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// The text, unless it is empty.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("an empty text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Two {
        a: u8,
        b: Option<Text>,
    }

    fn code(data: &[u8]) -> String {
        match payload::<Two>(data) {
            Err(Refusal::Malformed(reason)) => reason.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_objects_are_payloads() {
        let one = Two { a: 1, b: None };
        assert_eq!(payload(br#" {"x": 1e999, "a": 1, "y": {"z": []}}"#), Ok(one));
        assert_eq!(payload(br#"{"a": 1, "b": "EUR"}"#), Ok(Two { a: 1, b: Text::new("EUR") }));
        for bad in ["[1, null]", "", " ", "{}", "{\"a\": 1} x", r#"{"a":1,"a":2}"#, r#"{"a":1,"b":""}"#, "\u{feff}{}"] {
            assert_eq!(code(bad.as_bytes()), "bad-data", "{bad}");
        }
    }
}
