//! The way of events through the host: a task for each partition takes batches, lets the core decide them, and commits.
//!
//! - [`engine`]: what every task shares, and single decisions in transactions of their own
//! - [`batch`]: one batch, from records to rows; [`partition`]: the task that owns a partition
//! - `log`: the embedded sources' log; [`tend`]: timers, deadlines and the sweep; `prune`: retention; [`rules`]: the rules in
//!   force
//! - [`mod@run`]: starts all of it, and stops it
//!
//! The core decides, the store writes; the runner only carries. It knows neither SQL nor Wasm.

pub mod adopt;
pub mod batch;
pub mod engine;
mod log;
pub mod partition;
mod prune;
pub mod rules;
pub mod run;
pub mod tend;

use std::sync::Arc;

use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::Reason;

use crate::source::SourceError;
use crate::store::StoreError;

pub use engine::{Act, Engine, Observer};
pub use run::{Live, Mode, Report, Stage, run, run_live};

/// Why the runner, or a single action, ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The store cannot go on, or another owner has the partition.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A source cannot go on.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A machine has no rules that can decide.
    #[error("machine `{machine}`: {message}")]
    Rules {
        /// The machine.
        machine: Arc<str>,
        /// What to do.
        message: String,
    },
    /// A person's decision that cannot be carried out; nothing changed.
    #[error("{} ({})", .0.message, .0.code)]
    Refused(Reason),
    /// More than one source feeds a machine whose order would depend on it (R4).
    #[error(
        "machine `{0}` has no versions, and more than one source feeds it: the order between sources would decide; give \
         each source its machine, or declare many_sources = true"
    )]
    ManySources(Arc<str>),
    /// The batch in hand did not end in time.
    #[error("the batch in hand did not end within the time that a stop may take; the state is safe")]
    Late,
    /// A task ended by a panic.
    #[error("a task ended unexpectedly: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

impl RunError {
    /// Whether another process owns what this one wanted to write.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Store(StoreError::Fenced { .. }))
    }
}

/// An entity's address for log lines.
pub(crate) fn named(entity: &EntityId) -> tracing::field::DisplayValue<&EntityId> {
    tracing::field::display(entity)
}
