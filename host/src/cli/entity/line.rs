//! The exchange format of `entity import` and `entity reconcile`: one JSON object a line.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seqgate_decide::decide::Import;
use seqgate_decide::ids::EntityId;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::context::Site;
use crate::cli::failure::{failed, usage};
use crate::cli::show;

/// The longest line: data, written as base64, and the rest.
const LONGEST: u64 = 4 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    machine: Option<String>,
    key: Option<String>,
    key_hex: Option<String>,
    version: Number,
    state: String,
    schema: u32,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    data_base64: Option<String>,
    #[serde(default)]
    seen: BTreeSet<String>,
    entered: Option<i64>,
    #[serde(default)]
    timers: BTreeMap<String, i64>,
}

/// A version: a JSON integer, or a string of digits.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Plain(u64),
    Text(String),
}

/// Reads one line.
pub fn parse(text: &str, machine: Option<&str>) -> Result<Import, String> {
    let line: Line<'_> = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let machine = line.machine.as_deref().or(machine);
    let machine = machine.ok_or("it names no machine; add `machine`, or use --machine")?;
    let key = match (line.key, line.key_hex) {
        (Some(key), None) => key.into_bytes(),
        (None, Some(hex)) => show::unhex(&hex).ok_or("`key_hex` is no even number of hexadecimal digits")?,
        _ => return Err("it must have `key` or `key_hex`".into()),
    };
    let version = match line.version {
        Number::Plain(version) => version,
        Number::Text(digits) => {
            let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
            let number = digits.parse().ok().filter(|_| plain);
            number.ok_or_else(|| format!("`version` is `{digits}`, which is no version"))?
        }
    };
    let data: Arc<[u8]> = match (line.data, line.data_base64) {
        (Some(_), Some(_)) => return Err("it has both `data` and `data_base64`".into()),
        (Some(json), None) => json.get().as_bytes().into(),
        (None, Some(text)) => STANDARD.decode(text).map_err(|e| format!("`data_base64`: {e}"))?.into(),
        (None, None) => Arc::from([]),
    };
    Ok(Import {
        entity: EntityId::new(machine, key),
        version,
        state: line.state,
        schema: line.schema,
        data,
        seen: line.seen.into_iter().map(Into::into).collect(),
        entered: line.entered,
        timers: line.timers.into_iter().map(|(name, due)| (name.into(), due)).collect(),
    })
}

/// A file's lines, read in chunks.
pub struct Lines {
    reader: Box<dyn BufRead + Send>,
    machine: Option<String>,
    number: u64,
}

/// One of them, or why it cannot be read.
pub type Read1 = (u64, Result<Import, String>);

impl Lines {
    /// Opens it; `-` is standard input.
    pub fn open(site: &Site, file: &Path, machine: Option<String>) -> anyhow::Result<Self> {
        if let Some(machine) = &machine {
            site.machine(machine)?;
        }
        let reader: Box<dyn BufRead + Send> = if file.as_os_str() == "-" {
            Box::new(BufReader::new(std::io::stdin()))
        } else {
            let opened = std::fs::File::open(file);
            let opened = opened.map_err(|e| usage("no-file", format!("cannot read {}: {e}", file.display())))?;
            Box::new(BufReader::with_capacity(1 << 18, opened))
        };
        Ok(Self { reader, machine, number: 0 })
    }

    /// The next lines, at most `most`; none at the end. Blank ones are passed by.
    pub fn chunk(&mut self, most: usize) -> anyhow::Result<Vec<Read1>> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        while found.len() < most {
            bytes.clear();
            let read = self.reader.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
            let read =
                read.map_err(|e| failed("no-file", format!("cannot read on after line {}: {e}", self.number)))?;
            if read == 0 {
                break;
            }
            self.number += 1;
            if read as u64 == LONGEST && bytes.last() != Some(&b'\n') {
                return Err(failed("line", format!("line {} is longer than {LONGEST} bytes", self.number)));
            }
            let text = bytes.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let text = std::str::from_utf8(text).map_err(|e| e.to_string());
            found.push((self.number, text.and_then(|text| parse(text, self.machine.as_deref()))));
        }
        Ok(found)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::parse;

    #[test]
    fn data_keeps_its_bytes_and_versions_their_digits() {
        let text = r#"{"key":"a","version":"18446744073709551615","state":"paid","schema":1,"data":{"n": 1.10}}"#;
        let import = parse(text, Some("orders")).unwrap();
        assert_eq!((import.version, &*import.data), (u64::MAX, br#"{"n": 1.10}"#.as_slice()));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_reason() {
        let cases = [
            (r#"{"key":"a","version":1,"state":"s","schema":1}"#, "names no machine"),
            (r#"{"machine":"m","version":1,"state":"s","schema":1}"#, "`key` or `key_hex`"),
            (r#"{"machine":"m","key":"a","version":"01","state":"s","schema":1}"#, "no version"),
            (r#"{"machine":"m","key":"a","key":"b","version":1,"state":"s","schema":1}"#, "duplicate field"),
            (r#"{"machine":"m","key":"a","version":1,"state":"s","schema":1,"extra":1}"#, "unknown field"),
            (r#"{"machine":"m","key":"a","version":-1,"state":"s","schema":1}"#, "did not match"),
        ];
        for (text, why) in cases {
            let error = parse(text, None).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
