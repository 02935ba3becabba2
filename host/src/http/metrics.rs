//! `/metrics`: what was measured, and what the store holds, for Prometheus.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::State;
use super::problem::Problem;
use crate::runner::engine::chain;
use crate::store::views::{Page, Stand, Status};
use crate::telemetry::Recorder;

/// How old the store's sums may be.
const FRESH: Duration = Duration::from_secs(2);

/// What `/metrics` renders.
pub struct Metrics {
    recorder: Recorder,
    counted: Mutex<Option<Instant>>,
}

impl Metrics {
    /// Of this process's recorder.
    pub fn new(recorder: Recorder) -> Self {
        Self { recorder, counted: Mutex::new(None) }
    }
}

pub(super) async fn get(Shared(state): Shared<Arc<State>>) -> Response {
    let metrics = &state.host.metrics;
    let mut counted = metrics.counted.lock().await;
    if counted.is_none_or(|at| at.elapsed() >= FRESH) {
        if let Err(error) = count(&state).await {
            let detail = format!("the store's sums cannot be read: {}", chain(&error));
            return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store", "The store failed", detail)
                .retry_after(1)
                .into_response();
        }
        *counted = Some(Instant::now());
    }
    drop(counted);
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics.recorder.render()).into_response()
}

/// Takes the store's sums over. They outlive the process, so the counters among them go on where they stood.
async fn count(state: &State) -> Result<(), crate::store::StoreError> {
    let store = &state.host.store;
    for partition in store.partitions().await? {
        let (source, part) = (partition.source.to_string(), partition.partition.to_string());
        metrics::counter!("seqgate_received_total", "source" => source.clone(), "partition" => part.clone())
            .absolute(partition.received);
        metrics::gauge!("seqgate_offset", "source" => source.clone(), "partition" => part.clone())
            .set(partition.offset as f64);
        for (verdict, n) in partition.verdicts {
            let labels = [("source", source.clone()), ("partition", part.clone()), ("verdict", verdict.to_string())];
            // A verdict can be taken back for another: a sum that falls is no counter.
            metrics::gauge!("seqgate_verdicts", &labels).set(n as f64);
        }
    }
    sums(&store.status().await?);
    let mut kinds = std::collections::BTreeMap::<String, u64>::new();
    for alarm in store.alarms(true, &Page::first(1000)).await?.items {
        *kinds.entry(alarm.kind).or_default() += 1;
    }
    for kind in seqgate_decide::writes::AlarmKind::ALL {
        let n = kinds.remove(kind.name()).unwrap_or_default();
        metrics::gauge!("seqgate_alarms", "kind" => kind.name()).set(n as f64);
    }
    for (kind, n) in kinds {
        metrics::gauge!("seqgate_alarms", "kind" => kind).set(n as f64);
    }
    for ingest in &state.host.ingests {
        let config = ingest.config();
        let (size, name) = (store.log_size(&config.name).await?, config.name.to_string());
        metrics::gauge!("seqgate_log_bytes", "source" => name.clone()).set(size.bytes as f64);
        metrics::gauge!("seqgate_log_events", "source" => name.clone()).set(size.events as f64);
        metrics::gauge!("seqgate_log_max_bytes", "source" => name).set(config.max_size as f64);
    }
    Ok(())
}

fn sums(status: &Status) {
    metrics::gauge!("seqgate_entities").set(status.entities as f64);
    metrics::gauge!("seqgate_blocked_entities").set(status.blocked as f64);
    metrics::gauge!("seqgate_ghost_entities").set(status.ghosts as f64);
    let stands: [(&str, Stand); 5] = [
        ("waiting", status.deferred),
        ("dead_letters", status.dead_letters),
        ("outbox", status.outbox),
        ("conflicts", status.conflicts),
        ("timers", status.timers),
    ];
    for (what, stand) in stands {
        metrics::gauge!("seqgate_open", "what" => what).set(stand.count as f64);
        let oldest = stand.oldest.map_or(0.0, |at| at as f64 / 1000.0);
        metrics::gauge!("seqgate_oldest_timestamp_seconds", "what" => what).set(oldest);
    }
}
