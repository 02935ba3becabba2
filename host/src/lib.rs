//! Seqgate: one consumer runtime for ordered events. The host owns versions, dedup, gaps, dead letters, outbox and
//! timers; domain teams write only the rules, as Wasm components.
//!
//! Dependencies point one way: `cli` → `runner` → `source`, `store`, `rules` → the core (`seqgate-decide`). ARCHITECTURE.md
//! follows one event through them.

pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod http;
pub mod ingest;
pub mod rules;
pub mod runner;
pub mod scaffold;
pub mod source;
pub mod store;
pub mod telemetry;
