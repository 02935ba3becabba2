//! The embedded sources' log, read from the store.

use std::sync::Arc;

use super::engine::Engine;
use crate::source::embedded::{Entries, Entry, Log};

/// One source's log. A fault in the store is waited out.
pub(super) struct StoreLog {
    pub engine: Engine,
    pub source: Arc<str>,
}

impl Log for StoreLog {
    fn read(&self, partition: u32, from: u64, bytes: u64) -> Entries<'_> {
        Box::pin(async move {
            let store = &self.engine.store;
            let found = self.engine.patiently("read the log", || store.read_log(&self.source, partition, from, bytes));
            let entry = |e: crate::store::log::LogEntry| Entry { offset: e.offset, at: e.at, bytes: e.bytes };
            Ok(found.await?.into_iter().map(entry).collect())
        })
    }
}
