//! Partitions: ownership, settling, what a source looked like; moves of verdicts; alarms from outside of decisions.

use super::SqliteStore;
use super::codec::{Reader, ordered};
use super::commit::{fenced, partition_row, signed};
use super::failures::failed;
use super::transaction::{Tx, end};
use crate::store::{Fence, OperationId, Ownership, Result, Settled, SourceIdentity, StoreError, Transaction};

impl SqliteStore {
    pub(super) async fn acquire_partition(&self, source: &str, partition: u32, owner: &str) -> Result<Ownership> {
        let mut tx = self.begin().await?;
        let row = sqlx::query(
            "INSERT INTO partitions (source, part, epoch, next_offset, owner) VALUES (?1, ?2, 1, ?3, ?4) \
             ON CONFLICT (source, part) DO UPDATE SET epoch = epoch + 1, owner = excluded.owner \
             RETURNING epoch, next_offset",
        )
        .bind(source.to_owned())
        .bind(partition)
        .bind(ordered(0))
        .bind(owner.to_owned())
        .fetch_one(tx.conn())
        .await
        .map_err(failed);
        let work = row.and_then(|row| {
            let mut read = Reader::new(&row);
            Ok(Ownership { epoch: read.count()?, offset: read.whole()? })
        });
        end(tx, work).await
    }

    pub(super) async fn settle_transaction(&self, transaction: &Transaction) -> Result<Settled> {
        let mut tx = self.begin().await?;
        let work = settle(&mut tx, transaction).await;
        tx.rollback().await;
        work
    }

    pub(super) async fn fix_source_partitions(&self, source: &str, partitions: u32) -> Result<()> {
        let mut tx = self.begin().await?;
        let stored = sqlx::query_scalar::<_, i64>(
            "INSERT INTO sources (source, partitions) VALUES (?1, ?2) \
             ON CONFLICT (source) DO UPDATE SET partitions = coalesce(partitions, excluded.partitions) \
             RETURNING partitions",
        )
        .bind(source.to_owned())
        .bind(partitions)
        .fetch_one(tx.conn())
        .await
        .map_err(failed);
        let work = stored.and_then(|stored| match u32::try_from(stored) {
            Ok(stored) if stored == partitions => Ok(()),
            stored => Err(StoreError::Partitions {
                source_name: source.to_owned(),
                stored: stored.unwrap_or_default(),
                configured: partitions,
            }),
        });
        end(tx, work).await
    }

    pub(super) async fn read_identity(&self, source: &str) -> Result<Option<SourceIdentity>> {
        let row =
            sqlx::query("SELECT device, inode, digest, head FROM sources WHERE source = ?1 AND digest IS NOT NULL")
                .bind(source.to_owned())
                .fetch_optional(&self.readers)
                .await
                .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let mut read = Reader::new(&row);
        let (device, inode) = (read.whole()?, read.whole()?);
        Ok(Some(SourceIdentity { device, inode, digest: read.digest()?, head: read.count()? }))
    }

    pub(super) async fn write_identity(&self, source: &str, identity: &SourceIdentity) -> Result<()> {
        let head = signed(identity.head)?;
        let mut tx = self.begin().await?;
        let work = sqlx::query(
            "INSERT INTO sources (source, device, inode, digest, head) VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT (source) DO UPDATE SET device = excluded.device, inode = excluded.inode, \
             digest = excluded.digest, head = excluded.head",
        )
        .bind(source.to_owned())
        .bind(ordered(identity.device))
        .bind(ordered(identity.inode))
        .bind(identity.digest.0.to_vec())
        .bind(head)
        .execute(tx.conn())
        .await
        .map(drop)
        .map_err(failed);
        end(tx, work).await
    }

    pub(super) async fn fold_moves(&self) -> Result<()> {
        let mut tx = self.begin().await?;
        let work = fold(&mut tx).await.map_err(failed);
        end(tx, work).await
    }

    /// Raises an alarm with a message, clears it without one.
    pub(super) async fn write_alarm(&self, kind: &str, subject: &str, message: Option<&str>, at: i64) -> Result<bool> {
        let sql = match message {
            Some(_) => {
                "INSERT INTO alarms (kind, subject, since, message) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT (kind, subject) DO UPDATE SET since = excluded.since, message = excluded.message, \
                 cleared = NULL WHERE cleared IS NOT NULL"
            }
            None => "UPDATE alarms SET cleared = ?3 WHERE kind = ?1 AND subject = ?2 AND cleared IS NULL",
        };
        let mut tx = self.begin().await?;
        let mut query = sqlx::query(sql).bind(kind.to_owned()).bind(subject.to_owned()).bind(at);
        if let Some(message) = message {
            query = query.bind(message.to_owned());
        }
        let work = query.execute(tx.conn()).await.map(|done| done.rows_affected() > 0).map_err(failed);
        end(tx, work).await
    }
}

/// An operation's row is certain. A partition's row is, as long as its owner is the one that committed.
async fn settle(tx: &mut Tx<'_>, transaction: &Transaction) -> Result<Settled> {
    if let Some(operation) = transaction.operation {
        return settle_operation(tx, operation).await;
    }
    match &transaction.fence {
        Some(fence) => settle_fence(tx, fence).await,
        None => Err(StoreError::Unknown("the transaction has neither a fence nor an operation id".into())),
    }
}

async fn settle_operation(tx: &mut Tx<'_>, operation: OperationId) -> Result<Settled> {
    let row = sqlx::query("SELECT 1 FROM operations WHERE id = ?1").bind(operation.0.to_vec());
    let row = row.fetch_optional(tx.conn()).await.map_err(failed)?;
    Ok(row.map_or(Settled::NotCommitted, |_| Settled::Committed))
}

async fn settle_fence(tx: &mut Tx<'_>, fence: &Fence) -> Result<Settled> {
    match partition_row(tx, &fence.source, fence.partition).await? {
        Some((epoch, offset)) if epoch == fence.epoch && offset == fence.next && fence.next != fence.expected => {
            Ok(Settled::Committed)
        }
        Some((epoch, offset)) if epoch == fence.epoch && offset == fence.expected && fence.next != fence.expected => {
            Ok(Settled::NotCommitted)
        }
        found => Err(fenced(fence, found)),
    }
}

/// One row per partition and pair of verdicts is left.
async fn fold(tx: &mut Tx<'_>) -> sqlx::Result<()> {
    let last: Option<i64> = sqlx::query_scalar("SELECT max(id) FROM verdict_moves").fetch_one(tx.conn()).await?;
    let Some(last) = last else { return Ok(()) };
    sqlx::query(
        "INSERT INTO verdict_moves (source, part, from_verdict, to_verdict, n) \
         SELECT source, part, from_verdict, to_verdict, sum(n) FROM verdict_moves WHERE id <= ?1 \
         GROUP BY source, part, from_verdict, to_verdict ORDER BY source, part, from_verdict, to_verdict",
    )
    .bind(last)
    .execute(tx.conn())
    .await?;
    sqlx::query("DELETE FROM verdict_moves WHERE id <= ?1").bind(last).execute(tx.conn()).await.map(drop)
}
