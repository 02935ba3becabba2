//! The configuration file as it is written. Unknown keys are errors.

use serde::Deserialize;

use seqgate_decide::setup::{Ordering, Policy};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// `[store]`
    pub store: RawStore,
    /// `[[machine]]`
    #[serde(default)]
    pub machine: Vec<RawMachine>,
    /// `[[source]]`
    #[serde(default)]
    pub source: Vec<RawSource>,
    /// `[run]`
    #[serde(default)]
    pub run: RawRun,
    /// `[retention]`
    #[serde(default)]
    pub retention: RawRetention,
    /// `[http]`
    pub http: Option<RawHttp>,
}

/// `[http]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawHttp {
    /// Where to listen: `127.0.0.1:8080`.
    pub listen: String,
}

/// `[store]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawStore {
    /// `sqlite:FILE`
    pub url: String,
}

/// `[run]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRun {
    /// The most events of one transaction.
    pub batch: Option<u32>,
    /// How long a stop may take.
    pub stop_within: Option<String>,
    /// The largest payload.
    pub data_limit: Option<String>,
}

/// `[retention]`, and `retention = { … }` of a machine
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawRetention {
    /// How long revisions are kept.
    pub history: Option<String>,
    /// How long events' ids are kept.
    pub inbox: Option<String>,
    /// How long idempotency keys are kept.
    pub intents: Option<String>,
}

/// `[[machine]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawMachine {
    /// The machine's name.
    pub name: String,
    /// Its component, activated when it has none yet.
    pub rules: Option<String>,
    /// What orders its events.
    #[serde(default)]
    pub ordering: Ordering,
    /// Policy for what the rules refuse.
    pub on_illegal: Option<Policy>,
    /// Policy for what cannot be understood.
    pub on_malformed: Option<Policy>,
    /// Policy for faults.
    pub on_fault: Option<Policy>,
    /// Policy for types in no edge.
    pub on_unknown: Option<Policy>,
    /// What to do with events whose type has no edge from here yet.
    pub on_early: Option<RawEarly>,
    /// How long an early event waits at most.
    pub early_after: Option<String>,
    /// Types that consume their version and change nothing.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// Deadlines of gaps.
    pub gap: Option<RawGap>,
    /// Limits of one call of the rules.
    #[serde(default)]
    pub limits: RawLimits,
    /// What differs from `[retention]`.
    #[serde(default)]
    pub retention: RawRetention,
    /// More than one source may feed it, although its events carry no versions.
    #[serde(default)]
    pub many_sources: bool,
}

/// `on_early`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RawEarly {
    /// The rules decide at once.
    Refuse,
    /// It waits for the state that it fits.
    Wait,
}

/// `gap = { … }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGap {
    /// When repair begins.
    pub repair_after: Option<String>,
    /// When a person is called.
    pub escalate_after: Option<String>,
}

/// `limits = { … }`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLimits {
    /// Fuel of one call.
    pub fuel: Option<u64>,
    /// Linear memory of one instance.
    pub memory: Option<String>,
    /// Time of one call.
    pub time: Option<String>,
    /// Elements of all tables of one instance.
    pub tables: Option<u64>,
    /// Bytes of one answer.
    pub result: Option<String>,
}

/// `[[source]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSource {
    /// The source's name.
    pub name: String,
    /// `jsonl` or `embedded`
    pub kind: RawKind,
    /// The file, or `-` for standard input.
    pub path: Option<String>,
    /// The machine, where events need not name theirs.
    pub machine: Option<String>,
    /// How many partitions.
    pub partitions: Option<u32>,
    /// How long the embedded log keeps what is decided.
    pub retention: Option<String>,
    /// How much the embedded log may hold.
    pub max_size: Option<String>,
    /// Kafka's topics.
    pub topics: Option<Vec<String>>,
    /// librdkafka's properties.
    pub properties: Option<toml::Table>,
}

/// `kind`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum RawKind {
    /// A file with an event a line.
    Jsonl,
    /// The HTTP ingest's log.
    Embedded,
    /// A Kafka topic.
    Kafka,
}

/// Adds the nearest known name to serde's message about an unknown one.
pub(super) fn with_nearest_name(message: &str) -> String {
    let quoted: Vec<&str> = message
        .split_once("unknown field ")
        .or_else(|| message.split_once("unknown variant "))
        .map(|(_, rest)| rest.split('`').skip(1).step_by(2).collect())
        .unwrap_or_default();
    let Some((unknown, known)) = quoted.split_first() else { return message.to_owned() };
    match nearest(unknown, known) {
        Some(name) => format!("{}; did you mean `{name}`?", message.trim_end()),
        None => message.to_owned(),
    }
}

/// The closest of some names, if it is close at all.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let best = known.iter().map(|k| (distance(name, k), *k)).min()?;
    (best.0 <= name.len().max(3) / 2).then_some(best.1)
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
