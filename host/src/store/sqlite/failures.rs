//! What SQLite's result codes mean for the caller.

use crate::store::StoreError;
use crate::store::error::Race;

const BUSY: i32 = 5;
const LOCKED: i32 = 6;
const CORRUPT: i32 = 11;
const PROTOCOL: i32 = 15;
const SCHEMA: i32 = 17;
const TOO_BIG: i32 = 18;
const CONSTRAINT: i32 = 19;
const MISMATCH: i32 = 20;
const RANGE: i32 = 25;
const NOT_A_DATABASE: i32 = 26;
const CONSTRAINT_PRIMARY_KEY: i32 = 1555;
const CONSTRAINT_UNIQUE: i32 = 2067;
const CONSTRAINT_ROWID: i32 = 2579;

/// The extended result code, where SQLite gave one.
pub(super) fn code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// Whether a row of that key exists.
pub(super) fn is_unique_violation(error: &sqlx::Error) -> bool {
    matches!(code(error), Some(CONSTRAINT_PRIMARY_KEY | CONSTRAINT_UNIQUE | CONSTRAINT_ROWID))
}

/// An error before COMMIT: nothing was written. The primary code is the low byte of the extended one.
pub(super) fn failed(error: sqlx::Error) -> StoreError {
    match code(&error).map(|code| code & 0xff) {
        Some(BUSY | LOCKED | PROTOCOL | SCHEMA) => StoreError::Busy(error),
        Some(CORRUPT | NOT_A_DATABASE) => StoreError::Corrupt(error.into()),
        Some(TOO_BIG | CONSTRAINT | MISMATCH | RANGE) => StoreError::Data(error.into()),
        Some(_) => StoreError::Io(error.into()),
        None => match error {
            sqlx::Error::PoolTimedOut => StoreError::Busy(error),
            sqlx::Error::Encode(_) => StoreError::Data(error.into()),
            sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => StoreError::Corrupt(error.into()),
            _ => StoreError::Io(error.into()),
        },
    }
}

/// The same for rows that are inserted plainly: that one exists is a race (R7).
pub(super) fn failed_insert(table: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| if is_unique_violation(&error) { StoreError::Raced(Race::Row(table)) } else { failed(error) }
}
