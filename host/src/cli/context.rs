//! What commands share: where the configuration is, how the store, the rules and the engine are opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use seqgate_decide::ids::{Digest, EntityId, Ref};
use seqgate_decide::machine::Machines;
use seqgate_decide::writes::{Actor, AuditRow, Writes};
use serde::Serialize;

use super::failure::{failed, usage};
use super::output::{self, Object, Table};
use super::show;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::rules::{self, Allocation, Cache, EngineOptions};
use crate::runner;
use crate::runner::rules::Components;
use crate::store::views::{Listing, Page};
use crate::store::{self, Commit, OperationId, Settings, Store};

/// What every command gets.
#[derive(Clone, Debug)]
pub struct Context {
    /// Answers are JSON.
    pub json: bool,
    /// The configuration file.
    pub config: PathBuf,
    /// Now.
    pub clock: Clock,
}

/// Who does it, and why; both go on record.
#[derive(Args, Clone, Debug)]
pub struct By {
    /// Who does it (default: your login name)
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT", default_value = "")]
    reason: String,
}

impl By {
    /// The record's part.
    pub fn actor(&self) -> Actor {
        Actor { name: self.actor.clone().unwrap_or_else(login), reason: self.reason.clone() }
    }
}

/// The login name.
pub fn login() -> String {
    let named = |variable| std::env::var(variable).ok().filter(|name| !name.is_empty());
    named("USER").or_else(|| named("LOGNAME")).unwrap_or_else(|| "unknown".to_owned())
}

/// Which part of a list.
#[derive(Args, Clone, Debug)]
pub struct Paging {
    /// At most this many items (default: 100, in JSON 1000)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: Option<u32>,
    /// Go on where a list ended: its `next`
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl Paging {
    /// Whether the list is asked for from its start.
    pub fn is_first(&self) -> bool {
        self.cursor.is_none()
    }
}

/// An entity by its machine and key.
#[derive(Args, Clone, Debug)]
pub struct Named {
    /// The machine
    machine: String,
    /// The entity's key, as text
    #[arg(allow_hyphen_values = true)]
    key: String,
    /// The key is given as hexadecimal digits
    #[arg(long)]
    key_hex: bool,
}

impl Named {
    /// Its address.
    pub fn id(&self) -> anyhow::Result<EntityId> {
        let key = if self.key_hex {
            show::unhex(&self.key).ok_or_else(|| {
                usage("usage", format!("`{}` is no hexadecimal key; write an even number of digits", self.key))
            })?
        } else {
            self.key.clone().into_bytes()
        };
        Ok(EntityId::new(self.machine.as_str(), key))
    }
}

/// A configuration with its open store.
pub struct Site {
    /// The configuration.
    pub config: Config,
    /// The store.
    pub store: Arc<dyn Store>,
}

impl Context {
    /// Loads the configuration.
    pub fn load(&self) -> anyhow::Result<Config> {
        let environment = std::env::vars_os().filter_map(|(k, v)| k.into_string().ok().zip(v.into_string().ok()));
        Ok(config::load(&self.config, environment)?)
    }

    /// Opens what is there; a database that nobody made yet is not made here.
    pub async fn open(&self) -> anyhow::Result<Site> {
        let config = self.load()?;
        let path = database(&config)?;
        if !path.exists() {
            let message = format!("there is no database at {} yet; `{}` makes it", path.display(), self.command("run"));
            return Err(failed("no-database", message));
        }
        self.open_or_make(config).await
    }

    /// Opens the store, and makes it where it is missing.
    pub async fn open_or_make(&self, config: Config) -> anyhow::Result<Site> {
        let store = store::open(&config.store_url, Settings::default())
            .await
            .with_context(|| format!("cannot open {}", config.store_url))?;
        Ok(Site { config, store })
    }

    /// A command to type, with the configuration that this one was given.
    pub fn command(&self, rest: &str) -> String {
        if self.config == Path::new("seqgate.toml") {
            return format!("seqgate {rest}");
        }
        format!("seqgate --config {} {rest}", show::quoted(&self.config.display().to_string()))
    }

    /// Prints an object in JSON, and a text for people otherwise.
    pub fn answer(&self, json: impl FnOnce() -> Object, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json { output::print(json()) } else { output::print(text()) }
    }

    /// Which part of a list is asked for.
    pub fn page(&self, paging: &Paging) -> Page {
        let limit = paging.limit.unwrap_or(if self.json { 1000 } else { 100 });
        Page { limit, cursor: paging.cursor.clone() }
    }

