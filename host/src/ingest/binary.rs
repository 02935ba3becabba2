//! CloudEvents in binary mode: the attributes are headers, the body is the payload. The log has one form, so they become
//! one JSON document, from which decoding gives the same attributes and the same payload.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

/// How a header that is an attribute begins.
pub const PREFIX: &str = "ce-";

/// Why the headers are no event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHeader {
    /// Its name is none of an attribute.
    #[error("header `{PREFIX}{0}`: an attribute's name has lower-case letters and digits only")]
    Name(String),
    /// It came twice.
    #[error("header `{PREFIX}{0}` came twice")]
    Repeated(String),
    /// Its value is no text.
    #[error("header `{PREFIX}{0}`: the value is no UTF-8, or has a `%` that two hexadecimal digits do not follow")]
    Value(String),
}

/// One JSON document of these headers and this body. Names come without [`PREFIX`], in lower case.
pub fn structured<'h>(
    attributes: impl Iterator<Item = (&'h str, &'h [u8])>,
    content_type: Option<&str>,
    body: &[u8],
) -> Result<Vec<u8>, BadHeader> {
    let mut document = String::with_capacity(body.len() + 512);
    let mut seen = std::collections::BTreeSet::new();
    for (name, value) in attributes {
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) {
            return Err(BadHeader::Name(name.to_owned()));
        }
        // What only a body can say.
        if matches!(name, "data" | "database64" | "datacontenttype") {
            return Err(BadHeader::Name(name.to_owned()));
        }
        if !seen.insert(name) {
            return Err(BadHeader::Repeated(name.to_owned()));
        }
        let value = percent_decoded(value).ok_or_else(|| BadHeader::Value(name.to_owned()))?;
        member(&mut document, name, &serde_json::Value::from(value).to_string());
    }
    if let Some(content_type) = content_type {
        member(&mut document, "datacontenttype", &serde_json::Value::from(content_type).to_string());
    }
    if !body.is_empty() {
        match json_slice(content_type, body) {
            Some(json) => member(&mut document, "data", json),
            None => member(&mut document, "data_base64", &format!("\"{}\"", STANDARD.encode(body))),
        }
    }
    document.push('}');
    Ok(document.into_bytes())
}

fn member(document: &mut String, name: &str, json: &str) {
    document.push(if document.is_empty() { '{' } else { ',' });
    document.push('"');
    document.push_str(name);
    document.push_str("\":");
    document.push_str(json);
}

/// The body, where it is exactly one JSON value and says so: then it can stand in the document as it is.
fn json_slice<'b>(content_type: Option<&str>, body: &'b [u8]) -> Option<&'b str> {
    let media = content_type.unwrap_or("application/json").split(';').next().unwrap_or_default().trim();
    if !(media.eq_ignore_ascii_case("application/json") || media.to_ascii_lowercase().ends_with("+json")) {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?;
    let value: &RawValue = serde_json::from_str(text).ok()?;
    // JSON null means absent, and white space around a value would be lost.
    (value.get().len() == text.len() && text != "null").then_some(text)
}

/// The CloudEvents HTTP binding percent-encodes what a header cannot hold.
fn percent_decoded(value: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |b: u8| (b as char).to_digit(16);
        bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may stop where it is wrong")]

    use super::*;

    fn text(attributes: &[(&str, &str)], content_type: Option<&str>, body: &[u8]) -> Result<String, BadHeader> {
        let attributes = attributes.iter().map(|(name, value)| (*name, value.as_bytes()));
        structured(attributes, content_type, body).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_json_body_stands_as_it_is() {
        let got = text(&[("id", "a"), ("subject", "caf%C3%A9")], Some("application/json"), br#"{"n": 1.0}"#).unwrap();
        assert_eq!(got, r#"{"id":"a","subject":"café","datacontenttype":"application/json","data":{"n": 1.0}}"#);
    }

    #[test]
    fn any_other_body_keeps_its_bytes() {
        for (content_type, body) in [
            (Some("text/plain"), &b"1"[..]),
            (Some("application/json"), b" 1"),
            (Some("application/json"), b"null"),
            (Some("application/json"), b"{"),
            (Some("application/octet-stream"), b"\xff\0"),
        ] {
            let got = text(&[("id", "a")], content_type, body).unwrap();
            let parsed: serde_json::Value = serde_json::from_str(&got).unwrap();
            let kept = STANDARD.decode(parsed["data_base64"].as_str().unwrap()).unwrap();
            assert_eq!(kept, body, "{content_type:?}");
        }
        assert_eq!(text(&[("id", "a")], None, b"").unwrap(), r#"{"id":"a"}"#);
    }

    #[test]
    fn headers_that_are_no_attributes_are_named() {
        assert_eq!(text(&[("i-d", "a")], None, b""), Err(BadHeader::Name("i-d".into())));
        assert_eq!(text(&[("data", "a")], None, b""), Err(BadHeader::Name("data".into())));
        assert_eq!(text(&[("id", "a"), ("id", "b")], None, b""), Err(BadHeader::Repeated("id".into())));
        assert_eq!(text(&[("id", "%4")], None, b""), Err(BadHeader::Value("id".into())));
        assert_eq!(text(&[("id", "%ff")], None, b""), Err(BadHeader::Value("id".into())));
    }
}
