//! The configuration as the parts of the host use it: checked, with defaults, in units.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use seqgate_decide::envelope::depends::is_machine_name;
use seqgate_decide::setup::{Policies, Setup};

use super::raw::{Raw, RawEarly, RawKind, RawLimits, RawMachine, RawRetention, RawSource};
use super::units;

/// How long an early event waits at most, by default.
const EARLY_AFTER: Duration = Duration::from_secs(3600);
/// The most events of one transaction, by default.
const BATCH: u32 = 512;
/// How long a stop may take, by default.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// How long an embedded log keeps what is decided, by default.
const LOG_RETENTION: Duration = Duration::from_secs(3600);
/// How much it holds at most, by default.
const LOG_SIZE: u64 = 1 << 30;
/// The least that it may be allowed.
const LEAST_LOG: u64 = 1 << 20;
/// The most partitions of a source.
const MOST_PARTITIONS: u32 = 1024;

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Config {
    /// The database.
    pub store_url: String,
    /// The machines, by name.
    pub machines: Vec<MachineConfig>,
    /// The sources, by name.
    pub sources: Vec<SourceConfig>,
    /// The most events of one transaction.
    pub batch: usize,
    /// How long a stop may take.
    pub stop_within: Duration,
    /// The largest payload, in bytes.
    pub data_limit: usize,
    /// Where `run` listens for HTTP.
    pub http: Option<SocketAddr>,
}

impl Config {
    /// A machine by its name.
    pub fn machine(&self, name: &str) -> Option<&MachineConfig> {
        self.machines.iter().find(|m| &*m.setup.name == name)
    }
}

/// A machine.
#[derive(Clone, Debug)]
pub struct MachineConfig {
    /// What decisions depend on.
    pub setup: Arc<Setup>,
    /// The component that is activated when the machine has none yet.
    pub rules: Option<PathBuf>,
    /// What one call of the rules may use.
    pub limits: LimitsConfig,
    /// More than one source may feed it, although its events carry no versions (R4).
    pub many_sources: bool,
    /// How long its rows are kept.
    pub retention: RetentionConfig,
}

/// How long rows are kept (R2, R8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Revisions, at least.
    pub history: Duration,
    /// Events' ids.
    pub inbox: Duration,
    /// Idempotency keys of entities in terminal states.
    pub intents: Duration,
}

const DAY: Duration = Duration::from_secs(86_400);

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { history: DAY * 90, inbox: DAY * 90, intents: DAY * 400 }
    }
}

/// What one call of a machine's rules may use, within the ranges that [`MOST`] ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsConfig {
    /// Fuel.
    pub fuel: u64,
    /// Linear memory of one instance, in bytes.
    pub memory: u64,
    /// Wall clock.
    pub time: Duration,
    /// Elements of all tables of one instance.
    pub tables: u64,
    /// Bytes of one answer.
    pub result: u64,
}

impl Default for LimitsConfig {
    /// The limits where the file says nothing.
    fn default() -> Self {
        Self { fuel: 50_000_000, memory: 16 << 20, time: Duration::from_millis(100), tables: 10_000, result: 4 << 20 }
    }
}

/// The highest limits. Beyond them one call could hold its partition for minutes, or take what others need.
pub const MOST: LimitsConfig = LimitsConfig {
    fuel: 100_000_000_000,
    memory: 4 << 30,
    time: Duration::from_secs(60),
    tables: 100_000,
    result: 64 << 20,
};

/// A source.
#[derive(Clone, Debug)]
pub enum SourceConfig {
    /// A file, or standard input.
    Jsonl(JsonlConfig),
    /// The host's own log.
    Embedded(EmbeddedConfig),
}

impl SourceConfig {
    /// The source's name.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Jsonl(jsonl) => &jsonl.name,
            Self::Embedded(embedded) => &embedded.name,
        }
    }

    /// The machine it is configured for, where it is.
    pub fn machine(&self) -> Option<&Arc<str>> {
        match self {
            Self::Jsonl(jsonl) => jsonl.machine.as_ref(),
            Self::Embedded(embedded) => embedded.machine.as_ref(),
        }
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> u32 {
        match self {
            Self::Jsonl(jsonl) => jsonl.partitions,
            Self::Embedded(embedded) => embedded.partitions,
        }
    }

    /// The word of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Jsonl(_) => "jsonl",
            Self::Embedded(_) => "embedded",
        }
    }

    /// Where it reads from, for people; the host's own log has no place of its own.
    pub fn place(&self) -> Option<String> {
        match self {
            Self::Jsonl(JsonlConfig { path: Some(path), .. }) => Some(path.display().to_string()),
            Self::Jsonl(_) => Some("-".to_owned()),
            Self::Embedded(_) => None,
        }
    }
}

/// The log that `POST /v1/events` and `seqgate ingest` fill.
#[derive(Clone, Debug)]
pub struct EmbeddedConfig {
    /// The source's name.
    pub name: Arc<str>,
    /// The machine, where events need not name theirs.
    pub machine: Option<Arc<str>>,
    /// How many partitions.
    pub partitions: u32,
    /// How long what is decided stays, where there is room.
    pub retention: Duration,
    /// The most bytes that it holds.
    pub max_size: u64,
}

