//! What one call into a guest may use, and who notices when it asks for more (G10).

use std::time::Duration;

use wasmtime::ResourceLimiter;

use super::error::chain;

/// Bounds of one call. Every field holds for each decision on its own: nothing carries over. Whoever runs into one is
/// told its value, and the key of the machine's configuration by which it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, roughly: wasmtime's fuel, where bulk operations cost by the byte and a page of memory
    /// [`PAGE_FUEL`](crate::rules::engine::PAGE_FUEL). The limit that decides the same everywhere. Default 50,000,000.
    pub fuel: u64,
    /// Bytes of linear memory, those that the module starts with included. Default 16 MiB.
    pub memory: usize,
    /// Wall clock, to the engine's tick (10 ms by default). A backstop: a call that runs into it with fuel left is
    /// tried once more with [`RETRY_TIME`] times the time (R5). Default 100 ms.
    pub time: Duration,
    /// Elements of all tables together. Default 10,000.
    pub table_elements: usize,
    /// Bytes that an answer may hold once it is out of the guest. Default 4 MiB.
    pub result: usize,
}

/// How much longer a timed-out call may take when it is tried again (R5).
pub const RETRY_TIME: u32 = 10;

/// Core instances, memories and tables of one component. wit-component leaves a guest without imports alone: one
/// instance with one memory and one table.
pub(super) const MODULES: u32 = 4;
pub(super) const MEMORIES: u32 = 1;
pub(super) const TABLES: u32 = 4;

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: 50_000_000,
            memory: 16 << 20,
            time: Duration::from_millis(100),
            table_elements: 10_000,
            result: 4 << 20,
        }
    }
}

/// The limit that a guest ran into. It travels as the cause of the trap that ends the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Exceeded {
    /// Linear memory.
    #[error("asked for {asked} bytes of memory; the limit is {limit} (limits.memory)")]
    Memory { asked: usize, limit: usize },
    /// Table elements.
    #[error("asked for {asked} table elements; the limit is {limit} (limits.tables)")]
    Table { asked: usize, limit: usize },
}

/// The operating system refused memory that the limits allow: not the guest's doing.
#[derive(Debug, thiserror::Error)]
#[error("the system has no memory for the guest: {0}")]
pub(super) struct Exhausted(String);

/// Counts what one store holds. Growth beyond a limit traps instead of answering −1: the trap names the function that
/// asked, and no guest decides by how much memory its host grants (G8).
#[derive(Debug)]
pub(super) struct Limiter {
    memory: usize,
    table_elements: usize,
    memory_used: usize,
    table_used: usize,
    /// What the growth under way adds, to be taken back should it fail.
    growth: usize,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { memory: limits.memory, table_elements: limits.table_elements, memory_used: 0, table_used: 0, growth: 0 }
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let asked = self.memory_used.saturating_add(desired.saturating_sub(current));
        if asked > self.memory {
            return Err(wasmtime::Error::new(Exceeded::Memory { asked, limit: self.memory }));
        }
        self.growth = asked - self.memory_used;
        self.memory_used = asked;
        Ok(true)
    }

    /// Growth beyond the module's own maximum answers −1, as it does everywhere; a host without memory must not look
    /// like that to the guest (G8).
    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory_used -= self.growth;
        if error.is::<std::io::Error>() { Err(wasmtime::Error::new(Exhausted(chain(&error)))) } else { Ok(()) }
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let asked = self.table_used.saturating_add(desired.saturating_sub(current));
        if asked > self.table_elements {
            return Err(wasmtime::Error::new(Exceeded::Table { asked, limit: self.table_elements }));
        }
        self.growth = asked - self.table_used;
        self.table_used = asked;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _: wasmtime::Error) -> wasmtime::Result<()> {
        self.table_used -= self.growth;
        Ok(())
    }

    fn instances(&self) -> usize {
        MODULES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }
}
