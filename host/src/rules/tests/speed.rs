//! How long a decision takes.
