//! The orders workload: many orders at once, each from checkout to doorstep, with what delivery does to a stream.
//!
//! An order's events have the versions 1, 2, 3 …; the next event is that of any order that is not done yet, so that keys
//! come in no order and every batch touches as many entities as it can. Some events come again within the next 1,000,
//! some change places with one of the next 20. The same seed gives the same stream, but for its times.

use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// An order's life.
const LIFE: [&str; 5] = ["order.created", "order.paid", "order.shipped", "order.delivered", "order.refunded"];
/// How far behind its first delivery an event may come again.
const AGAIN_WITHIN: usize = 1_000;
/// How far an event may be moved.
const SWAP_WITHIN: usize = 20;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Different events.
    pub events: usize,
    /// Orders that they are about.
    pub entities: usize,
    /// Bytes of each payload; at least 100.
    pub payload: usize,
    /// Parts of the events that come twice.
    pub duplicates: f64,
    /// Parts of the events that change places.
    pub swaps: f64,
    /// What it is made from.
    pub seed: u64,
    /// When it begins, in milliseconds since the epoch.
    pub begins: i64,
}

impl Workload {
    /// Writes the stream to a file of JSON lines.
    ///
    /// # Errors
    /// The file cannot be written, or orders would have more events than an order can have.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let most = self.entities * LIFE.len();
        anyhow::ensure!(
            self.entities > 0 && self.events <= most,
            "{} events are more than {} orders can have; at most {most}",
            self.events,
            self.entities
        );
        let mut rng = StdRng::seed_from_u64(self.seed);
        let events = self.events_in_order(&mut rng);
        let mut file = BufWriter::new(std::fs::File::create(path)?);
        for at in self.delivered(&mut rng) {
            let (order, version) = events[at];
            file.write_all(self.line(order, version, at).as_bytes())?;
        }
        file.flush()?;
        Ok(())
    }

    /// As their authoritative writer would number them.
    fn events_in_order(&self, rng: &mut StdRng) -> Vec<(usize, usize)> {
        // The first orders have one event more where the numbers do not divide.
        let length = |order| self.events / self.entities + usize::from(order < self.events % self.entities);
        let mut open: Vec<(usize, usize)> = (0..self.entities).filter(|o| length(*o) > 0).map(|o| (o, 0)).collect();
        let mut events = Vec::with_capacity(self.events);
        while !open.is_empty() {
            let at = rng.random_range(0..open.len());
            let (order, version) = &mut open[at];
            *version += 1;
            events.push((*order, *version));
            if *version == length(*order) {
                open.swap_remove(at);
            }
        }
        events
    }

    /// The order of delivery, as positions in the order above.
    fn delivered(&self, rng: &mut StdRng) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.events).collect();
        for at in 0..self.events {
            if rng.random_bool(self.swaps) {
                let other = (at + rng.random_range(1..=SWAP_WITHIN)).min(self.events - 1);
                order.swap(at, other);
            }
        }
        let mut placed: Vec<(usize, usize)> = order.into_iter().enumerate().collect();
        for at in 0..self.events {
            if rng.random_bool(self.duplicates) {
                placed.push((at + rng.random_range(1..=AGAIN_WITHIN), placed[at].1));
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        placed.into_iter().map(|(_, at)| at).collect()
    }

    fn line(&self, order: usize, version: usize, at: usize) -> String {
        let kind = LIFE[version - 1];
        // The business intent of a payment; the others are told apart by their id alone.
        let intent = match version {
            2 => format!(r#""idempotencykey":"pay:order-{order}","#),
            _ => String::new(),
        };
        let time = timestamp(self.begins + at as i64);
        let data = payload(version, self.payload);
        format!(
            r#"{{"specversion":"1.0","id":"order-{order}-{version}","source":"/shop/orders","type":"{kind}","subject":"order-{order}","time":"{time}","datacontenttype":"application/json","machine":"orders","entityversion":{version},{intent}"correlationid":"checkout-{order}","data":{data}}}
"#
        )
    }
}

/// What `orders` reads of an event, and members that it does not know to fill the size up.
fn payload(version: usize, size: usize) -> String {
    let mut data = match version {
        1 => r#"{"total":1999,"currency":"EUR","lines":["#.to_owned(),
        2 => r#"{"amount":1999,"currency":"EUR","method":"card","lines":["#.to_owned(),
        3 => r#"{"carrier":"postal","parcel":"DE-4711","lines":["#.to_owned(),
        _ => r#"{"by":"warehouse-3","lines":["#.to_owned(),
    };
    let mut n = 1;
    while data.len() + 60 < size {
        let comma = if n > 1 { "," } else { "" };
        let _ = write!(data, r#"{comma}{{"sku":"sku-{n:04}","count":{n},"price":19.90}}"#);
        n += 1;
    }
    let rest = size.saturating_sub(data.len() + r#"],"note":""}"#.len());
    let _ = write!(data, r#"],"note":"{}"}}"#, "x".repeat(rest));
    data
}

/// RFC 3339, UTC.
fn timestamp(millis: i64) -> String {
    let (days, rest) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    // Days to a date, by Howard Hinnant's `civil_from_days`.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (seconds, millis) = (rest / 1_000, rest % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_rfc_3339() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(1_772_366_400_123), "2026-03-01T12:00:00.123Z");
        assert_eq!(timestamp(1_709_164_800_000), "2024-02-29T00:00:00.000Z");
    }

    #[test]
    fn payloads_have_the_size_that_is_asked_for_and_are_json() {
        for version in 1..=LIFE.len() {
            for size in [100, 300, 1_000] {
                let data = payload(version, size);
                assert_eq!(data.len(), size);
                assert!(serde_json::from_str::<serde_json::Value>(&data).is_ok());
            }
        }
    }
}
