//! What a domain team writes Seqgate rules with.
//!
//! A machine is one readable file: a table of states and edges ([`table!`]), the team's own types for an entity's data
//! and for payloads, and a function that decides ([`Machine::apply`]). [`export!`] makes a component of it, and
//! [`scenario_tests!`] tells its stories in `cargo test`, without Wasm.
#![doc = include_str!("../README.md")]

pub mod bindings;
mod component;
mod context;
mod engine;
mod machine;
mod money;
mod panics;
mod payload;
mod refusal;
mod step;
mod table;
mod table_macro;
#[cfg(not(target_family = "wasm"))]
pub mod testing;
mod timestamp;

#[doc(hidden)]
pub use component::Component;
pub use context::Context;
pub use machine::{Answer, Failure, Machine, Old};
pub use money::{Amount, Balance};
pub use payload::{Loose, Text, payload};
pub use refusal::{Dependency, Reason, Refusal};
pub use step::{Message, Step, When, after, at};
#[doc(hidden)]
pub use table::{__check, __concat};
pub use table::{Decode, EdgeRow, Named, OriginRow, StateRow, Table, TriggerRow};
pub use timestamp::{BadTimestamp, Timestamp, days, hours, minutes, seconds};

/// Everything that a machine's file needs: `use seqgate_guest::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Amount, Answer, Balance, Context, Dependency, Failure, Loose, Machine, Message, Old, Reason, Refusal, Text,
        Timestamp, after, at, days, ensure, hours, minutes, note, seconds,
    };
    pub use serde::{Deserialize, Serialize};
}

/// Makes a test of the crate's `scenarios/` folder: every story holds, and every declared edge is taken by one.
#[macro_export]
macro_rules! scenario_tests {
    ($machine:ty) => {
        #[cfg(test)]
        #[test]
        fn scenarios() {
            $crate::testing::tell_all::<$machine>(::core::concat!(::core::env!("CARGO_MANIFEST_DIR"), "/scenarios"));
        }
    };
}
