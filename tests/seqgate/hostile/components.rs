//! Components that are refused before any event meets them.
