//! Money, exact.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The largest amount and balance: 2^127 − 1.
const MAX: u128 = i128::MAX as u128;

/// A positive amount of money in minor units (cents): 1 to [`Amount::MAX`].
///
/// In JSON it is an integer without fraction or exponent, or a string of decimal digits without leading zeros; it is
/// written as an integer. It never passes through a float, so every digit survives. It is read with `serde_json` only,
/// and not behind `#[serde(flatten)]` or in an untagged enum, where serde has turned large numbers into floats before
/// anybody can look: there it is an error, never another amount.
///
/// ```
/// use seqgate_guest::Amount;
///
/// let read = |json: &str| serde_json::from_str::<Amount>(json);
/// assert_eq!(read("92233720368547758070")?, read("\"92233720368547758070\"")?);
/// assert_eq!(serde_json::to_string(&read("92233720368547758070")?)?, "92233720368547758070");
/// for wrong in ["0", "-1", "1.0", "1e3", "\"01\"", "\"\"", "null", "170141183460469231731687303715884105728"] {
///     assert!(read(wrong).is_err());
/// }
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

/// What somebody has, in minor units: 0 to [`Balance::MAX`].
///
/// Read and written like an [`Amount`], and may be 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Balance(u128);

impl Amount {
    /// The largest: 2^127 − 1.
    pub const MAX: Self = Self(MAX);

    /// An amount, unless it is 0 or too large.
    pub const fn new(minor: u128) -> Option<Self> {
        if minor == 0 || minor > MAX { None } else { Some(Self(minor)) }
    }

    /// In minor units.
    pub const fn minor(self) -> u128 {
        self.0
    }

    /// The sum, unless it is too large.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        // Two amounts lie below 2^128 together.
        Self::new(self.0 + other.0)
    }

    /// The difference, unless nothing or less remains.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        Self::new(self.0.saturating_sub(other.0))
    }
}

impl Balance {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest: 2^127 − 1.
    pub const MAX: Self = Self(MAX);

    /// A balance, unless it is too large.
    pub const fn new(minor: u128) -> Option<Self> {
        if minor > MAX { None } else { Some(Self(minor)) }
    }

    /// In minor units.
    pub const fn minor(self) -> u128 {
        self.0
    }

    /// Whether there is nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The balance after a credit, unless it is too large.
    pub const fn checked_add(self, amount: Amount) -> Option<Self> {
        Self::new(self.0 + amount.0)
    }

    /// The balance after a debit, unless the amount is not there.
    pub const fn checked_sub(self, amount: Amount) -> Option<Self> {
        match self.0.checked_sub(amount.0) {
            Some(rest) => Some(Self(rest)),
            None => None,
        }
    }
}

/// Digits as JSON writes an integer: at least one, no sign, no leading zero.
fn digits(text: &str) -> Option<u128> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    // The length alone tells that 40 digits are too many; parsing refuses what is above 2^128.
    if plain && !leading { text.parse().ok() } else { None }
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u128>, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    let json = raw.get();
    Ok(if json.starts_with('"') {
        let text: String = serde_json::from_str(json).map_err(D::Error::custom)?;
        digits(&text)
    } else {
        digits(json)
    })
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)?
            .and_then(Self::new)
            .ok_or_else(|| D::Error::custom("an amount is a whole number of minor units above 0 and below 2^127"))
    }
}

impl<'de> Deserialize<'de> for Balance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer)?
            .and_then(Self::new)
            .ok_or_else(|| D::Error::custom("a balance is a whole number of minor units below 2^127"))
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u128(self.0)
    }
}

impl Serialize for Balance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u128(self.0)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "170141183460469231731687303715884105727";

    #[test]
    fn every_digit_survives_inside_a_struct() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Money {
            amount: Amount,
            rest: Option<Balance>,
        }
        for (json, written) in [
            (format!(r#"{{"amount":{TOP},"rest":0}}"#), None),
            (r#"{"amount":9007199254740993,"rest":92242727567802499063}"#.to_owned(), None),
            (r#"{"amount":"\u0031999","rest":null}"#.to_owned(), Some(r#"{"amount":1999,"rest":null}"#)),
        ] {
            let money: Money = serde_json::from_str(&json).expect(&json);
            assert_eq!(serde_json::to_string(&money).expect(&json), written.unwrap_or(&json));
        }
    }

    #[test]
    fn anything_else_is_no_amount() {
        let above = "170141183460469231731687303715884105728";
        let far = "9".repeat(200);
        for text in ["0", "-0", "-1", "+1", "1.0", "1e2", "00", "01", "", " 1", "1 ", "1_0", "١", above, &far] {
            let (number, string) = (text.to_owned(), format!("\"{text}\""));
            // White space around a number is JSON's, and no part of it.
            if text.trim() == text {
                assert!(serde_json::from_str::<Amount>(&number).is_err(), "{number}");
            }
            assert!(serde_json::from_str::<Amount>(&string).is_err(), "{string}");
        }
        for other in ["null", "true", "[1]", "{}"] {
            assert!(serde_json::from_str::<Amount>(other).is_err(), "{other}");
        }
        assert_eq!(serde_json::from_str::<Balance>("0").expect("a balance"), Balance::ZERO);
    }

    #[test]
    fn what_has_become_a_float_is_refused_and_not_rounded() {
        let lost: serde_json::Value = serde_json::from_str("92233720368547758070").expect("JSON");
        assert!(serde_json::from_value::<Amount>(lost).is_err());
    }

    #[test]
    fn sums_stop_at_the_ends() {
        let one = Amount::new(1).expect("an amount");
        assert_eq!(Amount::MAX.checked_add(one), None);
        assert_eq!(Amount::MAX.checked_add(Amount::MAX), None);
        assert_eq!(one.checked_sub(one), None);
        assert_eq!(Balance::MAX.checked_add(one), None);
        assert_eq!(Balance::ZERO.checked_sub(one), None);
        assert_eq!(Balance::ZERO.checked_add(one).and_then(|b| b.checked_sub(one)), Some(Balance::ZERO));
    }
}
