//! Components and activations (R8).

use seqgate_decide::ids::Digest;
use sqlx::sqlite::SqliteRow;

use super::SqliteStore;
use super::codec::Reader;
use super::commit::signed;
use super::cursor;
use super::failures::failed;
use super::transaction::{Tx, end};
use crate::store::registry::{Activation, RulesRecord, Switch};
use crate::store::views::{Listing, Page};
use crate::store::{Result, StoreError};

impl SqliteStore {
    pub(super) async fn write_rules(&self, record: &RulesRecord, bytes: &[u8]) -> Result<bool> {
        let size = signed(record.size)?;
        let mut tx = self.begin().await?;
        let work = put(&mut tx, record, size, bytes).await;
        end(tx, work).await
    }

    pub(super) async fn read_rules(&self, digest: Digest) -> Result<Option<(RulesRecord, Vec<u8>)>> {
        let row =
            sqlx::query("SELECT digest, machine, description, size, actor, at, bytes FROM rules WHERE digest = ?1")
                .bind(digest.0.to_vec())
                .fetch_optional(&self.readers)
                .await
                .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let mut read = Reader::new(&row);
        Ok(Some((record(&mut read)?, read.bytes()?.to_vec())))
    }

    pub(super) async fn read_rules_list(&self, machine: Option<&str>, page: &Page) -> Result<Listing<RulesRecord>> {
        let from: Option<(i64, i64)> = cursor::start(page)?;
        let (at, id) = from.unwrap_or((i64::MAX, i64::MAX));
        let sql = match machine {
            Some(_) => {
                "SELECT digest, machine, description, size, actor, at, rowid FROM rules \
                 WHERE machine = ?4 AND (at, rowid) < (?1, ?2) ORDER BY at DESC, rowid DESC LIMIT ?3"
            }
            None => {
                "SELECT digest, machine, description, size, actor, at, rowid FROM rules \
                 WHERE (at, rowid) < (?1, ?2) ORDER BY at DESC, rowid DESC LIMIT ?3"
            }
        };
        let mut query = sqlx::query(sql).bind(at).bind(id).bind(cursor::limit(page));
        if let Some(machine) = machine {
            query = query.bind(machine.to_owned());
        }
        let rows = query.fetch_all(&self.readers).await.map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            let record = record(&mut read)?;
            Ok(((record.at, read.int()?), record))
        };
        Ok(cursor::listing(page, rows.iter().map(one).collect::<Result<_>>()?))
    }

    pub(super) async fn write_activation(
        &self,
        machine: &str,
        digest: Digest,
        actor: &str,
        reason: &str,
        at: i64,
    ) -> Result<u64> {
        let mut tx = self.begin().await?;
        let work = activate(&mut tx, machine, digest, (actor, reason, at)).await;
        end(tx, work).await
    }

    pub(super) async fn read_active(&self, machine: &str) -> Result<Option<(u64, Digest)>> {
        let row = sqlx::query("SELECT number, digest FROM activations WHERE machine = ?1 ORDER BY number DESC LIMIT 1")
            .bind(machine.to_owned())
            .fetch_optional(&self.readers)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let mut read = Reader::new(&row);
        Ok(Some((read.count()?, read.digest()?)))
    }

    pub(super) async fn read_activations(&self, machine: &str) -> Result<Vec<Activation>> {
        let rows = sqlx::query(
            "SELECT machine, number, digest, actor, reason, at FROM activations WHERE machine = ?1 ORDER BY number DESC",
        )
        .bind(machine.to_owned())
        .fetch_all(&self.readers)
        .await
        .map_err(failed)?;
        let one = |row: &SqliteRow| {
            let mut read = Reader::new(row);
            let (machine, number, digest) = (read.name()?, read.count()?, read.digest()?);
            Ok(Activation { machine, number, digest, actor: read.text()?, reason: read.text()?, at: read.int()? })
        };
        rows.iter().map(one).collect()
    }

    pub(super) async fn read_switches(&self, machine: &str) -> Result<Vec<Switch>> {
        let rows = sqlx::query(
            "SELECT source, part, machine, number, start_offset, at FROM partition_switches WHERE machine = ?1 \
             ORDER BY number, source, part",
        )
        .bind(machine.to_owned())
        .fetch_all(&self.readers)
        .await
        .map_err(failed)?;
        let one = |row: &SqliteRow| {
            let mut read = Reader::new(row);
            let (source, partition, machine) = (read.name()?, read.small()?, read.name()?);
            Ok(Switch { source, partition, machine, number: read.count()?, offset: read.whole()?, at: read.int()? })
        };
        rows.iter().map(one).collect()
    }
}

fn record(read: &mut Reader<'_>) -> Result<RulesRecord> {
    let (digest, machine, description) = (read.digest()?, read.name()?, read.text()?);
    Ok(RulesRecord { digest, machine, description, size: read.count()?, actor: read.text()?, at: read.int()? })
}

/// The machine of a registered component.
async fn machine_of(tx: &mut Tx<'_>, digest: Digest) -> Result<Option<String>> {
    sqlx::query_scalar("SELECT machine FROM rules WHERE digest = ?1")
        .bind(digest.0.to_vec())
        .fetch_optional(tx.conn())
        .await
        .map_err(failed)
}

async fn put(tx: &mut Tx<'_>, record: &RulesRecord, size: i64, bytes: &[u8]) -> Result<bool> {
    if machine_of(tx, record.digest).await?.is_some() {
        return Ok(false);
    }
    sqlx::query(
        "INSERT INTO rules (digest, machine, description, size, actor, at, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )
    .bind(record.digest.0.to_vec())
    .bind(record.machine.clone())
    .bind(record.description.clone())
    .bind(size)
    .bind(record.actor.clone())
    .bind(record.at)
    .bind(bytes.to_vec())
    .execute(tx.conn())
    .await
    .map_err(failed)?;
    Ok(true)
}

async fn activate(tx: &mut Tx<'_>, machine: &str, digest: Digest, by: (&str, &str, i64)) -> Result<u64> {
    match machine_of(tx, digest).await? {
        None => return Err(StoreError::NoSuchRules(digest)),
        Some(registered) if registered != machine => {
            return Err(StoreError::OtherMachine { digest, registered, machine: machine.to_owned() });
        }
        Some(_) => {}
    }
    let number: i64 = sqlx::query_scalar(
        "INSERT INTO activations (machine, number, digest, actor, reason, at) \
         SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5 FROM activations WHERE machine = ?1 RETURNING number",
    )
    .bind(machine.to_owned())
    .bind(digest.0.to_vec())
    .bind(by.0.to_owned())
    .bind(by.1.to_owned())
    .bind(by.2)
    .fetch_one(tx.conn())
    .await
    .map_err(failed)?;
    Ok(number.unsigned_abs())
}
