//! The configuration as the parts of the host use it: checked, with defaults, in units.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use seqgate_decide::envelope::depends::is_machine_name;
use seqgate_decide::setup::{Policies, Setup};

use super::raw::{Raw, RawEarly, RawKind, RawMachine, RawRetention, RawSource};
use super::units;

/// How long an early event waits at most, by default.
const EARLY_AFTER: Duration = Duration::from_secs(3600);
/// The most events of one transaction, by default.
const BATCH: u32 = 512;
/// How long a stop may take, by default.
const STOP_WITHIN: Duration = Duration::from_secs(10);
/// The most partitions of a file.
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
    /// Fuel of one call.
    pub fuel: u64,
    /// Linear memory of one instance, in bytes.
    pub memory: u64,
    /// Time of one call.
    pub time: Duration,
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

/// A source.
#[derive(Clone, Debug)]
pub enum SourceConfig {
    /// A file, or standard input.
    Jsonl(JsonlConfig),
}

impl SourceConfig {
    /// The source's name.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Jsonl(jsonl) => &jsonl.name,
        }
    }

    /// The machine it is configured for, where it is.
    pub fn machine(&self) -> Option<&Arc<str>> {
        match self {
            Self::Jsonl(jsonl) => jsonl.machine.as_ref(),
        }
    }
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
    if raw.http.is_some() {
        return Err("`[http]`: this version has no HTTP listener yet; take the section out".into());
    }
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
        machines,
        sources,
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
        fuel: raw.limits.fuel.unwrap_or(50_000_000),
        memory: in_unit(&at("limits.memory"), raw.limits.memory.as_deref(), units::size)?.unwrap_or(16 << 20),
        time: in_unit(&at("limits.time"), raw.limits.time.as_deref(), units::duration)?
            .unwrap_or(Duration::from_millis(100)),
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
    match raw.kind {
        RawKind::Jsonl => {}
        RawKind::Embedded | RawKind::Kafka => {
            return Err(format!("{}: this version reads `jsonl` only", at("kind")));
        }
    }
    if raw.topics.is_some() || raw.properties.is_some() {
        return Err(format!("{}: `topics` and `properties` are for kafka", at("kind")));
    }
    let path = raw.path.as_deref().ok_or_else(|| format!("{} is missing; name a file, or `-`", at("path")))?;
    let partitions = at_least_one(&at("partitions"), raw.partitions.unwrap_or(4))?;
    if partitions > MOST_PARTITIONS {
        return Err(format!("{} is {partitions}; at most {MOST_PARTITIONS}", at("partitions")));
    }
    Ok(SourceConfig::Jsonl(JsonlConfig {
        name: raw.name.as_str().into(),
        path: (path != "-").then(|| folder.join(path)),
        machine: raw.machine.as_deref().map(Into::into),
        partitions,
    }))
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
