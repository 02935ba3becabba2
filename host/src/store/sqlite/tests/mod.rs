//! What the store promises, on real files.

#![allow(clippy::unwrap_used)]

mod guards;
mod kills;
mod lists;
mod opening;
mod plans;
mod prune;
mod registry;
mod round_trip;
mod statements;
mod support;
