//! Whether the process lives, and whether it does its work.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::State;
use crate::runner::Stage;
use crate::runner::engine::chain;

/// How long the store may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Health {
    status: &'static str,
    reasons: Vec<String>,
}

/// The process answers.
pub(super) async fn live() -> Response {
    answer(Vec::new())
}

/// Its sources are read, its rules are loaded, and the store answers.
pub(super) async fn ready(Shared(state): Shared<Arc<State>>) -> Response {
    let mut reasons = Vec::new();
    match *state.host.live.stage.borrow() {
        Stage::Starting => reasons.push("the host is starting: it loads rules and takes partitions".to_owned()),
        Stage::Stopping => reasons.push("the host is stopping".to_owned()),
        Stage::Running => {}
    }
    match tokio::time::timeout(PATIENCE, state.host.store.partitions()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => reasons.push(format!("the store fails: {}", chain(&error))),
        Err(_) => reasons.push(format!("the store did not answer within {PATIENCE:?}")),
    }
    answer(reasons)
}

fn answer(reasons: Vec<String>) -> Response {
    let (code, status) = match reasons.is_empty() {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    (code, super::json(&Health { status, reasons })).into_response()
}
