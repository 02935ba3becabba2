//! What the store promises, on real files.

mod guards;
mod lists;
mod opening;
mod plans;
mod registry;
mod round_trip;
mod statements;
mod support;
