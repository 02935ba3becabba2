//! Host time. Everything that needs a time takes it from a [`Clock`], so that tests set it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Gives the time in milliseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// A test's.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at `at` until it is set.
    pub fn manual(at: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(at)))
    }

    /// Now.
    pub fn now(&self) -> i64 {
        match self {
            Self::System => match SystemTime::now().duration_since(UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
            },
            Self::Manual(at) => at.load(Ordering::SeqCst),
        }
    }

    /// Sets a manual clock; does nothing to the machine's.
    pub fn set(&self, to: i64) {
        if let Self::Manual(at) = self {
            at.store(to, Ordering::SeqCst);
        }
    }
}
