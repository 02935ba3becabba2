//! The native test kit: a machine's rules without Wasm.
//!
//! [`scenario_tests!`](crate::scenario_tests) tells the stories in the crate's `scenarios/` folder; their format is
//! described in `seqgate-scenario`. [`given`] is for a test in code:
//!
//! ```ignore
//! given::<Orders>("order.created", r#"{"total": 1999, "currency": "EUR"}"#)
//!     .when("order.paid", r#"{"amount": 1999, "currency": "EUR"}"#)
//!     .then(State::Paid)
//!     .then_sends(&["fulfilment.requested"])
//!     .when("order.paid", r#"{"amount": 1999, "currency": "EUR"}"#)
//!     .then_illegal("wrong-state");
//! ```

mod case;
mod convert;
mod native;
mod stories;

pub use case::{Case, given, new};
pub use native::Native;
pub use stories::tell_all;