/// A file with an event a line.
#[derive(Clone, Debug)]
pub struct JsonlConfig {
    /// The source's name.
    pub name: Arc<str>,
    /// The file; `None` is standard input.
    pub path: Option<PathBuf>,
    /// The machine, where events need not name theirs.
    pub machine: Option<Arc<str>>,
    /// How many partitions.
    pub partitions: u32,
}

pub(super) fn check(raw: Raw, folder: &Path) -> Result<Config, String> {
    let kept = retention("retention", &raw.retention, RetentionConfig::default())?;
    let machines = raw.machine.into_iter().map(|m| machine(m, folder, kept)).collect::<Result<Vec<_>, _>>()?;
    unique("machine", machines.iter().map(|m| &*m.setup.name))?;
    if machines.is_empty() {
        return Err("there is no `[[machine]]`; add one with `name` and `rules`".into());
    }
    let names: Vec<&str> = machines.iter().map(|m| &*m.setup.name).collect();
    let sources = raw.source.into_iter().map(|s| source(s, folder, &names)).collect::<Result<Vec<_>, _>>()?;
    unique("source", sources.iter().map(|s| &**s.name()))?;
    Ok(Config {
        store_url: store_url(&raw.store.url, folder)?,
        batch: at_least_one("run.batch", raw.run.batch.unwrap_or(BATCH))? as usize,
        stop_within: in_unit("run.stop_within", raw.run.stop_within.as_deref(), units::duration)?
            .unwrap_or(STOP_WITHIN),
        data_limit: in_unit("run.data_limit", raw.run.data_limit.as_deref(), units::size)?.unwrap_or(1 << 20) as usize,
        http: raw.http.map(|http| listen(&http.listen)).transpose()?,
        machines,
        sources,
    })
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "http.listen is `{text}`; write an address and a port, as 127.0.0.1:8080, or port 0 for any that is free"
        )
    })
}

/// Machines without versions that more than one source can feed, undeclared: the order between sources would decide (R4).
pub fn fed_by_many(config: &Config) -> Vec<Arc<str>> {
    let feeds = |name: &Arc<str>| config.sources.iter().filter(|s| s.machine().is_none_or(|m| m == name)).count();
    let undeclared = config.machines.iter().filter(|m| !m.many_sources && !m.setup.ordering.uses_versions());
    undeclared.map(|m| m.setup.name.clone()).filter(|name| feeds(name) > 1).collect()
}

fn machine(raw: RawMachine, folder: &Path, kept: RetentionConfig) -> Result<MachineConfig, String> {
    let at = |key: &str| format!("machine.{}.{key}", raw.name);
    if !is_machine_name(&raw.name) {
        return Err(format!("`{}` is no machine's name: lower-case letters, digits and `-`, from a letter", raw.name));
    }
    if let Some(gap) = &raw.gap {
        in_unit(&at("gap.repair_after"), gap.repair_after.as_deref(), units::duration)?;
        in_unit(&at("gap.escalate_after"), gap.escalate_after.as_deref(), units::duration)?;
    }
    let early_after = in_unit(&at("early_after"), raw.early_after.as_deref(), units::duration)?;
    let waits = raw.on_early == Some(RawEarly::Wait);
    if waits && raw.ordering.uses_versions() {
        let ordering = raw.ordering;
        return Err(format!("{} is for causal and arrival machines; this one is {ordering}", at("on_early")));
    }
    if early_after.is_some() && !waits {
        return Err(format!("{} needs on_early = \"wait\"", at("early_after")));
    }
    let setup = Setup {
        name: raw.name.as_str().into(),
        ordering: raw.ordering,
        policies: Policies {
            illegal: raw.on_illegal.unwrap_or_default(),
            malformed: raw.on_malformed.unwrap_or_default(),
            fault: raw.on_fault.unwrap_or_default(),
            unknown: raw.on_unknown,
        },
        ignore: raw.ignore.iter().map(|i| i.as_str().into()).collect(),
        early_after: waits.then(|| early_after.unwrap_or(EARLY_AFTER).as_millis() as u64),
    };
    Ok(MachineConfig {
        setup: Arc::new(setup),
        rules: raw.rules.as_ref().map(|p| folder.join(p)),
        limits: limits(&raw.limits, at)?,
        many_sources: raw.many_sources,
        retention: retention(&at("retention"), &raw.retention, kept)?,
    })
}

/// What is set, over `base`.
fn retention(at: &str, raw: &RawRetention, base: RetentionConfig) -> Result<RetentionConfig, String> {
    let one = |key: &str, text: Option<&str>, base| {
        Ok::<_, String>(in_unit(&format!("{at}.{key}"), text, units::duration)?.unwrap_or(base))
    };
    Ok(RetentionConfig {
        history: one("history", raw.history.as_deref(), base.history)?,
        inbox: one("inbox", raw.inbox.as_deref(), base.inbox)?,
        intents: one("intents", raw.intents.as_deref(), base.intents)?,
    })
}

