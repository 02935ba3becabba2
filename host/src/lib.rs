//! Seqgate's host.
