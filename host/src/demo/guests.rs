//! The four machines, built for Wasm with this binary.

/// Each machine's name and its core module, of which the host makes a component when it loads it.
pub const GUESTS: [(&str, &[u8]); 4] = [
    ("orders", include_bytes!(concat!(env!("OUT_DIR"), "/orders.wasm"))),
    ("subscriptions", include_bytes!(concat!(env!("OUT_DIR"), "/subscriptions.wasm"))),
    ("accounts", include_bytes!(concat!(env!("OUT_DIR"), "/accounts.wasm"))),
    ("sensors", include_bytes!(concat!(env!("OUT_DIR"), "/sensors.wasm"))),
];
