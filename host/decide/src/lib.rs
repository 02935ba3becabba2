//! The pure decision core of Seqgate.

pub mod canonical;
pub mod digest;
pub mod envelope;
pub mod event;
pub mod ids;
pub mod rules;
pub mod verdict;
pub mod world;
pub mod writes;
