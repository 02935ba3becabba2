//! JSON by value (R2): what makes a re-serialised copy the same.

/// A JSON value that keeps how its numbers were spelled.
///
/// `==` compares spelling and order of members; [`Value::same`] compares by value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// A number, as spelled.
    Number(String),
    /// A string, unescaped.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object; members in the order written, repeated ones included.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// A string.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// A number as spelled.
    pub fn number(spelled: impl ToString) -> Value {
        Value::Number(spelled.to_string())
    }

    /// An object.
    pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
        Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
    }

    /// A member of an object; the last of repeated ones.
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.iter().rev().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }

    /// Equal by value: members in any order (repeated ones in theirs), numbers as exact decimals.
    pub fn same(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Number(a), Value::Number(b)) => decimal(a) == decimal(b),
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b)),
            (Value::Object(a), Value::Object(b)) => {
                let (a, b) = (sorted(a), sorted(b));
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && a.1.same(&b.1))
            }
            _ => false,
        }
    }
}

fn sorted(members: &[(String, Value)]) -> Vec<&(String, Value)> {
    let mut all: Vec<_> = members.iter().collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

/// (negative, digits without zeros at either end, exponent of the last digit); zero has no digits.
fn decimal(spelled: &str) -> (bool, String, i64) {
    let (negative, rest) = match spelled.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, spelled),
    };
    let (mantissa, exponent) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let trimmed = digits.trim_end_matches('0');
    let exponent = exponent.trim_start_matches('+').parse::<i64>().unwrap_or(0) - fraction.len() as i64
        + (digits.len() - trimmed.len()) as i64;
    match trimmed.trim_start_matches('0') {
        "" => (false, String::new(), 0),
        digits => (negative, digits.to_owned(), exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_decimals() {
        for (a, b) in [
            ("1", "1.0"),
            ("1", "1e0"),
            ("1000", "1.0e3"),
            ("-0", "0"),
            ("0.10", "1E-1"),
            ("0e9", "0"),
            ("120", "1.2e+2"),
        ] {
            assert!(Value::number(a).same(&Value::number(b)), "{a} {b}");
        }
        for (a, b) in [("1", "-1"), ("9007199254740993", "9007199254740992"), ("10", "1")] {
            assert!(!Value::number(a).same(&Value::number(b)), "{a} {b}");
        }
    }

    #[test]
    fn members_in_any_order_repeated_ones_in_theirs() {
        let n = |v: &str| Value::number(v);
        let a = Value::object([("a", n("1")), ("b", n("2"))]);
        assert!(a.same(&Value::object([("b", n("2.0")), ("a", n("1"))])));
        let r = Value::object([("a", n("1")), ("a", n("2"))]);
        assert!(!r.same(&Value::object([("a", n("2")), ("a", n("1"))])));
    }
}
