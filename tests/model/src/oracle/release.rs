//! What waits is let go (R3 after step 10, R4): a pass over one entity after it changed, was unblocked or marked ready.

use super::view::{predecessor, version};
use super::{Oracle, Waiter};
use crate::{ConflictReason, EntityId, Ordering, Reason, Verdict};

impl Oracle {
    /// A release pass over the entity.
    pub(super) fn release(&mut self, id: &EntityId) {
        match self.ordering(&id.machine) {
            Ordering::Versioned => self.release_versioned(id),
            Ordering::Causal => while self.pass_causal(id) {},
            Ordering::Arrival => while self.pass_arrival(id) {},
            Ordering::Snapshot => {
                self.stale(id);
                while self.pass_snapshot(id) {
                    self.stale(id);
                }
            }
        }
    }

    /// First those that were passed over, then the next one, as long as something moves.
    fn release_versioned(&mut self, id: &EntityId) {
        while !self.blocked(id) {
            let now = self.view(id).version;
            if let Some(over) = self.lowest(id, |w| predecessor(&w.item.event) < now) {
                let w = self.pull(over);
                self.pass_over(id, w, now);
                continue;
            }
            let Some(next) = self.lowest(id, |w| predecessor(&w.item.event) == now) else {
                return;
            };
            let w = self.pull(next);
            self.coverage.hit("input", "release");
            if self.take(w.item.clone(), Some(&w), None).verdict == Verdict::Deferred {
                return;
            }
        }
    }

    /// A waiting event that a jump passed over: stale; where only its predecessor was, a fork.
    fn pass_over(&mut self, id: &EntityId, w: Waiter, now: u64) {
        if version(&w.item.event) <= self.view(id).imported {
            self.coverage.hit("passed over", "duplicate");
            self.verdict(&w.item, Verdict::Duplicate);
        } else if version(&w.item.event) <= now {
            self.coverage.hit("passed over", "stale");
            self.verdict(&w.item, Verdict::Stale);
        } else {
            self.coverage.hit("passed over", "conflict");
            self.verdict(&w.item, Verdict::Conflict);
            self.quarantine_as(w.item, ConflictReason::Fork);
        }
    }

    /// One pass over a causal entity; true where the entity changed, and so another pass is due.
    fn pass_causal(&mut self, id: &EntityId) -> bool {
        let key = |w: &Waiter| (w.item.event.logical_time.unwrap_or(0), w.order);
        let mut orders: Vec<_> = self.waiters(id).map(|w| (key(w), w.order)).collect();
        orders.sort();
        for (_, order) in orders {
            if self.blocked(id) {
                return false;
            }
            if self.ask_waiter(id, order) {
                return true;
            }
        }
        false
    }

    /// One pass over an arrival entity: the first that is not early holds the others that are not.
    fn pass_arrival(&mut self, id: &EntityId) -> bool {
        let mut orders: Vec<_> = self.waiters(id).map(|w| w.order).collect();
        orders.sort();
        let mut held = false;
        for order in orders {
            if self.blocked(id) {
                return false;
            }
            let early = |o: &Oracle| o.waiters(id).any(|w| w.order == order && w.reason == Reason::Early);
            let was_early = early(self);
            if held && !was_early {
                continue;
            }
            if self.ask_waiter(id, order) {
                return true;
            }
            let waits = self.waiters(id).any(|w| w.order == order);
            held |= waits && !early(self);
        }
        false
    }

    /// One pass over a snapshot entity, lowest version first.
    fn pass_snapshot(&mut self, id: &EntityId) -> bool {
        let mut orders: Vec<_> = self.waiters(id).map(|w| (version(&w.item.event), w.order)).collect();
        orders.sort();
        orders.into_iter().any(|(_, order)| self.ask_waiter(id, order))
    }

    /// Snapshot: what waits at or below the version is stale.
    fn stale(&mut self, id: &EntityId) {
        let now = self.view(id).version;
        while let Some(low) = self.lowest(id, |w| version(&w.item.event) <= now) {
            let w = self.pull(low);
            self.coverage.hit("passed over", "stale");
            self.verdict(&w.item, Verdict::Stale);
        }
    }

    /// Asks a waiting event again where it has what it waits for; true where that changed the entity.
    fn ask_waiter(&mut self, id: &EntityId, order: u64) -> bool {
        let Some(at) = self.waiting.iter().position(|w| w.order == order) else {
            return false;
        };
        if !self.askable(&self.waiting[at]) {
            return false;
        }
        let before = self.log.get(id).map_or(0, Vec::len);
        let w = self.waiting.remove(at);
        self.coverage.hit("input", "release");
        self.take(w.item.clone(), Some(&w), None);
        self.log.get(id).map_or(0, Vec::len) != before
    }

    /// The order of the entity's waiting event with the lowest version among those that `pick` takes.
    fn lowest(&self, id: &EntityId, pick: impl Fn(&Waiter) -> bool) -> Option<u64> {
        let mut picked: Vec<_> =
            self.waiters(id).filter(|w| pick(w)).map(|w| (version(&w.item.event), w.order)).collect();
        picked.sort();
        picked.first().map(|(_, order)| *order)
    }

    /// Takes a waiting event out of the list.
    fn pull(&mut self, order: u64) -> Waiter {
        let found = self.waiting.iter().position(|w| w.order == order);
        let at = found.unwrap_or_else(|| panic!("nothing waits as number {order}"));
        self.waiting.remove(at)
    }
}
