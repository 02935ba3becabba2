//! The file format.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::Dependency;
use crate::times::{DEFAULT_START, parse_instant, parse_length};

/// A story about one entity.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "StoryFile")]
pub struct Story {
    /// Where it was read from; empty for one that was parsed from a text.
    pub file: PathBuf,
    /// One sentence: what it shows.
    pub title: String,
    /// The entity's key; `story` where the file names none.
    pub key: String,
    /// Where the clock stands at first (`start`), in milliseconds since the epoch; 2026-01-01T00:00:00Z by default.
    pub start: i64,
    /// How the entity stands at first; it does not exist yet where the file does not say.
    pub given: Option<Given>,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// How an entity stands when a story begins, as `seqgate entity show --json` says it. Its data has the layout of the
/// rules that are told the story.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "GivenFile")]
pub struct Given {
    /// The state.
    pub state: String,
    /// `data`, any JSON, byte for byte as the file has it.
    pub data: Vec<u8>,
    /// The version; 1 by default.
    pub version: u64,
    /// The revision; the version by default.
    pub revision: u64,
    /// Since when it is in its state (RFC 3339), in milliseconds since the epoch; the story's start by default.
    pub entered: Option<i64>,
    /// Pending timers: an object of names with due times (RFC 3339).
    pub timers: BTreeMap<String, i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenFile {
    state: String,
    data: Box<RawValue>,
    version: Option<u64>,
    revision: Option<u64>,
    entered: Option<Instant>,
    #[serde(default)]
    timers: BTreeMap<String, Instant>,
}

impl From<GivenFile> for Given {
    fn from(file: GivenFile) -> Self {
        let version = file.version.unwrap_or(1);
        Self {
            state: file.state,
            data: file.data.get().as_bytes().to_vec(),
            version,
            revision: file.revision.unwrap_or(version),
            entered: file.entered.map(|at| at.0),
            timers: file.timers.into_iter().map(|(name, due)| (name, due.0)).collect(),
        }
    }
}

/// One thing that happens to the entity. Exactly one of `event`, `timer` and `compensate` names it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "StepFile")]
pub struct Step {
    /// `event`: the type of an event. `timer`: the name of a pending timer that comes due; its time is its due time.
    /// `compensate`: the type of an event that the rules must refuse, and whose refusal is then compensated.
    pub what: What,
    /// The payload: `data`, any JSON but null, byte for byte as the file has it; or `text`, as the bytes of a string.
    /// Empty where neither is given.
    pub data: Payload,
    /// `at`: an RFC 3339 time; or `after`: a length of time since the step before, such as `30m`. Where neither is
    /// given, the clock stands still.
    pub clock: Option<Clock>,
    /// The event's id; `step-N` by default.
    pub id: Option<String>,
    /// Its source; `/scenario` by default. Derived ids depend on it.
    pub source: Option<String>,
    /// `idempotency_key`.
    pub idempotency_key: Option<String>,
    /// `correlation_id`.
    pub correlation_id: Option<String>,
    /// The event's version; by default one more than the entity's.
    pub version: Option<u64>,
    /// Extension attributes, an object of strings.
    pub attributes: BTreeMap<String, String>,
    /// Dependencies that are met now, written `machine/key@version`.
    pub met: Vec<Dependency>,
    /// What must come of it. Without `expect` the step must be applied.
    pub expect: Expect,
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// An event of this type.
    Event(String),
    /// A pending timer of this name comes due.
    Timer(String),
    /// An event of this type is refused, and compensated.
    Compensate(String),
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Event(kind) => write!(f, "event {kind}"),
            Self::Timer(name) => write!(f, "timer {name}"),
            Self::Compensate(kind) => write!(f, "compensation of {kind}"),
        }
    }
}

/// How a step moves the story's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// To this time, in milliseconds since the epoch.
    At(i64),
    /// By this many milliseconds.
    After(u64),
}

/// The bytes of a payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their media type: `application/json` for `data`, `text/plain` for `text`, none where there is no payload.
    pub content_type: Option<&'static str>,
}

/// What must come of a step. At most one of `illegal`, `malformed`, `waiting` and `fault` is given; where none is, the
/// step must be applied, and everything else that is given must hold afterwards.
///
/// `state`, `data` and `timers` may be given beside a refusal too: they say what the refusal left untouched.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The entity's state.
    pub state: Option<String>,
    /// What the entity's data must contain: objects may have more members than these, numbers have exactly these digits.
    pub data: Option<Box<RawValue>>,
    /// All messages sent by this step, in order.
    pub messages: Option<Vec<ExpectedMessage>>,
    /// All pending timers: a list of names, or an object of names with due times (RFC 3339).
    pub timers: Option<Timers>,
    /// Texts of which the step's notes contain one each, in order.
    pub notes: Option<Vec<String>>,
    /// The code of an illegal event.
    pub illegal: Option<String>,
    /// The code of a malformed event.
    pub malformed: Option<String>,
    /// All dependencies waited for, written `machine/key@version`.
    pub waiting: Option<Vec<DependencyText>>,
    /// `true`: the rules give no answer (a panic, a trap).
    #[serde(default)]
    pub fault: bool,
    /// Of a `compensate` step: the code with which the event was refused before.
    pub refused: Option<String>,
}

