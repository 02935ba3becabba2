//! Time, as events carry it. Rules have no clock: the only now is the deciding event's time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A point in time: milliseconds since the Unix epoch, UTC.
///
/// In JSON it is an RFC 3339 text; whatever offset it is read with, it is written in UTC (`Z`). Digits beyond the
/// millisecond are cut.
///
/// ```
/// use seqgate_guest::{Timestamp, minutes};
///
/// let noon: Timestamp = "2026-11-30T13:00:00.5+01:00".parse()?;
/// assert_eq!(noon.to_string(), "2026-11-30T12:00:00.5Z");
/// assert_eq!(noon.checked_add(minutes(30)).map(|t| t.to_string()).as_deref(), Some("2026-11-30T12:30:00.5Z"));
/// # Ok::<(), seqgate_guest::BadTimestamp>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A text that is no RFC 3339 time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTimestamp;

impl fmt::Display for BadTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time is written as in RFC 3339: 2026-11-30T10:00:00Z")
    }
}

impl std::error::Error for BadTimestamp {}

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Later by a length of time, of which parts of a millisecond are cut; `None` beyond the end of time.
    pub fn checked_add(self, length: Duration) -> Option<Self> {
        let millis = u64::try_from(length.as_millis()).ok()?;
        self.0.checked_add_unsigned(millis).map(Self)
    }

    /// Earlier by a length of time, of which parts of a millisecond are cut; `None` before the start of time.
    pub fn checked_sub(self, length: Duration) -> Option<Self> {
        let millis = u64::try_from(length.as_millis()).ok()?;
        self.0.checked_sub_unsigned(millis).map(Self)
    }

    /// How long after `earlier` this is; `None` where it is before.
    pub fn since(self, earlier: Self) -> Option<Duration> {
        (self >= earlier).then(|| Duration::from_millis(self.0.abs_diff(earlier.0)))
    }
}

impl FromStr for Timestamp {
    type Err = BadTimestamp;

    fn from_str(text: &str) -> Result<Self, BadTimestamp> {
        let at = OffsetDateTime::parse(text, &Rfc3339).map_err(|_| BadTimestamp)?;
        let millis = at.unix_timestamp_nanos().div_euclid(1_000_000);
        i64::try_from(millis).map(Self).map_err(|_| BadTimestamp)
    }
}

/// RFC 3339 in UTC; a year that it cannot write (before 0 or after 9999) is shown as milliseconds since the epoch.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000);
        match at.ok().and_then(|at| at.format(&Rfc3339).ok()) {
            Some(text) => f.write_str(&text),
            None => write!(f, "{} ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// So many seconds.
pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// So many minutes.
pub const fn minutes(n: u64) -> Duration {
    Duration::from_secs(60 * n)
}

/// So many hours.
pub const fn hours(n: u64) -> Duration {
    Duration::from_secs(3_600 * n)
}

/// So many days of 24 hours.
pub const fn days(n: u64) -> Duration {
    Duration::from_secs(86_400 * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_lengths() {
        let read = |text: &str| text.parse::<Timestamp>();
        assert_eq!(read("1970-01-01T00:00:00Z"), Ok(Timestamp(0)));
        assert_eq!(read("1969-12-31T23:59:59.9999Z"), Ok(Timestamp(-1)));
        for bad in ["", "2026-11-30", "2026-11-30T10:00:00", "2026-02-30T10:00:00Z", "1764496800000"] {
            assert_eq!(read(bad), Err(BadTimestamp), "{bad}");
        }
        assert_eq!(Timestamp(i64::MAX).checked_add(seconds(1)), None);
        assert_eq!(Timestamp(5_000).since(Timestamp(2_000)), Some(seconds(3)));
        assert_eq!(Timestamp(0).since(Timestamp(1)), None);
        assert_eq!(Timestamp(i64::MAX).to_string(), "9223372036854775807 ms");
    }
}
