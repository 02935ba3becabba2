//! `bench`: the program measured on this machine, with one's own rules and events, against what its store can do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use seqgate_yardstick::folder::Folder;
use seqgate_yardstick::options::{Options, Orders};
use seqgate_yardstick::program::Program;
use seqgate_yardstick::{Events, Subject, measure};

use super::context::{Context, database};
use super::failure::usage;
use super::output;
use crate::config::{Config, SourceConfig};
use crate::demo::guests;

/// Measure throughput, latency and memory with your rules and events, in a throw-away database
#[derive(Args, Debug)]
pub struct Bench {
    /// The events, one a line (default: the file of the configured source, where there is one)
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The machine of events that name none
    #[arg(long, value_name = "NAME", requires = "events")]
    machine: Option<String>,
    /// Take the orders workload and its rules instead, which are in this program; needs no configuration
    #[arg(long, conflicts_with_all = ["events", "machine"])]
    orders: bool,
    #[command(flatten)]
    options: Options,
}

impl Bench {
    /// Measures, and says what came of it.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let mut options = self.options.clone();
        let config = if self.orders { None } else { Some(ctx.load()?) };
        if let (None, Some(config)) = (&options.dir, &config) {
            // Beside the database, so that the same disk is measured.
            options.dir = database(config)?.parent().map(Path::to_owned).filter(|p| !p.as_os_str().is_empty());
        }
        let parent = options.dir.clone().unwrap_or_else(std::env::temp_dir);
        let rules = Folder::make(&parent, false)?;
        let program = Program { path: std::env::current_exe()?, arguments: Vec::new() };
        let subject = match &config {
            None => Subject {
                program,
                machines: orders(rules.path())?,
                machine: None,
                events: Events::Orders(Orders::default()),
            },
            Some(config) => {
                let (events, machine) = self.events(config)?;
                let machines = machines(ctx, config, rules.path()).await?;
                Subject { program, machines, machine, events: Events::File(events) }
            }
        };
        let say = |what: &str| {
            if !ctx.json {
                eprintln!("{what}");
            }
        };
        let report = tokio::task::block_in_place(|| measure(&subject, &options, &say))?;
        if ctx.json { output::print(serde_json::to_string(&report)?) } else { output::print(report.text()) }
    }

    fn events(&self, config: &Config) -> anyhow::Result<(PathBuf, Option<String>)> {
        if let Some(events) = &self.events {
            return Ok((std::path::absolute(events)?, self.machine.clone()));
        }
        let files = config.sources.iter().filter_map(|source| {
            let SourceConfig::Jsonl(jsonl) = source else { return None };
            let path = jsonl.path.as_ref().filter(|path| path.exists())?;
            Some((std::path::absolute(path), jsonl.machine.as_deref().map(str::to_owned)))
        });
        match files.collect::<Vec<_>>().as_slice() {
            [(Ok(path), machine)] => Ok((path.clone(), machine.clone())),
            _ => Err(usage(
                "no-events",
                "the configuration names no file of events, or more than one; name one with --events FILE, or measure \
                 the orders workload with --orders",
            )),
        }
    }
}

fn orders(folder: &Path) -> anyhow::Result<String> {
    let (name, module) = guests::GUESTS[0];
    let path = folder.join(format!("{name}.wasm"));
    std::fs::write(&path, module)?;
    Ok(format!("[[machine]]\nname = {name:?}\nrules = {path:?}\n"))
}

/// The machines as they are configured, with the components that are in force, or else the configured files.
async fn machines(ctx: &Context, config: &Config, folder: &Path) -> anyhow::Result<String> {
    let mut components = BTreeMap::new();
    let site = if database(config)?.exists() { Some(ctx.open().await?) } else { None };
    for machine in &config.machines {
        let name = machine.setup.name.to_string();
        let active = match &site {
            Some(site) => match site.store.active(&name).await? {
                Some((_, digest)) => site.store.rules(digest).await?.map(|(_, bytes)| bytes),
                None => None,
            },
            None => None,
        };
        let bytes = match (active, &machine.rules) {
            (Some(bytes), _) => bytes,
            (None, Some(path)) => crate::runner::rules::read(&machine.setup.name, path)?,
            (None, None) => return Err(usage("no-rules", format!("machine `{name}` has no rules yet"))),
        };
        let path = folder.join(format!("{name}.wasm"));
        std::fs::write(&path, bytes)?;
        components.insert(name, path);
    }
    if let Some(site) = site {
        site.store.close().await?;
    }
    let text = std::fs::read_to_string(&ctx.config)?;
    let mut tables: toml::Table = text.parse()?;
    let mut sections = Vec::new();
    for section in tables.remove("machine").and_then(|m| m.try_into::<Vec<toml::Table>>().ok()).unwrap_or_default() {
        let mut section = section;
        let path = section.get("name").and_then(toml::Value::as_str).and_then(|name| components.get(name));
        if let Some(path) = path.and_then(|p| p.to_str()) {
            section.insert("rules".into(), path.into());
        }
        sections.push(inline(&toml::Value::Table(section)));
    }
    Ok(format!("machine = [{}]\n", sections.join(", ")))
}

/// A value within one line, as TOML.
fn inline(value: &toml::Value) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        toml::Value::String(text) => quoted(text),
        toml::Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        toml::Value::Table(table) => {
            let members: Vec<_> = table.iter().map(|(k, v)| format!("{} = {}", quoted(k), inline(v))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        toml::Value::Integer(n) => n.to_string(),
        toml::Value::Float(n) => n.to_string(),
        toml::Value::Boolean(b) => b.to_string(),
        toml::Value::Datetime(at) => at.to_string(),
    }
}
