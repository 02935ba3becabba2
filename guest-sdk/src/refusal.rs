//! The rules' no.

use std::fmt;

/// A stable code and a text for a person.
///
/// Codes are counted and alarmed on, so they never change: lower-case words and hyphens, such as `insufficient-funds`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Stable and countable.
    pub code: String,
    /// For a person; free to change.
    pub message: String,
}

impl Reason {
    /// A reason.
    pub fn new(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self { code: code.into(), message: message.to_string() }
    }
}

/// Another entity's version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The other entity's machine.
    pub machine: String,
    /// The other entity's key.
    pub key: Vec<u8>,
    /// The version that it must have reached.
    pub version: u64,
}

/// Why an event may not happen, or not yet. Refusing is an answer, and costs nothing but the event; a panic is a fault
/// of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The event is understood, and may not happen in this state.
    Illegal(Reason),
    /// The data cannot be understood.
    Malformed(Reason),
    /// Decide again when these are met. Names at least one that [`Context::met`](crate::Context::met) has not.
    Waiting(Vec<Dependency>),
}

impl Refusal {
    /// Understood, and not allowed.
    pub fn illegal(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Illegal(Reason::new(code, message))
    }

    /// Not understood.
    pub fn malformed(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::Malformed(Reason::new(code, message))
    }
}

/// Returns [`Refusal::Illegal`] from the enclosing function unless a condition holds: a condition, a stable code, and a
/// text for a person with its arguments, as for `format!`.
///
/// ```
/// use seqgate_guest::{Refusal, ensure};
///
/// fn withdraw(balance: u32, amount: u32) -> Result<u32, Refusal> {
///     ensure!(amount <= balance, "insufficient-funds", "{amount} from {balance}");
///     Ok(balance - amount)
/// }
/// assert_eq!(withdraw(1, 2), Err(Refusal::illegal("insufficient-funds", "2 from 1")));
/// ```
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $code:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Refusal::illegal($code, ::core::format_args!($($message)+)));
        }
    };
}
