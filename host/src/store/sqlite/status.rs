//! Partitions with their counters, and the sums.

use std::collections::BTreeMap;
use std::sync::Arc;

use seqgate_decide::verdict::Verdict;
use sqlx::{AssertSqlSafe, SqliteConnection};

use super::SqliteStore;
use super::codec::Reader;
use super::failures::failed;
use super::list_entities::HELD;
use crate::store::Result;
use crate::store::views::{PartitionItem, Stand, Status};

/// Counters in the order of [`Verdict::ALL`].
const PARTITIONS: &str = "SELECT source, part, epoch, next_offset, owner, received, applied, duplicate, stale, conflict, \
     deferred, illegal, malformed, fault, skipped FROM partitions ORDER BY source, part";

const MOVES: &str = "SELECT source, part, from_verdict, to_verdict, sum(n) FROM verdict_moves \
     GROUP BY source, part, from_verdict, to_verdict";

/// How many, and the oldest time: each answered by an index.
pub(super) const STANDS: [&str; 6] = [
    "SELECT count(*), min(since) FROM deferred INDEXED BY deferred_by_age",
    "SELECT count(*), min(since) FROM dead_letters INDEXED BY dead_letters_by_status WHERE status = 'open'",
    "SELECT count(*), (SELECT created FROM outbox WHERE id = (SELECT min(id) FROM outbox \
     INDEXED BY outbox_unsent_by_status WHERE status <> 'SENT')) FROM outbox INDEXED BY outbox_unsent_by_status \
     WHERE status <> 'SENT'",
    "SELECT count(*), min(since) FROM conflicts INDEXED BY conflicts_open_by_age WHERE actor IS NULL",
    "SELECT count(*), min(since) FROM alarms INDEXED BY alarms_standing WHERE cleared IS NULL",
    "SELECT count(*), min(due) FROM timers INDEXED BY timers_due WHERE outcome IS NULL",
];

pub(super) const ENTITIES: &str = "SELECT count(*) FROM entities INDEXED BY entities_by_state";

/// R5: only waiting events. A row that only guards has none.
pub(super) const WITHOUT_REVISION: &str = "SELECT count(*), coalesce(sum(EXISTS (SELECT 1 FROM deferred AS d \
     WHERE d.machine = e.machine AND d.key = e.key)), 0) FROM entities AS e INDEXED BY entities_without_revision \
     WHERE e.revision = 0";

type Counters = BTreeMap<(Arc<str>, u32), PartitionItem>;

impl SqliteStore {
    pub(super) async fn read_partitions(&self) -> Result<Vec<PartitionItem>> {
        let mut snapshot = self.snapshot().await?;
        let found = counters(snapshot.conn()).await?;
        snapshot.end().await?;
        Ok(found.into_values().collect())
    }

    pub(super) async fn read_status(&self) -> Result<Status> {
        let mut snapshot = self.snapshot().await?;
        let mut status = Status::default();
        for partition in counters(snapshot.conn()).await?.into_values() {
            status.received += partition.received;
            for (verdict, n) in partition.verdicts {
                *status.verdicts.entry(verdict).or_default() += n;
            }
        }
        let rows: i64 = sqlx::query_scalar(ENTITIES).fetch_one(snapshot.conn()).await.map_err(failed)?;
        let (empty, ghosts): (i64, i64) =
            sqlx::query_as(WITHOUT_REVISION).fetch_one(snapshot.conn()).await.map_err(failed)?;
        status.entities = rows.abs_diff(empty);
        status.ghosts = ghosts.unsigned_abs();
        let held = format!("SELECT count(*) FROM ({HELD})");
        let held = sqlx::query_scalar(AssertSqlSafe(held)).bind("").bind(Vec::<u8>::new());
        let held: i64 = held.fetch_one(snapshot.conn()).await.map_err(failed)?;
        status.blocked = held.unsigned_abs();
        let mut stands = [Stand::default(); STANDS.len()];
        for (sql, stand) in STANDS.into_iter().zip(&mut stands) {
            let row = sqlx::query(sql).fetch_one(snapshot.conn()).await.map_err(failed)?;
            let mut read = Reader::new(&row);
            *stand = Stand { count: read.count()?, oldest: read.int_opt()? };
        }
        let [deferred, dead_letters, outbox, conflicts, alarms, timers] = stands;
        snapshot.end().await?;
        Ok(Status { deferred, dead_letters, outbox, conflicts, alarms, timers, ..status })
    }
}

/// Partitions' own counters, with the moves that came later.
async fn counters(conn: &mut SqliteConnection) -> Result<Counters> {
    let mut found = Counters::new();
    for row in sqlx::query(PARTITIONS).fetch_all(&mut *conn).await.map_err(failed)? {
        let mut read = Reader::new(&row);
        let (source, partition) = (read.name()?, read.small()?);
        let (epoch, offset, owner) = (read.count()?, read.whole()?, Some(read.text()?));
        let received = read.count()?;
        let mut verdicts = BTreeMap::new();
        for verdict in Verdict::ALL {
            verdicts.insert(verdict, read.count()?);
        }
        let key = (source.clone(), partition);
        found.insert(key, PartitionItem { source, partition, epoch, offset, owner, received, verdicts });
    }
    let mut sums: BTreeMap<(Arc<str>, u32, Verdict), i64> = BTreeMap::new();
    for row in sqlx::query(MOVES).fetch_all(&mut *conn).await.map_err(failed)? {
        let mut read = Reader::new(&row);
        let (source, partition) = (read.name()?, read.small()?);
        let (from, to, n) = (read.text()?, read.word(Verdict::from_name)?, read.count()?);
        let item = found.entry((source.clone(), partition)).or_insert_with(|| unowned(&source, partition));
        match Verdict::from_name(&from) {
            Some(from) => *sums.entry((source.clone(), partition, from)).or_default() -= n as i64,
            None => item.received += n,
        }
        *sums.entry((source, partition, to)).or_default() += n as i64;
    }
    for ((source, partition, verdict), sum) in sums {
        let item = found.entry((source.clone(), partition)).or_insert_with(|| unowned(&source, partition));
        let count = item.verdicts.entry(verdict).or_default();
        *count = count.saturating_add_signed(sum);
    }
    for item in found.values_mut() {
        item.verdicts.retain(|_, n| *n > 0);
    }
    Ok(found)
}

/// Deliveries of a partition that nobody took over.
fn unowned(source: &Arc<str>, partition: u32) -> PartitionItem {
    PartitionItem {
        source: source.clone(),
        partition,
        epoch: 0,
        offset: 0,
        owner: None,
        received: 0,
        verdicts: BTreeMap::new(),
    }
}
