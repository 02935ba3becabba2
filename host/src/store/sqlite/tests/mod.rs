//! What the store promises, on real files.
