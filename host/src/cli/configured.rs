//! `machine`, `source`: what the configuration names, and how it stands in the store.

use std::path::Path;

use clap::Subcommand;
use seqgate_decide::ids::Digest;

use super::context::{Context, Site, database};
use super::output::Object;
use super::{run, show, status};
use crate::config::{MachineConfig, SourceConfig};
use crate::store::views::{Listing, PartitionItem};

/// Machines that are configured
#[derive(Debug, Subcommand)]
pub enum Machine {
    /// With what decides for them
    List,
}

/// Sources that are configured
#[derive(Debug, Subcommand)]
pub enum Source {
    /// With how far they were read
    List,
}

/// The store, where there is one yet.
async fn open(ctx: &Context) -> anyhow::Result<(crate::config::Config, Option<Site>)> {
    let config = ctx.load()?;
    if !database(&config)?.exists() {
        return Ok((config, None));
    }
    let site = ctx.open_or_make(config.clone()).await?;
    Ok((config, Some(site)))
}

struct MachineRow {
    machine: MachineConfig,
    active: Option<(u64, Digest)>,
    /// The configured file is something else than what decides.
    differs: bool,
}

impl Machine {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::List = self;
        let (config, site) = open(ctx).await?;
        let mut items = Vec::new();
        for machine in config.machines {
            let active = match &site {
                Some(site) => site.store.active(&machine.setup.name).await?,
                None => None,
            };
            let differs = active.zip(machine.rules.as_deref()).is_some_and(|((_, d), file)| is_other(file, d));
            items.push(MachineRow { machine, active, differs });
        }
        let row = |m: &MachineRow| {
            let setup = &m.machine.setup;
            let rules = m.active.map_or_else(|| "none yet".to_owned(), |(n, d)| format!("{n}: {d}"));
            let mut file = show::or_dash(m.machine.rules.as_ref().map(|p| p.display()));
            file.push_str(if m.differs { " (differs)" } else { "" });
            vec![setup.name.to_string(), setup.ordering.to_string(), rules, file]
        };
        let head = ["MACHINE", "ORDERING", "IN FORCE", "CONFIGURED FILE"];
        ctx.list(&Listing { items, next: None }, &head, row, machine_json)
    }
}

fn is_other(file: &Path, active: Digest) -> bool {
    std::fs::read(file).is_ok_and(|bytes| crate::rules::prepare::digest(&bytes) != active)
}

fn machine_json(m: &MachineRow) -> Object {
    let setup = &m.machine.setup;
    let ignore: Vec<&str> = setup.ignore.iter().map(|i| &**i).collect();
    Object::new()
        .put("name", &*setup.name)
        .put("ordering", setup.ordering.name())
        .put("activation", m.active.map(|(n, _)| n))
        .put("rules", m.active.map(|(_, d)| d.to_string()))
        .put("file", m.machine.rules.as_ref().map(|p| p.display().to_string()))
        .put("file_differs", m.differs)
        .put("on_illegal", setup.policies.illegal)
        .put("on_malformed", setup.policies.malformed)
        .put("on_fault", setup.policies.fault)
        .put("on_unknown", setup.policies.unknown.unwrap_or(setup.policies.illegal))
        .put("ignore", ignore)
}

struct SourceRow {
    name: String,
    configured: Option<SourceConfig>,
    partitions: Vec<PartitionItem>,
}

impl Source {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let Self::List = self;
        let (config, site) = open(ctx).await?;
        let stored = match &site {
            Some(site) => site.store.partitions().await?,
            None => Vec::new(),
        };
        let mut items: Vec<SourceRow> = config
            .sources
            .into_iter()
            .map(|s| SourceRow { name: s.name().to_string(), configured: Some(s), partitions: Vec::new() })
            .collect();
        for partition in stored {
            match items.iter_mut().find(|i| *i.name == *partition.source) {
                Some(item) => item.partitions.push(partition),
                None => items.push(SourceRow {
                    name: partition.source.to_string(),
                    configured: None,
                    partitions: vec![partition],
                }),
            }
        }
        let head = ["SOURCE", "KIND", "MACHINE", "PARTITIONS", "READ TO", "RECEIVED", "PATH"];
        ctx.list(&Listing { items, next: None }, &head, source_row, source_json)
    }
}

fn source_row(s: &SourceRow) -> Vec<String> {
    let configured = s.configured.as_ref();
    let kind = match (configured, s.name.starts_with("repair:")) {
        (Some(source), _) => source.kind(),
        (None, true) => "repair",
        (None, false) => "not configured",
    };
    let standard_input = |place: String| if place == "-" { "(standard input)".to_owned() } else { place };
    vec![
        s.name.clone(),
        kind.to_owned(),
        show::or_dash(configured.and_then(|c| c.machine())),
        show::or_dash(configured.map(SourceConfig::partitions)),
        show::or_dash(s.partitions.iter().map(|p| p.offset).max()),
        s.partitions.iter().map(|p| p.received).sum::<u64>().to_string(),
        show::or_dash(configured.and_then(SourceConfig::place).map(standard_input)),
    ]
}

fn source_json(s: &SourceRow) -> Object {
    let configured = s.configured.as_ref();
    let mut counts = std::collections::BTreeMap::new();
    for (verdict, n) in s.partitions.iter().flat_map(|p| &p.verdicts) {
        *counts.entry(*verdict).or_insert(0) += n;
    }
    Object::new()
        .put("name", &s.name)
        .put("kind", configured.map(SourceConfig::kind))
        .put("configured", s.configured.is_some())
        .put("path", configured.and_then(SourceConfig::place))
        .put("machine", configured.and_then(|c| c.machine()).map(|m| &**m))
        .put("partition_count", configured.map(SourceConfig::partitions))
        .put("received", s.partitions.iter().map(|p| p.received).sum::<u64>())
        .put("summary", run::in_words(&counts))
        .put("partitions", s.partitions.iter().map(status::partition).collect::<Vec<_>>())
}