    /// Prints a part of a list.
    pub fn list<T, J: Serialize>(
        &self,
        listing: &Listing<T>,
        head: &[&'static str],
        row: impl Fn(&T) -> Vec<String>,
        json: impl Fn(&T) -> J,
    ) -> anyhow::Result<()> {
        if self.json {
            let items: Vec<J> = listing.items.iter().map(json).collect();
            return output::print(Object::new().put("items", items).put("next", listing.next.as_deref()));
        }
        if listing.items.is_empty() {
            return output::print("None.");
        }
        let mut table = Table::new(head);
        listing.items.iter().for_each(|item| table.row(row(item)));
        let mut text = table.render(output::width());
        if let Some(next) = &listing.next {
            text.push_str(&format!("There is more: add --cursor {next}\n"));
        }
        output::print(text)
    }
}

/// The file of the embedded database, beside which the lock and the compiled rules lie.
pub fn database(config: &Config) -> anyhow::Result<PathBuf> {
    let url = &config.store_url;
    store::database_file(url)?.ok_or_else(|| usage("usage", format!("`{url}` is no embedded database")))
}

impl Site {
    /// Components of this store, with compiled code beside the database. Short commands take instances on demand: a
    /// pool would cost more than they do.
    pub fn components(&self, allocation: Allocation) -> anyhow::Result<Components> {
        let engine = wasm(allocation)?;
        let mut folder = database(&self.config)?.into_os_string();
        folder.push(".rules-cache");
        // Without a cache everything works, and starts slower.
        let cache = Cache::open(PathBuf::from(folder))
            .map_err(|error| tracing::warn!(error = %runner::engine::chain(&error), "compiled rules are not kept"))
            .ok();
        Ok(Components::new(self.store.clone(), engine, cache, &self.config.machines))
    }

    /// What decides single inputs, beside a host that may be running: for the machines that have rules in force.
    pub async fn decider(&self, ctx: &Context) -> anyhow::Result<(runner::Engine, Machines)> {
        let mut setups = Vec::new();
        for machine in &self.config.machines {
            if self.store.active(&machine.setup.name).await?.is_some() {
                setups.push(machine.setup.clone());
            }
        }
        let engine = runner::Engine {
            store: self.store.clone(),
            clock: ctx.clock.clone(),
            rules: Arc::new(self.components(Allocation::OnDemand)?),
            setups: Arc::new(setups),
            observer: None,
        };
        let machines = engine.machines().await?;
        Ok((engine, machines))
    }

    /// Puts on record what no decision does.
    pub async fn audit(
        &self,
        ctx: &Context,
        by: Actor,
        action: &str,
        subject: String,
        outcome: String,
    ) -> anyhow::Result<()> {
        let at = ctx.clock.now();
        let row = AuditRow { at, by, action: action.to_owned(), subject, outcome };
        let writes = Writes { audit: vec![row], ..Writes::default() };
        let mut commit = Commit::new(&writes, at);
        commit.operation = Some(OperationId(rand::random()));
        Ok(self.store.commit(&commit).await?)
    }

    /// The machine's configuration, or who is meant perhaps.
    pub fn machine(&self, name: &str) -> anyhow::Result<&config::MachineConfig> {
        if let Some(machine) = self.config.machine(name) {
            return Ok(machine);
        }
        let names: Vec<&str> = self.config.machines.iter().map(|m| &*m.setup.name).collect();
        let hint = config::raw::nearest(name, &names).map(|n| format!("did you mean `{n}`?"));
        let hint = hint.unwrap_or_else(|| format!("there are: {}", names.join(", ")));
        Err(failed("no-such-machine", format!("no machine `{name}` is configured; {hint}")))
    }
}

/// A WebAssembly engine. A system that cannot reserve a pool's address space gets instances on demand.
pub fn wasm(allocation: Allocation) -> anyhow::Result<rules::Engine> {
    let options = EngineOptions { allocation, ..EngineOptions::default() };
    match rules::Engine::new(&options) {
        Ok(engine) => Ok(engine),
        Err(error) if allocation != Allocation::OnDemand => {
            tracing::warn!(error = %runner::engine::chain(&error), "no pool for instances; they are made on demand");
            Ok(rules::Engine::new(&EngineOptions { allocation: Allocation::OnDemand, ..options })?)
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads a short name that a list shows.
pub fn reference(text: &str) -> Result<Ref, String> {
    text.parse().map_err(|e: seqgate_decide::ids::BadRef| e.to_string())
}

/// Reads a digest.
pub fn digest(text: &str) -> Result<Digest, String> {
    text.parse().map_err(|e: seqgate_decide::ids::BadDigest| e.to_string())
}
