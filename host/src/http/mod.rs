//! The HTTP listener: `POST /v1/events`, `/health/live`, `/health/ready`, `/metrics`.
//!
//! It only takes and tells. What it takes goes into an embedded source's log ([`crate::ingest`]); what it tells comes from
//! the store and from a run's [`Live`]. Errors are RFC 9457 problems.

mod events;
mod health;
mod metrics;
mod problem;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::ingest::Ingest;
use crate::runner::Live;
use crate::source::Budget;
use crate::store::Store;

pub use metrics::Metrics;

/// The largest body, in bytes.
const MAX_BODY: usize = 16 << 20;
/// How many bytes of bodies are in memory at once.
const BODIES: usize = 64 << 20;

/// What the listener tells about, and fills.
pub struct Host {
    /// A handle for each embedded source.
    pub ingests: Vec<Ingest>,
    /// The run beside it.
    pub live: Live,
    /// The rows.
    pub store: Arc<dyn Store>,
    /// What was measured.
    pub metrics: Metrics,
}

struct State {
    host: Host,
    bodies: Budget,
}

/// Serves until told to stop; requests under way are answered first.
pub async fn serve(listener: TcpListener, host: Host, mut stop: watch::Receiver<bool>) -> std::io::Result<()> {
    let state = Arc::new(State { host, bodies: Budget::new(BODIES) });
    let routes = Router::new()
        .route("/v1/events", post(events::post))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/metrics", get(metrics::get))
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::not_allowed)
        .with_state(state);
    let stopped = async move {
        // Whoever could stop it is gone: that is a stop.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    axum::serve(listener, routes).with_graceful_shutdown(stopped).await
}

/// A body of JSON.
fn json(value: &impl serde::Serialize) -> axum::response::Response {
    use axum::response::IntoResponse as _;
    match serde_json::to_vec(value) {
        Ok(bytes) => ([(axum::http::header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => (axum::http::StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
