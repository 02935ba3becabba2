//! `check`: whether `run` would start, without making or changing anything.

use std::fs::File;
use std::process::ExitCode;

use super::context::{Context, Site, database, wasm};
use super::failure::{FAILED, USAGE};
use super::output::{Object, plain};
use super::rules::differences;
use crate::config::checked::fed_by_many;
use crate::config::{Config, JsonlConfig, MachineConfig, SourceConfig, units};
use crate::rules::prepare::{MAX_COMPONENT, prepare};
use crate::rules::{self, Allocation, LoadedRules};
use crate::runner::RunError;
use crate::runner::engine::chain;
use crate::runner::rules::limits;
use crate::store::{self, Probe};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Ok,
    Warning,
    /// `run` would fail.
    Error,
    /// `run` would refuse the configuration.
    Configuration,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error | Self::Configuration => "error",
        }
    }
}

struct Finding {
    level: Level,
    about: String,
    message: String,
}

fn finding(level: Level, about: impl Into<String>, message: impl Into<String>) -> Finding {
    Finding { level, about: about.into(), message: message.into() }
}

/// Looks at everything, and says all of it.
pub async fn run(ctx: &Context) -> anyhow::Result<ExitCode> {
    let config = ctx.load()?;
    let mut found = vec![finding(Level::Ok, ctx.config.display().to_string(), "the configuration can be used")];
    found.extend(fed_by_many(&config).into_iter().map(|machine| {
        finding(Level::Configuration, format!("machine {machine}"), RunError::ManySources(machine.clone()).to_string())
    }));
    let (stored, site) = look_at_store(ctx, &config).await;
    found.push(stored);
    let engine = wasm(Allocation::OnDemand)?;
    for machine in &config.machines {
        let active = match &site {
            Some(site) => site.store.active(&machine.setup.name).await?.is_some(),
            None => false,
        };
        found.push(look_at_rules(&engine, machine, active));
    }
    for source in &config.sources {
        found.push(look_at_source(source, site.as_ref()).await?);
    }
    found.extend(forgets(&config));
    if let Some(site) = &site {
        found.extend(differences(ctx, site).await?.into_iter().map(|text| finding(Level::Warning, "rules", text)));
    }
    print(ctx, &found)?;
    let worst = |level| found.iter().any(|f| f.level == level);
    Ok(match (worst(Level::Configuration), worst(Level::Error)) {
        (true, _) => ExitCode::from(USAGE),
        (false, true) => ExitCode::from(FAILED),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn print(ctx: &Context, found: &[Finding]) -> anyhow::Result<()> {
    let ok = found.iter().all(|f| matches!(f.level, Level::Ok | Level::Warning));
    let one =
        |f: &Finding| Object::new().put("level", f.level.name()).put("about", &f.about).put("message", &f.message);
    let json = || Object::new().put("ok", ok).put("findings", found.iter().map(one).collect::<Vec<_>>());
    let text = || {
        let lines = found.iter().map(|f| format!("{:<8} {}: {}\n", f.level.name(), plain(&f.about), plain(&f.message)));
        lines.collect::<String>()
    };
    ctx.answer(json, text)
}

/// A database that is ready is opened, to compare it with the configuration.
async fn look_at_store(ctx: &Context, config: &Config) -> (Finding, Option<Site>) {
    let about = config.store_url.clone();
    match store::probe(&config.store_url).await {
        Ok(Probe::Ready) => match ctx.open_or_make(config.clone()).await {
            Ok(site) => (finding(Level::Ok, about, "the database is ready"), Some(site)),
            Err(error) => (finding(Level::Error, about, format!("{error:#}")), None),
        },
        Ok(Probe::Older { found, known }) => {
            let text = format!("the database has schema {found}; `{}` brings it to {known}", ctx.command("run"));
            (finding(Level::Warning, about, text), None)
        }
        Ok(Probe::Missing) => {
            (missing(ctx, config).unwrap_or_else(|e| finding(Level::Error, about, e.to_string())), None)
        }
        Err(error) => (finding(Level::Error, about, chain(&error)), None),
    }
}

fn missing(ctx: &Context, config: &Config) -> anyhow::Result<Finding> {
    let (path, about) = (database(config)?, config.store_url.clone());
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    if folder.is_some_and(|f| !f.is_dir()) {
        return Ok(finding(Level::Error, about, "its folder does not exist; make it, or change store.url"));
    }
    Ok(finding(Level::Ok, about, format!("there is no database yet; `{}` makes it", ctx.command("run"))))
}

fn look_at_rules(engine: &rules::Engine, machine: &MachineConfig, active: bool) -> Finding {
    let about = format!("machine {}", machine.setup.name);
    let Some(path) = &machine.rules else {
        return match active {
            true => finding(Level::Ok, about, "its rules are in the store"),
            false => finding(Level::Configuration, about, "no `rules` file is configured, and none are in force"),
        };
    };
    let shown = path.display();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if active => {
            let text = format!("cannot read {shown}: {error}; the rules in the store decide");
            return finding(Level::Warning, about, text);
        }
        Err(error) => {
            let text = format!("cannot read {shown}: {error}; `seqgate rules build FOLDER -o FILE` makes it");
            return finding(Level::Configuration, about, text);
        }
    };
    let refused = |error: &dyn std::error::Error| {
        finding(Level::Configuration, about.clone(), format!("{shown}: {}", chain(error)))
    };
    let loaded = match prepare(&bytes, MAX_COMPONENT) {
        Ok(prepared) => LoadedRules::load(engine, &prepared, limits(machine), None),
        Err(error) => return refused(&error),
    };
    match loaded {
        Ok(loaded) if *loaded.description().name == *machine.setup.name => {
            let text =
                format!("{shown} is {} {}, {}", machine.setup.name, loaded.description().version, loaded.digest());
            finding(Level::Ok, about, text)
        }
        Ok(loaded) => {
            let text = format!("{shown} says that it is `{}`; name that machine's file", loaded.description().name);
            finding(Level::Configuration, about, text)
        }
        Err(error) => refused(&error),
    }
}

/// Machines without versions know a repeated event by its id alone (R4.1), and a file may hold a copy at any distance.
fn forgets(config: &Config) -> Vec<Finding> {
    let mut found = Vec::new();
    for machine in config.machines.iter().filter(|m| !m.setup.ordering.uses_versions()) {
        let feeds = |s: &&SourceConfig| s.machine().is_none_or(|m| *m == machine.setup.name);
        for source in config.sources.iter().filter(feeds) {
            // An embedded log takes copies that are posted again within the writer's own retries.
            let SourceConfig::Jsonl(jsonl) = source else { continue };
            let kept = units::span(i64::try_from(machine.retention.inbox.as_millis()).unwrap_or(i64::MAX));
            let text = format!(
                "the ids of its events are kept for {kept}; a copy that {} brings later than that is decided as a new \
                 event, and a file can bring one for ever. Raise retention.inbox above what its writer repeats",
                jsonl.name
            );
            found.push(finding(Level::Warning, format!("machine {}", machine.setup.name), text));
        }
    }
    found
}

async fn look_at_source(source: &SourceConfig, site: Option<&Site>) -> anyhow::Result<Finding> {
    let about = format!("source {}", source.name());
    let usable = match source {
        SourceConfig::Embedded(_) => "filled by `POST /v1/events` and `seqgate ingest`".to_owned(),
        SourceConfig::Jsonl(JsonlConfig { path: None, .. }) => "standard input".to_owned(),
        SourceConfig::Jsonl(JsonlConfig { path: Some(path), .. }) => {
            if let Err(error) = File::open(path) {
                return Ok(finding(Level::Error, about, format!("cannot read {}: {error}", path.display())));
            }
            if path.is_dir() {
                return Ok(finding(Level::Error, about, format!("{} is a folder; name a file", path.display())));
            }
            format!("{} can be read", path.display())
        }
    };
    if let Some(site) = site {
        let partitions = site.store.partitions().await?;
        let stored = partitions.iter().filter(|p| p.source == *source.name() && p.epoch > 0).count();
        if stored > 0 && stored != source.partitions() as usize {
            let text = format!("it was set up with {stored} partitions; set `partitions` back, or name a new source");
            return Ok(finding(Level::Configuration, about, text));
        }
    }
    Ok(finding(Level::Ok, about, usable))
}
