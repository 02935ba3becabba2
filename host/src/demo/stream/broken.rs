//! Lines that are no events.

use rand::RngExt as _;
use rand::rngs::StdRng;
use seqgate_decide::verdict::Verdict;

use super::truth::{Life, Line};

/// A line that cannot be understood. Such a line has no identity: delivered twice, it is malformed twice.
pub fn line(n: usize, rng: &mut StdRng) -> Life {
    let text = match rng.random_range(0..7) {
        0 => format!(r#"{{"specversion":"1.0","id":"broken-{n}","source":"/shop","type":"order.crea"#),
        1 => with(n, r#""machine":"invoices","subject":"x","entityversion":1"#),
        2 => with(n, r#""machine":"orders","entityversion":1"#),
        3 => with(n, r#""machine":"orders","subject":"x","entityversion":1.5"#),
        4 => with(n, r#""machine":"orders","subject":"x","entityversion":18446744073709551616"#),
        5 => with(n, r#""machine":"orders","subject":"x","entityversion":1,"subject":"y""#),
        _ => "PING".to_owned(),
    };
    let line = Line { text, verdict: Verdict::Malformed };
    let copies = if rng.random_bool(0.2) { 2 } else { 1 };
    Life { lines: vec![line; copies], ..Life::default() }
}

fn with(n: usize, rest: &str) -> String {
    format!(r#"{{"specversion":"1.0","id":"broken-{n}","source":"/shop","type":"order.created",{rest}}}"#)
}
