//! The independent oracle of the project's tests.
//!
//! Three things, none of which knows the engine:
//!
//! * [`History::generate`] writes a seeded history: raw lines with what they mean, timers that come due, people's
//!   decisions, restarts. The generator knows what the bytes mean because it wrote them, so the oracle needs no parser.
//! * [`Oracle`] says what must become of it. It is written from the exact rules (cited as R1 to R12) for being obviously
//!   right, not for being fast: an entity is the list of its changes, and is folded from nothing whenever it is looked at.
//! * [`replay`] takes the order in which an engine committed its acts ([`Recorded`]), checks that the order is one
//!   that the rules allow, and returns the verdicts, the final [`Observed`] and the [`Coverage`].
//!
//! The crate shares no code with the engine's core, on purpose: a rule misread once would otherwise be misread twice.

mod coverage;
mod generate;
mod history;
mod machines;
mod observed;
mod oracle;
mod replay;
mod setup;
mod shrink;
mod value;

pub use coverage::Coverage;
pub use history::*;
pub use machines::facts;
pub use observed::*;
pub use oracle::Oracle;
pub use replay::{Replayed, act_of, replay, serial};
pub use setup::*;
pub use shrink::{in_logs, shrink};
pub use value::Value;
