//! Comparing JSON without losing a digit: numbers are compared as they are written, never as floats.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Where `got` lacks something that `expected` has; `None` where all of it is there.
///
/// An object is contained in one that has at least its members; arrays have the same length and contain each other's
/// elements in order; anything else is equal.
pub(crate) fn missing(expected: &RawValue, got: &[u8]) -> Option<Difference> {
    let Ok(got) = serde_json::from_slice::<&RawValue>(got) else {
        return Some(Difference::at("", expected.get(), &String::from_utf8_lossy(got)));
    };
    compare("", expected, got)
}

/// A place in a JSON document, with what should and what does stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Such as `.items[2].amount`; empty for the whole.
    pub(crate) path: String,
    pub(crate) expected: String,
    pub(crate) got: String,
}

impl Difference {
    fn at(path: &str, expected: &str, got: &str) -> Self {
        Self { path: path.to_owned(), expected: expected.to_owned(), got: got.to_owned() }
    }
}

type Object<'a> = BTreeMap<String, &'a RawValue>;

fn compare(path: &str, expected: &RawValue, got: &RawValue) -> Option<Difference> {
    let (want, have) = (expected.get(), got.get());
    let differ = || Some(Difference::at(path, want, have));
    match want.as_bytes().first() {
        Some(b'{') => {
            let (Ok(want), Ok(have)) = (serde_json::from_str::<Object>(want), serde_json::from_str::<Object>(have))
            else {
                return differ();
            };
            want.iter().find_map(|(name, want)| {
                let path = format!("{path}.{name}");
                match have.get(name) {
                    Some(have) => compare(&path, want, have),
                    None => Some(Difference::at(&path, want.get(), "nothing")),
                }
            })
        }
        Some(b'[') => {
            let parse = |text| serde_json::from_str::<Vec<&RawValue>>(text);
            let (Ok(want), Ok(have)) = (parse(want), parse(have)) else {
                return differ();
            };
            if want.len() != have.len() {
                return differ();
            }
            want.iter().zip(have).enumerate().find_map(|(i, (want, have))| compare(&format!("{path}[{i}]"), want, have))
        }
        Some(b'"') => {
            let parse = |text| serde_json::from_str::<String>(text).ok();
            if parse(want).is_some() && parse(want) == parse(have) { None } else { differ() }
        }
        _ => {
            if want == have {
                None
            } else {
                differ()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, got: &str, at: Option<&str>) {
        let raw = RawValue::from_string(expected.to_owned()).expect("JSON");
        assert_eq!(missing(&raw, got.as_bytes()).map(|d| d.path).as_deref(), at, "{expected} in {got}");
    }

    #[test]
    fn a_subset_is_enough_and_digits_count() {
        check(r#"{"a":1}"#, r#"{ "b": 2, "a": 1 }"#, None);
        check(r#"{"a":{"b":[1,{"c":"é"}]}}"#, r#"{"a":{"b":[1,{"c":"\u00e9","d":0}]}}"#, None);
        check("92242727567802499063", "92242727567802499063", None);
        check(r#"{"a":92242727567802499063}"#, r#"{"a":92242727567802499064}"#, Some(".a"));
        check(r#"{"a":1}"#, r#"{"a":"1"}"#, Some(".a"));
        check(r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, Some(".a"));
        check(r#"{"a":[1,{"b":2}]}"#, r#"{"a":[1,{"b":3}]}"#, Some(".a[1].b"));
        check(r#"{"a":null}"#, "{}", Some(".a"));
        check("{}", "not json", Some(""));
    }
}
