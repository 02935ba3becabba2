//! From a checked component to rules that can be asked.

use std::sync::Arc;

use seqgate_decide::ids::Digest;
use seqgate_decide::rules::Description;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentNamedList, Instance, Lift, Linker, Lower};

use super::cache::Cache;
use super::contract::{Exports, answer, argument};
use super::convert;
use super::describe;
use super::engine::Engine;
use super::error::{HostError, LoadError, Refused, WasmError, chain};
use super::fault;
use super::instance::{Callable, Session};
use super::limits::{Limiter, Limits};
use super::prepare::Prepared;

/// Where the compiled code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Compiled now.
    Compiled,
    /// Read from the cache.
    Cached,
}

/// Rules, compiled and checked. Immutable: other rules, or other limits, are another value.
pub struct LoadedRules {
    digest: Digest,
    description: Arc<Description>,
    callable: Callable,
    exports: Exports,
    origin: Origin,
}

impl LoadedRules {
    /// Compiles a component (or reads its code from the cache), checks its functions' types, asks it once to describe
    /// itself, under `limits`, and checks the answer. Compiling takes about a second per megabyte and blocks the thread.
    ///
    /// # Errors
    /// [`LoadError::Refused`] where the component's author has to act, [`LoadError::Host`] where the host has no
    /// memory for an instance. A cache that cannot be read or written is no error: the component is compiled.
    pub fn load(
        engine: &Engine,
        prepared: &Prepared,
        limits: Limits,
        cache: Option<&Cache>,
    ) -> Result<Arc<Self>, LoadError> {
        let (component, origin) = match cache.and_then(|cache| cache.get(engine, prepared)) {
            Some(component) => (component, Origin::Cached),
            None => {
                let component = compile(engine, prepared)?;
                if let Some(cache) = cache {
                    cache.put(engine, prepared, &component);
                }
                (component, Origin::Compiled)
            }
        };
        let exports = Exports::of(&component)?;
        let pre = Linker::new(engine.wasm())
            .instantiate_pre(&component)
            .map_err(|error| Refused::Invalid { detail: chain(&error) })?;
        let callable = Callable { engine: engine.clone(), pre, limits };
        let description = Arc::new(describe(&callable, &exports)?);
        Ok(Arc::new(Self { digest: prepared.digest(), description, callable, exports, origin }))
    }

    /// Rules that answer; as many at a time as there are threads to call them.
    pub fn open(self: &Arc<Self>) -> Session {
        Session::new(Arc::clone(self))
    }

    /// SHA-256 of the bytes as they were registered.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// What the rules declare; consistent (see [`describe::check`]).
    pub fn description(&self) -> &Arc<Description> {
        &self.description
    }

    /// What one call may use.
    pub fn limits(&self) -> &Limits {
        &self.callable.limits
    }

    /// Whether the code came from the cache.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    pub(super) fn callable(&self) -> &Callable {
        &self.callable
    }

    pub(super) fn exports(&self) -> &Exports {
        &self.exports
    }
}

impl std::fmt::Debug for LoadedRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { digest, description, origin, .. } = self;
        write!(f, "{} {} ({digest}, {origin:?})", description.name, description.version)
    }
}

fn compile(engine: &Engine, prepared: &Prepared) -> Result<Component, Refused> {
    Component::from_binary(engine.wasm(), prepared.component())
        .map_err(|error| Refused::Invalid { detail: chain(&error) })
}

fn describe(callable: &Callable, exports: &Exports) -> Result<Description, LoadError> {
    check_types(callable, exports)?;
    let (answer, _) = callable.call::<_, answer::Description>("describe", &exports.describe, &());
    let description = match answer {
        Ok(description) => convert::description(description),
        Err(fault) if fault.code == fault::UNAVAILABLE => {
            return Err(HostError::Instance(WasmError::from(wasmtime::Error::msg(fault.message))).into());
        }
        Err(fault) => return Err(Refused::DescribeFailed { code: fault.code, message: fault.message }.into()),
    };
    let flaws = describe::check(&description);
    if flaws.is_empty() { Ok(description) } else { Err(Refused::Description { flaws }.into()) }
}

/// An instance is needed to see the functions' types; no code of the guest's runs for it.
fn check_types(callable: &Callable, exports: &Exports) -> Result<(), LoadError> {
    type Deciding<'a> = (Option<argument::Entity<'a>>, argument::Event<'a>);
    type Compensating<'a> = (Option<argument::Entity<'a>>, argument::Event<'a>, argument::Failure<'a>);
    type Answer = (Result<answer::Transition, answer::Rejection>,);

    let _slot = callable.engine.slot();
    let mut store = Store::new(callable.engine.wasm(), Limiter::new(&callable.limits));
    store.limiter(|limiter| limiter);
    let instance = match callable.pre.instantiate(&mut store) {
        Ok(instance) => instance,
        // The call of `describe` meets the same, and says it better.
        Err(_) => return Ok(()),
    };
    fn check<P, R>(
        store: &mut Store<Limiter>,
        instance: &Instance,
        function: &'static str,
        export: &wasmtime::component::ComponentExportIndex,
    ) -> Result<(), Refused>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift,
    {
        let found = instance.get_typed_func::<P, R>(store, export);
        found.map(drop).map_err(|error| Refused::Shape { function, detail: chain(&error) })
    }
    check::<(), (answer::Description,)>(&mut store, &instance, "describe", &exports.describe)?;
    check::<Deciding<'_>, Answer>(&mut store, &instance, "apply", &exports.apply)?;
    check::<Compensating<'_>, Answer>(&mut store, &instance, "compensate", &exports.compensate)?;
    type Migrating<'a> = (argument::Entity<'a>,);
    type Migrated = (Result<answer::Migrated, answer::Reason>,);
    check::<Migrating<'_>, Migrated>(&mut store, &instance, "migrate", &exports.migrate)?;
    Ok(())
}
