//! Bounds what a queue holds by its bytes, not only by its number of records.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many bytes a source's queues hold together.
pub const QUEUED: usize = 64 << 20;
/// The least that one partition's queue may hold.
const LEAST: usize = 1 << 20;

/// The room of one partition's queue.
#[derive(Clone, Debug)]
pub struct Budget {
    semaphore: Arc<Semaphore>,
    most: u32,
}

/// A record's share of it, given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    /// `None` once nobody asks for room any more.
    _permit: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// One partition's share among so many.
    pub fn of(partitions: u32) -> Self {
        Self::new((QUEUED / partitions.max(1) as usize).max(LEAST))
    }

    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        let most = u32::try_from(bytes).unwrap_or(u32::MAX).max(1);
        Self { semaphore: Arc::new(Semaphore::new(most as usize)), most }
    }

    fn share(&self, bytes: usize) -> u32 {
        // What is larger than all of it goes alone.
        u32::try_from(bytes).unwrap_or(u32::MAX).clamp(1, self.most)
    }

    /// Waits for room.
    pub async fn take(&self, bytes: usize) -> Room {
        Room { _permit: self.semaphore.clone().acquire_many_owned(self.share(bytes)).await.ok() }
    }

    /// Room, if there is some now.
    pub fn try_take(&self, bytes: usize) -> Option<Room> {
        let permit = self.semaphore.clone().try_acquire_many_owned(self.share(bytes)).ok()?;
        Some(Room { _permit: Some(permit) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn room_comes_back() {
        let budget = Budget::new(10);
        let first = budget.take(6).await;
        assert!(budget.try_take(6).is_none());
        drop(first);
        assert!(budget.try_take(6).is_some());
        assert!(budget.try_take(1_000).is_some(), "more than all of it is all of it");
    }
}
