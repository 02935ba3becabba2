//! Lists that go on where they stopped.
//!
//! A cursor is the sort key of the last item that was given, so that a list goes on at its place whatever was inserted or
//! removed meanwhile. It is hexadecimal JSON, and no caller's business.

use seqgate_decide::ids::EntityId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::unhex;
use crate::store::views::{Listing, Page};
use crate::store::{Result, StoreError};

/// An entity's address in a cursor.
pub(super) type Address = (String, Vec<u8>);

/// Where a page starts: after this key.
pub(super) fn start<K: DeserializeOwned>(page: &Page) -> Result<Option<K>> {
    let Some(text) = &page.cursor else { return Ok(None) };
    let bytes = unhex(text).ok_or(StoreError::Cursor)?;
    serde_json::from_slice(&bytes).map(Some).map_err(|_| StoreError::Cursor)
}

/// How many rows to ask for: one more than the page holds, to know whether it is the last.
pub(super) fn limit(page: &Page) -> i64 {
    i64::from(page.limit.max(1)) + 1
}

/// The page, from at most [`limit`] items and their sort keys.
pub(super) fn listing<T, K: Serialize>(page: &Page, mut rows: Vec<(K, T)>) -> Listing<T> {
    let full = rows.len() as i64 >= limit(page);
    if full {
        rows.truncate(page.limit.max(1) as usize);
    }
    let next = rows.last().filter(|_| full).and_then(|(key, _)| serde_json::to_vec(key).ok());
    let next = next.map(|bytes| bytes.iter().map(|b| format!("{b:02x}")).collect());
    Listing { items: rows.into_iter().map(|(_, item)| item).collect(), next }
}

/// An entity as a sort key.
pub(super) fn address(id: &EntityId) -> Address {
    (id.machine.to_string(), id.key.to_vec())
}
