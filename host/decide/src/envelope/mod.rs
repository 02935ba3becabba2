//! R1: bytes in, an event or a reason out.

pub mod depends;
mod json;
mod read;
#[cfg(test)]
mod tests;

pub use json::{MAX_DEPTH, depth};
pub use read::{Limits, Received, decode};

use std::sync::Arc;

use crate::event::Event;
use crate::ids::EntityId;
use crate::rules::Reason;
use crate::setup::Ordering;

/// What a line or record turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A readable event.
    Event(Arc<Event>),
    /// An envelope that cannot be understood.
    Malformed(Malformed),
}

/// Why an envelope cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// A stable code, and what is wrong with it.
    pub reason: Reason,
    /// The entity that it names all the same: in causal and arrival machines it is a refusal of that entity (R5).
    pub entity: Option<EntityId>,
}

/// What decoding has to know about the configured machines.
pub trait Directory {
    /// The ordering of a machine; `None` when it is not configured.
    fn ordering(&self, machine: &str) -> Option<Ordering>;
}

/// U+0000–001F and U+007F–009F.
pub(crate) fn is_control(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}')
}

/// A text from outside, short enough for a message and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 80;
    let mut out: String = text.chars().take(MOST).map(|c| if is_control(c) { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        out.push('…');
    }
    out
}
