//! The core in a simulated host: tables in memory, batches, restarts, two partitions at a time.

pub mod drive;
pub mod memory;
pub mod names;
pub mod native;
pub mod real;
