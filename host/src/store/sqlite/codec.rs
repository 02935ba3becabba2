//! How values are kept in columns.

use std::collections::BTreeMap;
use std::sync::Arc;

use seqgate_decide::event::Event;
use seqgate_decide::ids::{Digest, EntityId, EventKey, Position};
use seqgate_decide::rules::Dependency;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::batch::Rows;
use crate::store::StoreError;

const TOP: u64 = 1 << 63;

/// A u64 of the whole range as a signed number of the same order.
pub(super) const fn ordered(value: u64) -> i64 {
    (value ^ TOP) as i64
}

/// Back from [`ordered`].
pub(super) const fn unordered(stored: i64) -> u64 {
    stored as u64 ^ TOP
}

/// A row of a result, read column by column. What the columns' types do not allow is damage, not data.
pub(super) struct Reader<'r> {
    row: &'r SqliteRow,
    next: usize,
}

type Read<T> = Result<T, StoreError>;

/// What stands in the database and cannot be read back.
pub(super) fn damaged(what: impl Into<String>) -> StoreError {
    StoreError::Corrupt(what.into().into())
}

impl<'r> Reader<'r> {
    pub(super) fn new(row: &'r SqliteRow) -> Self {
        Self { row, next: 0 }
    }

    fn get<T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>>(&mut self) -> Read<Option<T>> {
        let at = self.next;
        self.next += 1;
        self.row.try_get(at).map_err(|e| StoreError::Corrupt(e.into()))
    }

    fn some<T>(&self, value: Option<T>) -> Read<T> {
        value.ok_or_else(|| damaged(format!("column {} is empty", self.next - 1)))
    }

    pub(super) fn int_opt(&mut self) -> Read<Option<i64>> {
        self.get()
    }

    pub(super) fn int(&mut self) -> Read<i64> {
        let value = self.get()?;
        self.some(value)
    }

    pub(super) fn flag(&mut self) -> Read<bool> {
        Ok(self.int()? != 0)
    }

    pub(super) fn count(&mut self) -> Read<u64> {
        let value = self.int()?;
        u64::try_from(value).map_err(|_| damaged(format!("a count is {value}")))
    }

    pub(super) fn count_opt(&mut self) -> Read<Option<u64>> {
        let value = self.int_opt()?;
        value.map(|v| u64::try_from(v).map_err(|_| damaged(format!("a count is {v}")))).transpose()
    }

    pub(super) fn small(&mut self) -> Read<u32> {
        let value = self.int()?;
        u32::try_from(value).map_err(|_| damaged(format!("a small number is {value}")))
    }

    pub(super) fn whole(&mut self) -> Read<u64> {
        Ok(unordered(self.int()?))
    }

    pub(super) fn whole_opt(&mut self) -> Read<Option<u64>> {
        Ok(self.int_opt()?.map(unordered))
    }

    pub(super) fn text_opt(&mut self) -> Read<Option<String>> {
        self.get()
    }

    pub(super) fn text(&mut self) -> Read<String> {
        let value = self.get()?;
        self.some(value)
    }

    pub(super) fn name(&mut self) -> Read<Arc<str>> {
        let value: Option<&str> = self.get()?;
        self.some(value).map(Arc::from)
    }

    pub(super) fn name_opt(&mut self) -> Read<Option<Arc<str>>> {
        let value: Option<&str> = self.get()?;
        Ok(value.map(Arc::from))
    }

    pub(super) fn bytes(&mut self) -> Read<Arc<[u8]>> {
        let value: Option<&[u8]> = self.get()?;
        self.some(value).map(Arc::from)
    }

    pub(super) fn bytes_opt(&mut self) -> Read<Option<Arc<[u8]>>> {
        let value: Option<&[u8]> = self.get()?;
        Ok(value.map(Arc::from))
    }

    pub(super) fn digest_opt(&mut self) -> Read<Option<Digest>> {
        let value: Option<&[u8]> = self.get()?;
        let fixed = |bytes: &[u8]| bytes.try_into().map(Digest).map_err(|_| damaged("a digest is not 32 bytes long"));
        value.map(fixed).transpose()
    }

    pub(super) fn digest(&mut self) -> Read<Digest> {
        let value = self.digest_opt()?;
        self.some(value)
    }

    /// A word of a closed list.
    pub(super) fn word<T>(&mut self, known: fn(&str) -> Option<T>) -> Read<T> {
        let value: Option<&str> = self.get()?;
        let value = self.some(value)?;
        known(value).ok_or_else(|| damaged(format!("`{value}` is no word of this column")))
    }

    /// A JSON text; NULL is the empty value.
    pub(super) fn json<T: serde::de::DeserializeOwned + Default>(&mut self) -> Read<T> {
        let value: Option<&str> = self.get()?;
        value.map_or_else(|| Ok(T::default()), |text| serde_json::from_str(text).map_err(|e| damaged(e.to_string())))
    }

    /// Two columns: machine, key.
    pub(super) fn entity(&mut self) -> Read<EntityId> {
        Ok(EntityId { machine: self.name()?, key: self.bytes()? })
    }

    /// Two columns: machine, key.
    pub(super) fn entity_opt(&mut self) -> Read<Option<EntityId>> {
        let (machine, key) = (self.name_opt()?, self.bytes_opt()?);
        Ok(machine.zip(key).map(|(machine, key)| EntityId { machine, key }))
    }

