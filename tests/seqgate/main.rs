//! The integration tests of Seqgate, in one binary: a module for each guarantee, and the simulated histories.
#![allow(clippy::unwrap_used)]

mod cases;
mod histories;
mod kills;
mod program;
mod sim;
mod sources;
mod stream;
mod tables;
