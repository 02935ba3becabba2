//! R7: one `run` at a time on an embedded database.
