//! Machines' rules as WebAssembly components: checked, compiled, cached, run, swapped.
//!
//! The path of a component's bytes: [`build`] makes them from a machine's source, [`mod@prepare`] checks them and turns a
//! core module into a component, [`load`] compiles them (or takes the artefact from the [`cache`]), asks them to
//! describe themselves and checks the answer ([`describe`]), [`registry`] holds what is loaded, and [`instance`]
//! decides with it: a fresh instance for every decision, within its [`limits`], each broken one a [`fault`].
//!
//! What this module does not know: the store, the sources, the clock of the host, async. It is the only place that
//! knows wasmtime.

pub mod build;
pub mod cache;
mod contract;
mod convert;
pub mod describe;
pub mod engine;
pub mod error;
pub mod fault;
pub mod graph;
pub mod instance;
pub mod limits;
pub mod load;
pub mod prepare;
pub mod registry;
#[cfg(test)]
mod tests;
pub mod work;

pub use cache::Cache;
pub use engine::{Allocation, Engine, EngineOptions};
pub use error::{HostError, LoadError, Refused};
pub use instance::Session;
pub use limits::Limits;
pub use load::{LoadedRules, Origin};
pub use prepare::{Prepared, prepare};
pub use registry::Registry;
