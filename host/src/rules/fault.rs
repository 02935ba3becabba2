//! What ended a call, by a stable code and in words that name the guest's own function.

use seqgate_decide::rules::Fault;
use wasmtime::{AsContextMut, FrameInfo, Trap, WasmCoreDump};

use super::engine::STACK as STACK_SIZE;
use super::error::chain;
use super::limits::{Exceeded, Exhausted, Limits, RETRY_TIME};

/// The guest used up its fuel: an endless loop, or an input that is too large for the limit.
pub const FUEL: &str = "fuel";
/// It was still running after [`RETRY_TIME`] times the time limit, with fuel left (R5).
pub const TIME: &str = "time";
/// It asked for more memory than the limit.
pub const MEMORY: &str = "memory";
/// It asked for more table elements than the limit.
pub const TABLE: &str = "table";
/// It recursed until its stack was used up.
pub const STACK: &str = "stack";
/// It trapped: a panic, a division by zero, an access out of bounds.
pub const TRAP: &str = "trap";
/// Its answer holds more bytes than the limit.
pub const RESULT_TOO_LARGE: &str = "result-too-large";
/// Its answer is not one of the contract's: bad UTF-8, an unknown variant, a pointer out of its memory.
pub const RESULT_INVALID: &str = "result-invalid";
/// The host could not make an instance. Not the guest's doing: the caller retries the batch, and records no verdict.
pub use seqgate_decide::rules::UNAVAILABLE;

/// The longest text that is taken from a guest, in bytes (R5).
pub const MAX_TEXT: usize = 4 << 10;

/// The global that a guest may export to say why it panics: the address, in its `memory`, of a little-endian u32
/// length and that many bytes of UTF-8. Length 0 says nothing. Read after a trap only, so a guest pays nothing for it.
pub const PANIC_EXPORT: &str = "seqgate_panic";

/// Why a call gave no answer.
pub(super) enum Ended {
    /// The guest's doing.
    Fault(Fault),
    /// The time limit, with fuel left: perhaps the host was slow (R5).
    TimedOut(Fault),
}

/// Text from a guest, fit to store and show: at most [`MAX_TEXT`] bytes, cut between characters and marked with `…`;
/// NUL becomes U+FFFD (R5).
pub(super) fn bounded(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT - '…'.len_utf8()));
        text.push('…');
    }
    if text.contains('\0') {
        text = text.replace('\0', "\u{fffd}");
        // A replacement is longer than what it replaces.
        return if text.len() > MAX_TEXT { bounded(text) } else { text };
    }
    text
}

/// Tells what ended a call of `function`. The store is still the call's: a trap leaves the guest's memory readable.
pub(super) fn explain(error: &wasmtime::Error, function: &str, limits: &Limits, mut store: impl AsContextMut) -> Ended {
    let at = guest_function(error, function);
    let fault = |code, what: String| Fault::new(code, bounded(format!("{what}, in {at}")));
    if let Some(exceeded) = error.downcast_ref::<Exceeded>() {
        let code = match exceeded {
            Exceeded::Memory { .. } => MEMORY,
            Exceeded::Table { .. } => TABLE,
        };
        return Ended::Fault(fault(code, exceeded.to_string()));
    }
    if let Some(exhausted) = error.downcast_ref::<Exhausted>() {
        return Ended::Fault(fault(UNAVAILABLE, exhausted.to_string()));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            Ended::Fault(fault(FUEL, format!("used up its fuel; the limit is {} (limits.fuel)", limits.fuel)))
        }
        Some(Trap::Interrupt) => Ended::TimedOut(fault(
            TIME,
            format!(
                "still running after {:?}, {RETRY_TIME} times the limit of {:?} (limits.time), with fuel left",
                limits.time.saturating_mul(RETRY_TIME),
                limits.time
            ),
        )),
        Some(Trap::StackOverflow) => Ended::Fault(fault(
            STACK,
            format!("recursed until its stack was used up; the limit is {STACK_SIZE} bytes (fixed)"),
        )),
        Some(trap) => {
            let what = match panic_text(error, &mut store) {
                Some(text) => format!("panicked: {text}"),
                None => trap.to_string(),
            };
            Ended::Fault(fault(TRAP, what))
        }
        None => {
            // wasmtime keeps the type of this one error to itself.
            let text = chain(error);
            let (code, what) = if text.contains("fuel allocated for hostcalls has been exhausted") {
                (
                    RESULT_TOO_LARGE,
                    format!("answered with too much; the limit is {} bytes (limits.result)", limits.result),
                )
            } else {
                (RESULT_INVALID, format!("answered what the contract does not allow: {text}"))
            };
            Ended::Fault(Fault::new(code, bounded(format!("{what}, from `{function}`"))))
        }
    }
}

/// The innermost function of the guest that is its own, not the standard library's way of giving up.
fn guest_function(error: &wasmtime::Error, called: &str) -> String {
    let frames = error.downcast_ref::<WasmCoreDump>().map_or(&[][..], WasmCoreDump::frames);
    let names = frames.iter().map(|frame| (frame, frame.func_name().map(|name| format!("{:#}", demangled(name)))));
    let mut first = None;
    for (frame, name) in names {
        match name {
            Some(name) if !is_machinery(&name) => return format!("`{name}` (called by `{called}`)"),
            Some(_) => {}
            None => {
                first.get_or_insert_with(|| nameless(frame));
            }
        }
    }
    match first {
        Some(first) => format!("{first} of `{called}` (no names: strip only debuginfo to keep them)"),
        None => format!("`{called}`"),
    }
}

fn demangled(name: &str) -> rustc_demangle::Demangle<'_> {
    rustc_demangle::demangle(name)
}

fn nameless(frame: &FrameInfo) -> String {
    match frame.module_offset() {
        Some(offset) => format!("function {} at {offset:#x}", frame.func_index()),
        None => format!("function {}", frame.func_index()),
    }
}

fn is_machinery(name: &str) -> bool {
    let name = name.trim_start_matches('<');
    ["core::", "std::", "alloc::", "__rust", "rust_", "abort", "dlmalloc::", "seqgate_guest::"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// What the guest left at [`PANIC_EXPORT`].
fn panic_text(error: &wasmtime::Error, store: &mut impl AsContextMut) -> Option<String> {
    let dump = error.downcast_ref::<WasmCoreDump>()?;
    dump.instances().iter().find_map(|instance| {
        let address = instance.get_global(&mut *store, PANIC_EXPORT)?.get(&mut *store).i32()?;
        let memory = instance.get_memory(&mut *store, "memory")?;
        let data = memory.data(&*store);
        let at = usize::try_from(address.cast_unsigned()).ok()?;
        let (length, text) = data.get(at..)?.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let text = text.get(..length.min(MAX_TEXT))?;
        (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned())
    })
}

impl Ended {
    pub(super) fn into_fault(self) -> Fault {
        match self {
            Self::Fault(fault) | Self::TimedOut(fault) => fault,
        }
    }
}
