//! What time or another entity's progress has made due.

use seqgate_decide::ids::{EntityId, Ref};

use super::SqliteStore;
use super::codec::Reader;
use super::failures::failed;
use crate::store::{DueTimer, EarlyDue, Result};

/// R6: neither waiting events nor a dead letter that blocks.
pub(super) const TIMERS: &str = "SELECT t.machine, t.key, t.name, t.due FROM timers AS t INDEXED BY timers_due \
     WHERE t.outcome IS NULL AND t.due <= ?1 \
     AND NOT EXISTS (SELECT 1 FROM deferred AS d WHERE d.machine = t.machine AND d.key = t.key) \
     AND NOT EXISTS (SELECT 1 FROM dead_letters AS l INDEXED BY dead_letters_open \
     WHERE l.machine = t.machine AND l.key = t.key AND l.status = 'open' AND l.blocks = 1) \
     ORDER BY t.due, t.machine, t.key, t.name LIMIT ?2";

pub(super) const READY: &str = "SELECT DISTINCT machine, key FROM deferred INDEXED BY deferred_ready WHERE ready = 1 \
     ORDER BY machine, key LIMIT ?1";

pub(super) const OVERDUE: &str = "SELECT machine, key, ref, deadline FROM deferred INDEXED BY deferred_deadlines \
     WHERE deadline IS NOT NULL AND deadline <= ?1 AND reason = 'early' ORDER BY deadline LIMIT ?2";

impl SqliteStore {
    pub(super) async fn read_due_timers(&self, now: i64, limit: u32) -> Result<Vec<DueTimer>> {
        let rows = sqlx::query(TIMERS).bind(now).bind(limit).fetch_all(&self.readers).await.map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            Ok(DueTimer { entity: read.entity()?, name: read.name()?, due: read.int()? })
        };
        rows.iter().map(one).collect()
    }

    pub(super) async fn read_ready(&self, limit: u32) -> Result<Vec<EntityId>> {
        let rows = sqlx::query(READY).bind(limit).fetch_all(&self.readers).await.map_err(failed)?;
        rows.iter().map(|row| Reader::new(row).entity()).collect()
    }

    pub(super) async fn read_overdue_early(&self, now: i64, limit: u32) -> Result<Vec<EarlyDue>> {
        let rows = sqlx::query(OVERDUE).bind(now).bind(limit).fetch_all(&self.readers).await.map_err(failed)?;
        let one = |row| {
            let mut read = Reader::new(row);
            Ok(EarlyDue { entity: read.entity()?, event: Ref(read.whole()?), deadline: read.int()? })
        };
        rows.iter().map(one).collect()
    }
}