fn limits(raw: &RawLimits, at: impl Fn(&str) -> String) -> Result<LimitsConfig, String> {
    let or = LimitsConfig::default();
    let count = |key: &str, value: Option<u64>, default, least, most| {
        within(&at(key), value.unwrap_or(default), least, most, &u64::to_string)
    };
    let size = |key: &str, text: &Option<String>, default, least, most| {
        let value = in_unit(&at(key), text.as_deref(), units::size)?.unwrap_or(default);
        within(&at(key), value, least, most, &units::bytes)
    };
    let time = in_unit(&at("limits.time"), raw.time.as_deref(), units::duration)?.unwrap_or(or.time);
    let millis = Duration::from_millis;
    Ok(LimitsConfig {
        fuel: count("limits.fuel", raw.fuel, or.fuel, 1, MOST.fuel)?,
        memory: size("limits.memory", &raw.memory, or.memory, 64 << 10, MOST.memory)?,
        time: within(&at("limits.time"), time, millis(1), MOST.time, &|time| format!("{}ms", time.as_millis()))?,
        tables: count("limits.tables", raw.tables, or.tables, 0, MOST.tables)?,
        result: size("limits.result", &raw.result, or.result, 4 << 10, MOST.result)?,
    })
}

fn within<T: PartialOrd>(key: &str, value: T, least: T, most: T, show: &dyn Fn(&T) -> String) -> Result<T, String> {
    if (&least..=&most).contains(&&value) {
        return Ok(value);
    }
    Err(format!("{key} is {}; it must be {} to {}", show(&value), show(&least), show(&most)))
}

fn source(raw: RawSource, folder: &Path, machines: &[&str]) -> Result<SourceConfig, String> {
    let at = |key: &str| format!("source.{}.{key}", raw.name);
    if raw.name.is_empty() || raw.name.contains([':', '/', '@']) || raw.name.chars().any(char::is_control) {
        return Err(format!("`{}` is no source's name: no `:`, `/`, `@` or controls", raw.name));
    }
    if let Some(machine) = &raw.machine
        && !machines.contains(&machine.as_str())
    {
        let hint = super::raw::nearest(machine, machines).map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
        return Err(format!("{}: no machine `{machine}` is configured{hint}", at("machine")));
    }
    if raw.kind == RawKind::Kafka {
        return Err(format!("{}: this version reads `jsonl` and `embedded`", at("kind")));
    }
    if raw.topics.is_some() || raw.properties.is_some() {
        return Err(format!("{}: `topics` and `properties` are for kafka", at("kind")));
    }
    let partitions = at_least_one(&at("partitions"), raw.partitions.unwrap_or(4))?;
    if partitions > MOST_PARTITIONS {
        return Err(format!("{} is {partitions}; at most {MOST_PARTITIONS}", at("partitions")));
    }
    let (name, machine) = (raw.name.as_str().into(), raw.machine.as_deref().map(Into::into));
    if raw.kind == RawKind::Embedded {
        if raw.path.is_some() {
            return Err(format!("{}: an embedded source has no file; its log is in the store", at("path")));
        }
        let retention = in_unit(&at("retention"), raw.retention.as_deref(), units::duration)?;
        let max_size = in_unit(&at("max_size"), raw.max_size.as_deref(), units::size)?.unwrap_or(LOG_SIZE);
        if max_size < LEAST_LOG {
            return Err(format!("{} is {max_size} bytes; at least 1MiB", at("max_size")));
        }
        let retention = retention.unwrap_or(LOG_RETENTION);
        return Ok(SourceConfig::Embedded(EmbeddedConfig { name, machine, partitions, retention, max_size }));
    }
    if raw.retention.is_some() || raw.max_size.is_some() {
        return Err(format!("{}: `retention` and `max_size` are for embedded", at("kind")));
    }
    let path = raw.path.as_deref().ok_or_else(|| format!("{} is missing; name a file, or `-`", at("path")))?;
    let path = (path != "-").then(|| folder.join(path));
    Ok(SourceConfig::Jsonl(JsonlConfig { name, path, machine, partitions }))
}

fn store_url(url: &str, folder: &Path) -> Result<String, String> {
    let Some(path) = url.strip_prefix("sqlite:") else {
        return Err(format!("store.url is `{url}`; this version stores in sqlite:FILE only"));
    };
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err("store.url names no file; write sqlite:seqgate.db".into());
    }
    Ok(format!("sqlite:{}", folder.join(path).display()))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("two {what}s are named `{name}`"));
        }
    }
    Ok(())
}

fn at_least_one(key: &str, value: u32) -> Result<u32, String> {
    if value == 0 { Err(format!("{key} is 0; it must be at least 1")) } else { Ok(value) }
}

fn in_unit<T>(key: &str, text: Option<&str>, read: fn(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    text.map(read).transpose().map_err(|why| format!("{key}: {why}"))
}
