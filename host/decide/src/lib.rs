//! The pure decision core of Seqgate.

pub mod ids;
pub mod rules;
