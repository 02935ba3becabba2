//! Seqgate's host.

pub mod rules;
