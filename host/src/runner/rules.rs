//! Which rules decide: the activation in the store, and the component that it names (R8).

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use seqgate_decide::ids::Digest;
use seqgate_decide::machine::Machine;
use seqgate_decide::setup::Setup;
use seqgate_decide::writes::RulesRef;

use super::RunError;
use crate::config::MachineConfig;
use crate::config::checked::{LimitsConfig, MOST};
use crate::rules::engine::{MAX_MEMORY, MAX_TABLE_ELEMENTS};
use crate::rules::prepare::{MAX_COMPONENT, Prepared, prepare};
use crate::rules::{Cache, Engine, Limits, LoadedRules, Registry};
use crate::store::Store;
use crate::store::registry::RulesRecord;

/// What a provider gives, later.
pub type Given<'a, T> = Pin<Box<dyn Future<Output = Result<T, RunError>> + Send + 'a>>;

/// Gives machines with their rules in force.
pub trait RulesProvider: Send + Sync {
    /// The machine as its present activation decides. Every task takes its own.
    fn in_force<'a>(&'a self, setup: &'a Arc<Setup>) -> Given<'a, Machine>;
}

/// Rules from the store's components, compiled once and shared.
pub struct Components {
    store: Arc<dyn Store>,
    engine: Engine,
    cache: Option<Cache>,
    loaded: Registry,
    limits: std::collections::BTreeMap<Arc<str>, Limits>,
}

impl Components {
    /// Rules of these machines, run by this engine, with compiled artefacts kept in `cache`.
    pub fn new(store: Arc<dyn Store>, engine: Engine, cache: Option<Cache>, machines: &[MachineConfig]) -> Self {
        let limits = machines.iter().map(|m| (m.setup.name.clone(), limits(m))).collect();
        Self { store, engine, cache, loaded: Registry::new(), limits }
    }

    /// Compiles and checks a component for a machine, without registering it.
    pub fn load(&self, machine: &Arc<str>, prepared: &Prepared) -> Result<Arc<LoadedRules>, RunError> {
        if let Some(loaded) = self.loaded.get(prepared.digest()) {
            return Ok(loaded);
        }
        let limits = self.limits.get(machine).cloned().unwrap_or_default();
        let loaded =
            LoadedRules::load(&self.engine, prepared, limits, self.cache.as_ref()).map_err(|e| refused(machine, e))?;
        if *loaded.description().name != **machine {
            let message = format!("the component says that it is `{}`", loaded.description().name);
            return Err(RunError::Rules { machine: machine.clone(), message });
        }
        Ok(loaded)
    }

    /// Registers a component: checked whole before anyone is affected, and nothing is activated.
    pub async fn register(
        &self,
        machine: &Arc<str>,
        bytes: &[u8],
        actor: &str,
        at: i64,
    ) -> Result<Arc<LoadedRules>, RunError> {
        let loaded = tokio::task::block_in_place(|| {
            let prepared = prepare(bytes, MAX_COMPONENT).map_err(|e| refused(machine, e))?;
            self.load(machine, &prepared)
        })?;
        let description = serde_json::to_string(&**loaded.description()).map_err(|e| refused(machine, e))?;
        let record = RulesRecord {
            digest: loaded.digest(),
            machine: machine.clone(),
            description,
            size: bytes.len() as u64,
            actor: actor.to_owned(),
            at,
        };
        self.store.put_rules(&record, bytes).await?;
        self.loaded.insert(loaded.clone());
        Ok(loaded)
    }

    /// Activates a machine's configured file when nothing is in force yet.
    pub async fn ensure_active(&self, machine: &MachineConfig, actor: &str, at: i64) -> Result<(), RunError> {
        let name = &machine.setup.name;
        if self.store.active(name).await?.is_some() {
            return Ok(());
        }
        let Some(path) = &machine.rules else {
            let message = "no rules are active, and the configuration names no `rules` file; \
                           `seqgate rules register FILE` and `rules activate DIGEST` do it by hand";
            return Err(RunError::Rules { machine: name.clone(), message: message.into() });
        };
        let bytes = read(name, path)?;
        let loaded = self.register(name, &bytes, actor, at).await?;
        let number = self.store.activate(name, loaded.digest(), actor, "the first rules of this machine", at).await?;
        tracing::info!(machine = &**name, digest = %loaded.digest(), number, "rules activated");
        Ok(())
    }

    async fn by_digest(&self, machine: &Arc<str>, digest: Digest) -> Result<Arc<LoadedRules>, RunError> {
        if let Some(loaded) = self.loaded.get(digest) {
            return Ok(loaded);
        }
        let Some((_, bytes)) = self.store.rules(digest).await? else {
            let message = format!("the active component {digest} is not in the store");
            return Err(RunError::Rules { machine: machine.clone(), message });
        };
        let loaded = tokio::task::block_in_place(|| {
            let prepared = prepare(&bytes, MAX_COMPONENT).map_err(|e| refused(machine, e))?;
            self.load(machine, &prepared)
        })?;
        self.loaded.insert(loaded.clone());
        Ok(loaded)
    }
}

impl RulesProvider for Components {
    fn in_force<'a>(&'a self, setup: &'a Arc<Setup>) -> Given<'a, Machine> {
        Box::pin(async move {
            let Some((activation, digest)) = self.store.active(&setup.name).await? else {
                let message = "no rules are active; `seqgate run` activates the configured file, \
                               `seqgate rules activate DIGEST` any registered one";
                return Err(RunError::Rules { machine: setup.name.clone(), message: message.into() });
            };
            let loaded = self.by_digest(&setup.name, digest).await?;
            Ok(Machine::new(setup.clone(), Box::new(loaded.open()), RulesRef { activation, digest }))
        })
    }
}

/// Reads a machine's component.
pub fn read(machine: &Arc<str>, path: &Path) -> Result<Vec<u8>, RunError> {
    std::fs::read(path).map_err(|e| RunError::Rules {
        machine: machine.clone(),
        message: format!("cannot read {}: {e}; `seqgate rules build FOLDER -o FILE` makes it", path.display()),
    })
}

/// What the configuration allows, the engine has room for.
const _: () = assert!(MOST.memory as usize <= MAX_MEMORY && MOST.tables as usize <= MAX_TABLE_ELEMENTS);

/// The limits that a machine is configured with.
pub fn limits(machine: &MachineConfig) -> Limits {
    let LimitsConfig { fuel, memory, time, tables, result } = machine.limits;
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    Limits { fuel, memory: size(memory), time, table_elements: size(tables), result: size(result) }
}

fn refused(machine: &Arc<str>, error: impl std::error::Error) -> RunError {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        message = format!("{message}: {inner}");
        source = inner.source();
    }
    RunError::Rules { machine: machine.clone(), message }
}
