//! The pure decision core of Seqgate.

pub mod canonical;
pub mod decide;
pub mod digest;
pub mod envelope;
pub mod event;
pub mod graph;
pub mod ids;
pub mod machine;
pub mod rules;
pub mod setup;
pub mod verdict;
pub mod world;
pub mod writes;
