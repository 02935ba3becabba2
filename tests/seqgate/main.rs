//! The integration tests of Seqgate, in one binary: a module for each guarantee, and the simulated histories.
#![allow(clippy::unwrap_used)]

mod cases;
mod guarantees;
mod guide;
mod hand;
mod histories;
mod hostile;
mod ingest;
mod kills;
mod live;
mod program;
mod rules_in_force;
mod sim;
mod sources;
mod stop;
mod stream;
mod tables;