    /// Three columns: source, partition, offset.
    pub(super) fn position_opt(&mut self) -> Read<Option<Position>> {
        let (source, partition, offset) = (self.name_opt()?, self.int_opt()?, self.whole_opt()?);
        let (Some(source), Some(partition), Some(offset)) = (source, partition, offset) else { return Ok(None) };
        let partition = u32::try_from(partition).map_err(|_| damaged("a partition is out of range"))?;
        Ok(Some(Position { source, partition, offset }))
    }

    /// Three columns: source, partition, offset.
    pub(super) fn position(&mut self) -> Read<Position> {
        let value = self.position_opt()?;
        self.some(value)
    }

    /// Two columns: digest, and the value digest where it differs.
    pub(super) fn digests(&mut self) -> Read<(Digest, Digest)> {
        let (digest, value) = (self.digest()?, self.digest_opt()?);
        Ok((digest, value.unwrap_or(digest)))
    }

    /// The columns of [`EVENT`]: `None` where no event is kept.
    pub(super) fn event_opt(&mut self, entity: Option<&EntityId>) -> Read<Option<Arc<Event>>> {
        let (source, id) = (self.name_opt()?, self.name_opt()?);
        let (Some(source), Some(id), Some(entity)) = (source, id, entity) else {
            self.next += EVENT_COLUMNS - 2;
            return Ok(None);
        };
        let kind = self.name()?;
        let (version, previous, time) = (self.whole_opt()?, self.whole_opt()?, self.int()?);
        let idempotency_key = self.name_opt()?;
        let depends_on = match self.text_opt()? {
            Some(text) => Event::parse_depends_on(&text).map_err(|e| damaged(e.message))?,
            None => Vec::new(),
        };
        let (logical_time, content_type) = (self.whole_opt()?, self.name_opt()?);
        let (attributes, data) = (self.json()?, self.bytes()?);
        let (digest, value_digest) = self.digests()?;
        Ok(Some(Arc::new(Event {
            key: EventKey { machine: entity.machine.clone(), source, id },
            entity: entity.clone(),
            kind,
            version,
            previous,
            time,
            idempotency_key,
            depends_on,
            logical_time,
            content_type,
            attributes,
            data,
            digest,
            value_digest,
        })))
    }

    /// The columns of [`EVENT`].
    pub(super) fn event(&mut self, entity: &EntityId) -> Read<Arc<Event>> {
        let value = self.event_opt(Some(entity))?;
        self.some(value)
    }
}

/// The columns of an event, in the order in which they are read and written.
pub(super) const EVENT: &str = "source, event_id, type, event_version, previous, event_time, idempotency_key, depends_on, \
     logical_time, content_type, attributes, payload, digest, value_digest";

/// How many they are.
pub(super) const EVENT_COLUMNS: usize = 14;

impl Rows {
    /// Writes the columns of [`EVENT`].
    pub(super) fn event(&mut self, event: Option<&Event>) -> &mut Self {
        let Some(event) = event else { return self.nulls(EVENT_COLUMNS) };
        self.name(&event.key.source)
            .name(&event.key.id)
            .name(&event.kind)
            .whole_opt(event.version)
            .whole_opt(event.previous)
            .int(event.time)
            .name_opt(event.idempotency_key.as_ref())
            .text_opt(event.depends_on_text())
            .whole_opt(event.logical_time)
            .name_opt(event.content_type.as_ref())
            .json(&event.attributes, event.attributes.is_empty())
            .bytes(&event.data)
            .digests(&event.digest, &event.value_digest)
    }

    /// Two columns: the value digest only where it differs.
    pub(super) fn digests(&mut self, digest: &Digest, value: &Digest) -> &mut Self {
        self.digest(digest).digest_opt((value != digest).then_some(value))
    }

    /// Two columns.
    pub(super) fn entity(&mut self, id: &EntityId) -> &mut Self {
        self.name(&id.machine).bytes(&id.key)
    }

    /// Three columns.
    pub(super) fn position(&mut self, position: Option<&Position>) -> &mut Self {
        match position {
            Some(p) => self.name(&p.source).int(p.partition.into()).whole(p.offset),
            None => self.nulls(3),
        }
    }
}

/// Dependencies as JSON; `dependson`'s own form has a limit that names and keys can pass here.
pub(super) fn dependencies_text(named: &[Dependency]) -> Option<String> {
    if named.is_empty() {
        return None;
    }
    let hex = |key: &[u8]| key.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let rows: Vec<_> =
        named.iter().map(|d| (d.entity.machine.as_ref(), hex(&d.entity.key), d.version.to_string())).collect();
    serde_json::to_string(&rows).ok()
}

/// Back from [`dependencies_text`].
pub(super) fn dependencies(rows: Vec<(String, String, String)>) -> Read<Vec<Dependency>> {
    let one = |(machine, key, version): (String, String, String)| {
        let entity = EntityId::new(machine, unhex(&key)?);
        Some(Dependency { entity, version: version.parse().ok()? })
    };
    rows.into_iter().map(|row| one(row).ok_or_else(|| damaged("a dependency cannot be read"))).collect()
}

/// Bytes from hexadecimal digits.
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    if digits.len().is_multiple_of(2) { digits.chunks_exact(2).map(pair).collect() } else { None }
}

/// Counts by name, with shared names.
pub(super) fn shared(counts: BTreeMap<String, u64>) -> BTreeMap<Arc<str>, u64> {
    counts.into_iter().map(|(name, n)| (Arc::from(name), n)).collect()
}
