//! Rows of two decisions made one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::{ConflictWrite, DeadWrite, InboxWrite, WaitingWrite, Writes};
use crate::ids::{EventKey, Ref};

impl Writes {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes the rows of a later decision in: where both write a row, one row that does both is left.
    pub fn merge(&mut self, later: Self) {
        for (id, entity) in later.entities {
            self.touched.remove(&id);
            self.entities.insert(id, entity);
        }
        for id in later.touched {
            if !self.entities.contains_key(&id) {
                self.touched.insert(id);
            }
        }
        self.history.extend(later.history);
        for (key, write) in later.inbox {
            merge_into(&mut self.inbox, key, write, merge_inbox);
        }
        self.intents.extend(later.intents);
        for (key, write) in later.waiting {
            merge_into(&mut self.waiting, key, write, merge_waiting);
        }
        for (id, write) in later.dead {
            merge_into(&mut self.dead, id, write, merge_dead);
        }
        for (id, write) in later.conflicts {
            merge_into(&mut self.conflicts, id, write, merge_conflict);
        }
        self.outbox.extend(later.outbox);
        self.timers.extend(later.timers);
        self.alarms.extend(later.alarms);
        self.erased.extend(later.erased);
        self.audit.extend(later.audit);
        for (key, n) in later.counts {
            *self.counts.entry(key).or_default() += n;
        }
        for (key, n) in later.moves {
            *self.moves.entry(key).or_default() += n;
        }
    }
}

impl Writes {
    /// Adds a change to an inbox row that this decision may have written already.
    pub(crate) fn amend_inbox(&mut self, key: EventKey, change: InboxWrite) {
        merge_into(&mut self.inbox, key, change, merge_inbox);
    }

    /// Adds a change to a dead letter that this decision may have written already.
    pub(crate) fn amend_dead(&mut self, id: Ref, change: DeadWrite) {
        merge_into(&mut self.dead, id, change, merge_dead);
    }
}

fn merge_into<K: Ord, V>(map: &mut BTreeMap<K, V>, key: K, later: V, merge: fn(&mut V, V)) {
    match map.entry(key) {
        Entry::Vacant(free) => {
            free.insert(later);
        }
        Entry::Occupied(mut row) => merge(row.get_mut(), later),
    }
}

fn merge_inbox(earlier: &mut InboxWrite, later: InboxWrite) {
    match (earlier, later) {
        (InboxWrite::Insert(row), InboxWrite::Update { deliveries, last, verdict }) => {
            row.deliveries += deliveries;
            row.last = last.or_else(|| row.last.take());
            if let Some((verdict, reason)) = verdict {
                row.verdict = verdict;
                row.reason = reason;
            }
        }
        (
            InboxWrite::Update { deliveries, last, verdict },
            InboxWrite::Update { deliveries: more, last: newer, verdict: newest },
        ) => {
            *deliveries += more;
            *last = newer.or_else(|| last.take());
            *verdict = newest.or_else(|| verdict.take());
        }
        (earlier, later @ InboxWrite::Insert(_)) => {
            debug_assert!(false, "an inbox row is inserted once");
            *earlier = later;
        }
    }
}

fn merge_waiting(earlier: &mut WaitingWrite, later: WaitingWrite) {
    match (earlier, later) {
        (WaitingWrite::Put { row, .. }, WaitingWrite::Ready) => row.ready = true,
        (WaitingWrite::Delete, WaitingWrite::Ready) => debug_assert!(false, "what is gone is not made ready"),
        (earlier, later) => *earlier = later,
    }
}

fn merge_dead(earlier: &mut DeadWrite, later: DeadWrite) {
    match (earlier, later) {
        (DeadWrite::Put(row), DeadWrite::Update(change)) => {
            if let Some(status) = change.status {
                row.status = status;
            }
            if let Some((class, code, message)) = change.refusal {
                (row.class, row.code, row.message) = (class, code, message);
            }
            row.attempts = change.attempts.unwrap_or(row.attempts);
            row.by = change.by.or_else(|| row.by.take());
            row.replaced_by = change.replaced_by.or_else(|| row.replaced_by.take());
        }
        (DeadWrite::Update(earlier), DeadWrite::Update(change)) => {
            earlier.status = change.status.or(earlier.status);
            earlier.refusal = change.refusal.or_else(|| earlier.refusal.take());
            earlier.attempts = change.attempts.or(earlier.attempts);
            earlier.by = change.by.or_else(|| earlier.by.take());
            earlier.replaced_by = change.replaced_by.or_else(|| earlier.replaced_by.take());
            earlier.at = change.at;
        }
        (earlier, later) => *earlier = later,
    }
}

fn merge_conflict(earlier: &mut ConflictWrite, later: ConflictWrite) {
    match (earlier, later) {
        (ConflictWrite::Put(row), ConflictWrite::Update { copies, dismissed, .. }) => {
            row.copies += copies;
            row.dismissed = dismissed.or_else(|| row.dismissed.take());
        }
        (
            ConflictWrite::Update { copies, dismissed, at },
            ConflictWrite::Update { copies: more, dismissed: newer, at: newest },
        ) => {
            *copies += more;
            *dismissed = newer.or_else(|| dismissed.take());
            *at = newest;
        }
        (earlier, later) => *earlier = later,
    }
}
