//! Durations (`5s`, `250ms`, `2m`, `6h`, `14d`) and sizes (`64KiB`, `16MiB`, `1GiB`, plain bytes).

use std::time::Duration;

/// Reads a duration.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(format!("`{text}` is no duration; write 250ms, 5s, 2m, 6h or 14d")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` does not begin with a whole number"))?;
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(|| format!("`{text}` is too long"))
}

/// Reads a size in bytes.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let bytes: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(format!("`{text}` is no size; write 64KiB, 16MiB, 1GiB or a number of bytes")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` does not begin with a whole number"))?;
    number.checked_mul(bytes).ok_or_else(|| format!("`{text}` is too large"))
}

/// Writes a size in its largest whole unit, as [`size`] reads it.
pub fn bytes(bytes: &u64) -> String {
    for (unit, shift) in [("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if *bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

fn split(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// Writes a span of milliseconds for people: its largest unit, and the next where it matters.
pub fn span(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0 => format!("{} ms", millis.max(0)),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_exactly() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("14d"), Ok(Duration::from_secs(14 * 86_400)));
        assert_eq!(size("16MiB"), Ok(16 << 20));
        assert_eq!(size("42"), Ok(42));
        for bad in ["", "5", "s", "-5s", "5 parsecs", "99999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        for bad in ["", "MiB", "1.5MiB", "1MB", "99999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
