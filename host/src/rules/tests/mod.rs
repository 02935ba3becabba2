//! The boundary, with guests in the text format: each is small enough to see what it does.

#![allow(clippy::unwrap_used, reason = "a test may stop where it is wrong")]

mod answers;
mod build;
mod cache;
mod describe;
mod graph;
mod limits;
mod refusals;
mod speed;

use std::sync::Arc;

use seqgate_decide::rules::{EntityView, EventView, TriggerView};
use seqgate_test_guest as guest;

use super::prepare::MAX_COMPONENT;
use super::{Engine, EngineOptions, Limits, LoadError, LoadedRules, prepare};

fn engine() -> Engine {
    Engine::new(&EngineOptions::default()).unwrap()
}

fn load(guest: &guest::Guest) -> Result<Arc<LoadedRules>, LoadError> {
    load_with(&engine(), guest, Limits::default())
}

fn load_with(engine: &Engine, guest: &guest::Guest, limits: Limits) -> Result<Arc<LoadedRules>, LoadError> {
    LoadedRules::load(engine, &prepare(&guest.module(), MAX_COMPONENT)?, limits, None)
}

fn event(data: &[u8]) -> EventView<'_> {
    EventView {
        id: "e-1",
        source: "test",
        trigger: TriggerView::Event("thing.opened"),
        key: b"k",
        version: Some(1),
        time: 1_000,
        idempotency_key: None,
        correlation_id: Some("c-1"),
        content_type: Some("application/json"),
        attributes: &[],
        met: &[],
        data,
    }
}

fn entity<'a>(state: &'a str, data: &'a [u8]) -> EntityView<'a> {
    EntityView { key: b"k", version: 1, revision: 2, state, entered: 500, schema: 1, data, timers: &[] }
}
