//! The native test kit: a machine's rules without Wasm.
//!
//! [`scenario_tests!`](crate::scenario_tests) tells the stories in the crate's `scenarios/` folder; their format is
//! described at [`scenario`]. [`given`] and [`absent`] are for a test in code; a migration is tested by calling
//! [`Machine::migrate`](crate::Machine::migrate).
//!
//! ```
//! # mod tickets {
//! # use seqgate_guest::prelude::*;
//! # seqgate_guest::table! {
//! #     pub machine Tickets "tickets", schema 1;
//! #     states { Open "open"; Closed "closed" terminal; }
//! #     events { Opened "ticket.opened": absent => Open; Closed "ticket.closed": Open => Closed; }
//! # }
//! # impl Machine for Tickets {
//! #     type Data = ();
//! #     fn apply(_: Option<()>, event: Event, cx: &Context<Self>) -> Answer<Self> {
//! #         Ok(cx.to(if matches!(event, Event::Opened) { State::Open } else { State::Closed }, ()))
//! #     }
//! # }
//! # }
//! # use tickets::{State, Tickets};
//! use seqgate_guest::testing::given;
//!
//! given::<Tickets>("ticket.opened", "{}")
//!     .when("ticket.closed", "")
//!     .then(State::Closed)
//!     .then_sends(&[])
//!     .when("ticket.closed", "")
//!     .then_illegal("wrong-state");
//! ```

mod case;
mod convert;
mod native;
mod stories;

pub use case::{Case, absent, given};
pub use native::Native;
pub use seqgate_scenario as scenario;
pub use stories::tell_all;
