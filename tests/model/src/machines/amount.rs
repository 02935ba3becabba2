//! Amounts of R11: minor units, exact.

use crate::Value;

/// The largest amount and the largest balance: 2^127 − 1.
pub(super) const MAX: u128 = u128::MAX >> 1;

/// An amount above 0 and at most [`MAX`], as JSON digits without fraction or exponent or as a decimal string without
/// leading zeros. Anything else is none, and so malformed.
pub(super) fn amount(value: Option<&Value>) -> Option<u128> {
    let (Value::Number(digits) | Value::Text(digits)) = value? else {
        return None;
    };
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    let amount: u128 = if plain {
        digits.parse().ok()?
    } else {
        return None;
    };
    (amount <= MAX).then_some(amount)
}
