//! A decision: one fresh instance, one call, and the instance is gone, whatever it did (R8, G8, G10).
//!
//! What a decision costs, everything in it (store, instance, arguments in, answer out, all dropped), by
//! `rules::tests::speed` on two shared x86-64 cores, wasmtime 48, release:
//!
//! | guest | on demand | pooled |
//! |---|---|---|
//! | 2 kB of text format, 17 pages of memory, a constant answer | 28 µs | 10 µs |
//! | 92 kB of Rust, 1 MiB of stack; reads 90 bytes of JSON and a state, answers with a state and a message; 18,215 fuel | 42 µs | 31 µs |
//! | the same with 128 KiB of stack, as [`build`](super::build::build) links it | 44 µs | 16 µs |
//!
//! Two threads at a time take 17 µs (first row) and 35 to 50 µs (third) each, pooled; on demand they fight over the
//! process's address space: 120 to 180 µs. Preparing the 92 kB takes 2 ms, compiling them 65 to 100 ms.

use std::sync::Arc;

use seqgate_decide::rules::{
    Description, EntityView, EventView, Failure, Fault, Migrated, Reason, Rejection, Rules, Transition,
};
use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, InstancePre, Lift, Lower};

use super::contract::answer;
use super::convert::{self, Lists};
use super::engine::Engine;
use super::error::chain;
use super::fault::{self, Ended};
use super::limits::{Exceeded, Limiter, Limits, RETRY_TIME};
use super::load::LoadedRules;

/// Everything that a call needs; shared by all sessions of the same rules.
pub(super) struct Callable {
    pub(super) engine: Engine,
    pub(super) pre: InstancePre<Limiter>,
    pub(super) limits: Limits,
}

impl Callable {
    /// Calls `export` in a fresh instance. A time-out with fuel left is tried once more, alone in its own instance and
    /// with ten times the time (R5). Gives the answer and the fuel that the last try used.
    pub(super) fn call<P, R>(
        &self,
        function: &'static str,
        export: &ComponentExportIndex,
        params: &P,
    ) -> (Result<R, Fault>, u64)
    where
        P: ComponentNamedList + Lower + Clone,
        (R,): ComponentNamedList + Lift,
        R: 'static,
    {
        match self.attempt(function, export, params.clone(), 1) {
            (Err(Ended::TimedOut(_)), _) => {}
            (answer, used) => return (answer.map_err(Ended::into_fault), used),
        }
        let (answer, used) = self.attempt(function, export, params.clone(), RETRY_TIME);
        (answer.map_err(Ended::into_fault), used)
    }

    fn attempt<P, R>(
        &self,
        function: &'static str,
        export: &ComponentExportIndex,
        params: P,
        patience: u32,
    ) -> (Result<R, Ended>, u64)
    where
        P: ComponentNamedList + Lower,
        (R,): ComponentNamedList + Lift,
        R: 'static,
    {
        // Declared first, so that it goes last: after the store has given its memory back.
        let _slot = self.engine.slot();
        let mut store = Store::new(self.engine.wasm(), Limiter::new(&self.limits));
        store.limiter(|limiter| limiter);
        store.set_hostcall_fuel(self.limits.result);
        store.set_epoch_deadline(self.engine.ticks(self.limits.time.saturating_mul(patience)));
        let answer = store.set_fuel(self.limits.fuel).and_then(|()| self.pre.instantiate(&mut store));
        let instance = match answer {
            Ok(instance) => instance,
            Err(error) => return (Err(self.no_instance(function, &error, &mut store)), 0),
        };
        let answer = instance
            .get_typed_func::<P, (R,)>(&mut store, export)
            .and_then(|function| function.call(&mut store, params));
        let used = self.limits.fuel.saturating_sub(store.get_fuel().unwrap_or(0));
        match answer {
            Ok((answer,)) => (Ok(answer), used),
            Err(error) => (Err(fault::explain(&error, function, &self.limits, &mut store)), used),
        }
    }

    /// Instantiating runs no code of the guest's (start functions are refused), but lays out its memory and tables.
    fn no_instance(&self, function: &str, error: &wasmtime::Error, store: &mut Store<Limiter>) -> Ended {
        if error.is::<Exceeded>() || error.is::<wasmtime::Trap>() {
            return fault::explain(error, function, &self.limits, store);
        }
        Ended::Fault(Fault::new(fault::UNAVAILABLE, fault::bounded(format!("no instance: {}", chain(error)))))
    }
}

/// Rules that answer. Each partition's task has its own; making one costs nothing, and it keeps its rules alive when
/// the registry goes on to others.
pub struct Session {
    rules: Arc<LoadedRules>,
    fuel_used: u64,
}

impl Session {
    pub(super) fn new(rules: Arc<LoadedRules>) -> Self {
        Self { rules, fuel_used: 0 }
    }

    /// The rules that answer.
    pub fn rules(&self) -> &Arc<LoadedRules> {
        &self.rules
    }

    /// Fuel that the last call used, up to [`Limits::fuel`]; 0 before the first one. The same question under the same
    /// component uses the same fuel on every host of the same engine version.
    pub fn fuel_used(&self) -> u64 {
        self.fuel_used
    }

    fn ask<P, R>(&mut self, function: &'static str, export: &ComponentExportIndex, params: &P) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Clone,
        (R,): ComponentNamedList + Lift,
        R: 'static,
    {
        let (answer, used) = self.rules.callable().call(function, export, params);
        self.fuel_used = used;
        answer
    }
}

type Answer = Result<answer::Transition, answer::Rejection>;

/// Faults have the codes of [`fault`]. One of them, [`fault::UNAVAILABLE`], is the host's trouble and not
/// the event's: the caller retries the batch.
impl Rules for Session {
    fn description(&self) -> &Arc<Description> {
        self.rules.description()
    }

    fn apply(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        let rules = Arc::clone(&self.rules);
        let lists = Lists::of(current, Some(event));
        let params = (current.map(|entity| lists.entity(entity)), lists.event(event));
        self.ask::<_, Answer>("apply", &rules.exports().apply, &params).map(convert::transition)
    }

    fn compensate(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
        failure: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        let rules = Arc::clone(&self.rules);
        let lists = Lists::of(current, Some(event));
        let params = (current.map(|entity| lists.entity(entity)), lists.event(event), convert::failure(failure));
        self.ask::<_, Answer>("compensate", &rules.exports().compensate, &params).map(convert::transition)
    }

    fn migrate(&mut self, entity: &EntityView<'_>) -> Result<Result<Migrated, Reason>, Fault> {
        let rules = Arc::clone(&self.rules);
        let lists = Lists::of(Some(entity), None);
        let params = (lists.entity(entity),);
        self.ask("migrate", &rules.exports().migrate, &params).map(convert::migrated)
    }
}