/// A message that must be sent. Members that are not given are not compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedMessage {
    /// The topic.
    pub topic: String,
    /// The CloudEvents type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The key, where it is not the entity's own.
    pub key: Option<String>,
    /// What its payload must contain, as for an entity's data.
    pub data: Option<Box<RawValue>>,
    /// Attributes that it must have.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}

/// The timers that must be pending.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Timers {
    /// Their names.
    Names(BTreeSet<String>),
    /// Their names and due times.
    Due(BTreeMap<String, String>),
}

/// `machine/key@version`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct DependencyText(pub Dependency);

impl TryFrom<String> for DependencyText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parse = || {
            let (entity, version) = text.rsplit_once('@')?;
            let (machine, key) = entity.split_once('/')?;
            Some(Dependency { machine: machine.into(), key: key.into(), version: version.parse().ok()? })
        };
        parse().map(Self).ok_or_else(|| format!("`{text}` is no dependency such as orders/1024@3"))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoryFile {
    title: String,
    key: Option<String>,
    start: Option<Instant>,
    given: Option<Given>,
    steps: Vec<Step>,
}

/// RFC 3339, read where it stands, so that an error has its line.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Instant(i64);

impl TryFrom<String> for Instant {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_instant(&text).map(Self)
    }
}

impl From<StoryFile> for Story {
    fn from(file: StoryFile) -> Self {
        Self {
            file: PathBuf::new(),
            title: file.title,
            key: file.key.unwrap_or_else(|| "story".to_owned()),
            start: file.start.map_or(DEFAULT_START, |start| start.0),
            given: file.given,
            steps: file.steps,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    event: Option<String>,
    timer: Option<String>,
    compensate: Option<String>,
    data: Option<Box<RawValue>>,
    text: Option<String>,
    at: Option<Instant>,
    after: Option<String>,
    id: Option<String>,
    source: Option<String>,
    idempotency_key: Option<String>,
    correlation_id: Option<String>,
    version: Option<u64>,
    #[serde(default)]
    attributes: BTreeMap<String, String>,
    #[serde(default)]
    met: Vec<DependencyText>,
    #[serde(default)]
    expect: Expect,
}

impl TryFrom<StepFile> for Step {
    type Error = String;

    fn try_from(file: StepFile) -> Result<Self, String> {
        let what = match (file.event, file.timer, file.compensate) {
            (Some(kind), None, None) => What::Event(kind),
            (None, Some(name), None) => What::Timer(name),
            (None, None, Some(kind)) => What::Compensate(kind),
            _ => return Err("a step has exactly one of `event`, `timer` and `compensate`".into()),
        };
        let data = match (file.data, file.text) {
            (Some(json), None) => {
                Payload { bytes: json.get().as_bytes().to_vec(), content_type: Some("application/json") }
            }
            (None, Some(text)) => Payload { bytes: text.into_bytes(), content_type: Some("text/plain") },
            (None, None) => Payload::default(),
            (Some(_), Some(_)) => return Err("a step has `data` or `text`, not both".into()),
        };
        let clock = match (file.at, file.after) {
            (Some(at), None) => Some(Clock::At(at.0)),
            (None, Some(after)) => Some(Clock::After(parse_length(&after)?.as_millis() as u64)),
            (None, None) => None,
            (Some(_), Some(_)) => return Err("a step has `at` or `after`, not both".into()),
        };
        if matches!(what, What::Timer(_)) && (data != Payload::default() || clock.is_some()) {
            return Err("a timer has no payload, and comes when it is due".into());
        }
        file.expect.check(&what)?;
        Ok(Self {
            what,
            data,
            clock,
            id: file.id,
            source: file.source,
            idempotency_key: file.idempotency_key,
            correlation_id: file.correlation_id,
            version: file.version,
            attributes: file.attributes,
            met: file.met.into_iter().map(|text| text.0).collect(),
            expect: file.expect,
        })
    }
}

impl Expect {
    fn check(&self, what: &What) -> Result<(), String> {
        let refusals = [self.illegal.is_some(), self.malformed.is_some(), self.waiting.is_some(), self.fault];
        let refused = refusals.iter().filter(|given| **given).count();
        if refused > 1 {
            return Err("`expect` has at most one of `illegal`, `malformed`, `waiting` and `fault`".into());
        }
        if refused == 1 && (self.messages.is_some() || self.notes.is_some()) {
            return Err("a refusal has neither `messages` nor `notes`".into());
        }
        if self.refused.is_some() && !matches!(what, What::Compensate(_)) {
            return Err("`refused` belongs to a `compensate` step".into());
        }
        if let Some(Timers::Due(timers)) = &self.timers {
            timers.values().try_for_each(|due| parse_instant(due).map(drop))?;
        }
        Ok(())
    }
}
