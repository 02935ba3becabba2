//! Seqgate's host.

pub mod store;
