//! Measurements of this process. Names are in the documentation of `/metrics`; whoever measures needs no handle, and where
//! nobody listens (every command but `run` with `[http]`) it costs next to nothing.

use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Seconds of a batch's phase: its histogram's name.
const PHASES: &str = "seqgate_batch_phase_seconds";

const BUCKETS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// What was measured so far.
#[derive(Clone)]
pub struct Recorder(PrometheusHandle);

/// Why nothing is measured.
#[derive(Debug, thiserror::Error)]
#[error("measurements cannot be recorded: {0}")]
pub struct NotRecorded(String);

impl Recorder {
    /// Starts recording in this process.
    ///
    /// # Errors
    /// Something else records already.
    pub fn start() -> Result<Self, NotRecorded> {
        let refused = |error: &dyn std::error::Error| NotRecorded(error.to_string());
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full(PHASES.to_owned()), &BUCKETS)
            .map_err(|e| refused(&e))?
            .build_recorder();
        let handle = recorder.handle();
        metrics::set_global_recorder(recorder).map_err(|e| refused(&e))?;
        describe();
        Ok(Self(handle))
    }

    /// All of it, as Prometheus reads it.
    pub fn render(&self) -> String {
        self.0.run_upkeep();
        self.0.render()
    }
}

/// What a batch does, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waits for its records.
    Fetch,
    /// Reads their envelopes.
    Decode,
    /// Loads what they touch.
    Load,
    /// Decides them.
    Decide,
    /// Writes what was decided.
    Commit,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Decode => "decode",
            Self::Load => "load",
            Self::Decide => "decide",
            Self::Commit => "commit",
        }
    }

    /// It took so long.
    pub fn took(self, time: Duration) {
        metrics::histogram!(PHASES, "phase" => self.name()).record(time.as_secs_f64());
    }
}

fn describe() {
    use metrics::{describe_counter, describe_gauge, describe_histogram};
    describe_histogram!(PHASES, "How long a batch's phase took: fetch, decode, load, decide, commit");
    describe_counter!("seqgate_batches_total", "Transactions of partitions");
    describe_counter!("seqgate_batches_redone_total", "Transactions decided again after a lost race or a failure");
    describe_counter!("seqgate_received_total", "Deliveries taken, over the store's whole life");
    describe_gauge!("seqgate_verdicts", "Deliveries by their present verdict, over the store's whole life");
    describe_gauge!("seqgate_offset", "The next offset to read");
    describe_gauge!("seqgate_entities", "Entities with at least one revision");
    describe_gauge!("seqgate_ghost_entities", "Entities that have only waiting events");
    describe_gauge!("seqgate_blocked_entities", "Entities that something holds: a dead letter, rules, a conflict");
    describe_gauge!("seqgate_open", "What is not done: waiting events, dead letters, messages, conflicts, timers");
    describe_gauge!("seqgate_oldest_timestamp_seconds", "Since when the oldest of them is open; 0 for none");
    describe_gauge!("seqgate_alarms", "Alarms that stand");
    describe_gauge!("seqgate_log_bytes", "What an embedded source's log holds");
    describe_gauge!("seqgate_log_events", "How many events it holds");
    describe_gauge!("seqgate_log_max_bytes", "What it may hold");
    describe_counter!("seqgate_ingest_requests_total", "Requests to POST /v1/events, by outcome");
    describe_counter!("seqgate_ingest_events_total", "Events that POST /v1/events took");
}
