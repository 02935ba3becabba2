//! Scenarios: stories about one entity, told in JSON files, that a machine's rules must bear out.
//!
//! The runner keeps one entity and does for it what the host does once an event's turn has come: it asks the rules,
//! checks their answer against the edges they declare, starts and cancels timers, and drops them all in a terminal
//! state. It knows neither Wasm nor a store, so that the same files hold for rules that run natively in `cargo test`
//! and for the compiled component (`seqgate rules test`). Ordering, gaps and duplicates are the host's affair and have
//! no place here: every step of a story is decided.
//!
//! Whatever answers is a [`Subject`]. [`load`] reads a folder, [`run`] tells its stories:
//!
//! ```no_run
//! # fn example(subject: &mut dyn seqgate_scenario::Subject) -> Result<(), seqgate_scenario::LoadError> {
//! let stories = seqgate_scenario::load("machines/orders/scenarios".as_ref())?;
//! let report = seqgate_scenario::run(subject, &stories);
//! assert!(report.is_ok(), "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! # The file
//!
//! One file is one story. Unknown members are errors.
//!
//! ```json
//! {
//!   "title": "a payment of another amount is refused, the right one is taken",
//!   "start": "2026-11-30T10:00:00Z",
//!   "steps": [
//!     { "event": "order.created", "data": { "total": 1999, "currency": "EUR" },
//!       "expect": { "state": "pending", "timers": { "payment-timeout": "2026-11-30T10:30:00Z" } } },
//!     { "event": "order.paid", "data": { "amount": 1, "currency": "EUR" }, "after": "5m",
//!       "expect": { "illegal": "amount-differs" } },
//!     { "event": "order.paid", "data": { "amount": 1999, "currency": "EUR" },
//!       "expect": { "state": "paid", "timers": {},
//!                   "messages": [{ "topic": "fulfilment", "type": "fulfilment.requested" }] } }
//!   ]
//! }
//! ```
//!
//! The members of a step are described at [`Step`], those of `expect` at [`Expect`]. A story may begin with an entity that
//! stands somewhere already: `given`, see [`Given`]. `seqgate entity history --as-scenario` and `dead-letter show --as-test`
//! write stories about what really happened.

mod check;
mod exact;
mod load;
mod model;
mod run;
mod story;
mod times;
mod world;

pub use check::{Differs, check};
pub use load::{LoadError, load, parse};
pub use model::{
    Dependency, Description, Edge, Effect, Entity, Event, Failure, Fault, Message, Origin, PendingTimer, Reason,
    Rejection, StateInfo, Subject, Transition, Trigger, When,
};
pub use run::{Mismatch, Report, run};
pub use story::{Clock, DependencyText, Expect, ExpectedMessage, Given, Payload, Step, Story, Timers, What};
pub use world::{Input, Outcome, World};
