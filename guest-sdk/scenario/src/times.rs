//! Points in time and lengths of time, as stories write them.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Where a story's clock stands at first, unless it says otherwise: 2026-01-01T00:00:00Z.
pub(crate) const DEFAULT_START: i64 = 1_767_225_600_000;

/// Milliseconds since the epoch of an RFC 3339 text; digits beyond the millisecond are cut.
pub(crate) fn parse_instant(text: &str) -> Result<i64, String> {
    let at = OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| format!("`{text}` is no RFC 3339 time such as 2026-11-30T10:00:00Z"))?;
    // The years that RFC 3339 can write lie far within the range of milliseconds in an i64.
    i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).map_err(|_| format!("`{text}` is out of range"))
}

/// The RFC 3339 text of a time, or its milliseconds where RFC 3339 has no year for it.
pub(crate) fn show_instant(millis: i64) -> String {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000)
        .ok()
        .and_then(|at| at.format(&Rfc3339).ok())
        .unwrap_or_else(|| format!("{millis} ms"))
}

/// A length of time: digits and one of `ms`, `s`, `m`, `h`, `d`.
pub(crate) fn parse_length(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no length of time such as 90s, 30m, 12h or 14d");
    let digits = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let count: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let unit = match &text[digits..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    count.checked_mul(unit).map(Duration::from_millis).ok_or_else(wrong)
}

/// A time plus milliseconds, at the end of time where it would pass it.
pub(crate) fn plus(millis: i64, length: u64) -> i64 {
    millis.saturating_add_unsigned(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_go_there_and_back() {
        assert_eq!(parse_instant("2026-01-01T00:00:00Z"), Ok(DEFAULT_START));
        assert_eq!(parse_instant("2026-01-01T01:00:00.0019+01:00"), Ok(DEFAULT_START + 1));
        assert_eq!(show_instant(DEFAULT_START + 1), "2026-01-01T00:00:00.001Z");
        assert!(parse_instant("yesterday").is_err());
    }

    #[test]
    fn lengths_have_a_unit() {
        assert_eq!(parse_length("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_length("14d"), Ok(Duration::from_secs(14 * 86_400)));
        for wrong in ["", "30", "m", "1.5h", "99999999999999999999s", "3 h"] {
            assert!(parse_length(wrong).is_err(), "{wrong}");
        }
    }
}
