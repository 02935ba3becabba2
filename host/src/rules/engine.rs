//! The one compiler and runtime that all rules share, and the thread that keeps its time.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::{Config, OperatorCost, PoolingAllocationConfig, VariableOperatorCost, WasmFeatures};

use super::error::HostError;
use super::limits::{MEMORIES, MODULES, TABLES};

/// Fuel for each page (64 KiB) by which a guest grows its memory, above the instruction itself. wasmtime charges
/// nothing by default, although the host then has to find and clear the page.
pub const PAGE_FUEL: u8 = 255;

/// Frames of a guest's stack that a fault looks at for the function to name.
const BACKTRACE_FRAMES: usize = 32;

/// Bytes at the start of a pooled memory, and of a table, that are wiped by hand between two uses. What lies beyond goes
/// back to the system, which costs two system calls and a page fault for each page that is used again. Guests that
/// [`build`](super::build::build) makes fit.
const KEEP_RESIDENT: usize = 512 << 10;
const KEEP_TABLE: usize = 64 << 10;

/// Room for a table in the pool, and so the most that [`Limits::table_elements`](super::Limits::table_elements) may be.
pub const MAX_TABLE_ELEMENTS: usize = 100_000;

/// Room for a memory in the pool, and so the most that [`Limits::memory`](super::Limits::memory) may be.
pub const MAX_MEMORY: usize = 4 << 30;

/// The default of [`EngineOptions::stack`], in bytes.
pub const STACK: usize = 512 << 10;

/// How an instance gets its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Mapped for each instance and unmapped after it.
    OnDemand,
    /// From slots that are reserved once and wiped between uses. About twice as fast, see
    /// [`instance`](super::instance).
    Pooled {
        /// Slots, which is how many calls run at a time; a further one waits for the end of another. Each reserves
        /// about 4 GiB of address space, and of memory what its last guests used, at most 576 KiB while idle.
        instances: u32,
    },
}

/// How to set up an [`Engine`].
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// How instances get their memory.
    pub allocation: Allocation,
    /// How often the time limit is looked at. A call may outlive its limit by this much.
    pub tick: Duration,
    /// The most stack that a guest may use, in bytes; it is the stack of the calling thread, which must hold more.
    pub stack: usize,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { allocation: Allocation::Pooled { instances: 64 }, tick: Duration::from_millis(10), stack: STACK }
    }
}

/// A handle to the engine; cloning is cheap. The last one to go, loaded rules included, ends the ticker and waits for it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    wasm: wasmtime::Engine,
    tick: Duration,
    slots: Slots,
    _ticker: Ticker,
}

impl Engine {
    /// An engine with its ticker running.
    ///
    /// # Errors
    /// [`HostError::Engine`] where wasmtime refuses the settings or the platform, [`HostError::Ticker`] where no thread
    /// can be started. Neither is any guest's doing.
    pub fn new(options: &EngineOptions) -> Result<Self, HostError> {
        let wasm = wasmtime::Engine::new(&config(options)).map_err(HostError::engine)?;
        let ticker = Ticker::start(&wasm, options.tick)?;
        let free = match options.allocation {
            Allocation::OnDemand => u32::MAX,
            Allocation::Pooled { instances } => instances,
        };
        let slots = Slots { free: Mutex::new(free), freed: Condvar::new() };
        Ok(Self { inner: Arc::new(Inner { wasm, tick: options.tick, slots, _ticker: ticker }) })
    }

    pub(super) fn wasm(&self) -> &wasmtime::Engine {
        &self.inner.wasm
    }

    /// Waits for room for one more instance: a pool that is used up would answer with an error. Instances live as long
    /// as one call, so the wait is as bounded as that is.
    pub(super) fn slot(&self) -> Slot<'_> {
        let slots = &self.inner.slots;
        let free = slots.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = slots.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(slots)
    }

    /// The number of ticks after which `time` has certainly passed: the tick under way may end at once.
    pub(super) fn ticks(&self, time: Duration) -> u64 {
        let ticks = time.as_nanos().div_ceil(self.inner.tick.as_nanos().max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX).saturating_add(1)
    }
}

struct Slots {
    free: Mutex<u32>,
    freed: Condvar,
}

/// Room for one instance; outlives the store that it is for.
pub(super) struct Slot<'a>(&'a Slots);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

fn config(options: &EngineOptions) -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .consume_fuel(true)
        .operator_cost(OperatorCost {
            variable: VariableOperatorCost { memory_grow_per_page: PAGE_FUEL, ..VariableOperatorCost::new() },
            ..OperatorCost::new()
        })
        .epoch_interruption(true)
        .max_wasm_stack(options.stack)
        .wasm_backtrace_max_frames(NonZeroUsize::new(BACKTRACE_FRAMES))
        .coredump_on_trap(true);
    // The same bits on every processor (G8): no NaN payloads, no instructions whose result the processor chooses, no
    // memory that another thread could write.
    config
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_features(WasmFeatures::THREADS | WasmFeatures::SHARED_EVERYTHING_THREADS, false)
        .wasm_memory64(false)
        .wasm_multi_memory(false);
    if let Allocation::Pooled { instances } = options.allocation {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(instances)
            .total_core_instances(instances.saturating_mul(MODULES))
            .total_memories(instances.saturating_mul(MEMORIES))
            .total_tables(instances.saturating_mul(TABLES))
            .max_core_instances_per_component(MODULES)
            .max_memories_per_component(MEMORIES)
            .max_tables_per_component(TABLES)
            .max_memory_size(MAX_MEMORY)
            .table_elements(MAX_TABLE_ELEMENTS)
            .linear_memory_keep_resident(KEEP_RESIDENT)
            .table_keep_resident(KEEP_TABLE);
        config.allocation_strategy(pool);
    }
    config
}

/// Advances the engine's epoch. It holds the engine weakly, so that it keeps nothing alive.
struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: &wasmtime::Engine, tick: Duration) -> Result<Self, HostError> {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, weak) = (Arc::clone(&stop), engine.weak());
        let thread = std::thread::Builder::new()
            .name("seqgate-epoch".into())
            .spawn(move || {
                while !stopped.load(Ordering::Acquire) {
                    std::thread::park_timeout(tick);
                    let Some(engine) = weak.upgrade() else { return };
                    engine.increment_epoch();
                }
            })
            .map_err(HostError::Ticker)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A ticker that panicked has nothing more to say, and a panic here would hide its message.
            let _ = thread.join();
        }
    }
}
