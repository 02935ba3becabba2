//! A panic's text, left where the host looks for it after a trap.
//!
//! A component without imports can tell nobody why it panics. But the host may read its memory once it has trapped: the
//! module exports the address of [`TEXT`], which holds a length and that many bytes of UTF-8.
#![cfg(target_family = "wasm")]
// The attribute that exports a name is `unsafe`, because two statics of one name would clash. Nothing else here is.
#![allow(unsafe_code)]

use std::fmt::Write;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering::Relaxed};

/// The longest text, in bytes; what is longer is cut.
const MOST: usize = 1020;

/// A length, little-endian as all of Wasm is, and the text.
#[repr(C)]
pub struct Slot {
    length: AtomicU32,
    text: [AtomicU8; MOST],
}

#[unsafe(export_name = "seqgate_panic")]
pub static TEXT: Slot = Slot { length: AtomicU32::new(0), text: [const { AtomicU8::new(0) }; MOST] };

/// From now on a panic leaves its text. Called first by each export; every decision has an instance of its own.
pub(crate) fn listen() {
    std::panic::set_hook(Box::new(leave));
}

fn leave(panic: &PanicHookInfo<'_>) {
    let mut at = Writer(0);
    // A text that is too long is cut: an error here is the end of the room.
    let _ = write!(at, "{}", panic.payload_as_str().unwrap_or("a panic without a text"));
    if let Some(place) = panic.location() {
        let _ = write!(at, " ({}:{})", place.file(), place.line());
    }
    TEXT.length.store(at.0 as u32, Relaxed);
}

struct Writer(usize);

impl Write for Writer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for byte in text.bytes() {
            TEXT.text.get(self.0).ok_or(std::fmt::Error)?.store(byte, Relaxed);
            self.0 += 1;
        }
        Ok(())
    }
}
