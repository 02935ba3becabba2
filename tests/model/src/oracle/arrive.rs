//! Steps 1 to 6 of R3, and what R4 makes of them: what a new event is before its entity's rules are asked.

use super::view::{predecessor, version};
use super::{Conflict, InboxRow, Item, Oracle, Waiter};
use crate::{ConflictReason, ConflictStatus, EntityId, Event, LetterStatus, Ordering, Outcome, Reason, Verdict};

/// What the steps before 7 say of a new event.
enum First {
    Duplicate,
    Stale,
    Conflict(ConflictReason),
    Defer(Reason),
    Ask,
}

impl Oracle {
    /// A readable event arrives, from a source or by repair.
    pub(super) fn receive(&mut self, event: &Event, received: i64, tally: usize) -> Outcome {
        let item = Item { event: event.clone(), time: event.time.unwrap_or(received), tally: Some(tally) };
        if self.inbox.contains_key(&event.event_id()) {
            return self.known(item, tally);
        }
        let row = InboxRow { event: event.clone(), verdict: Verdict::Duplicate, deliveries: 1 };
        self.inbox.insert(event.event_id(), row);
        self.decide(item)
    }

    /// Step 2: the inbox key is known.
    fn known(&mut self, item: Item, tally: usize) -> Outcome {
        self.coverage.hit("step", "2");
        let id = item.event.event_id();
        let row_event = self.inbox[&id].event.clone();
        let row_verdict = self.inbox[&id].verdict;
        let same = self.same_content(&row_event, &item.event);
        let quarantined = self.quarantined(&item.event);
        if let Some(row) = self.inbox.get_mut(&id) {
            row.deliveries += 1;
        }
        let verdict = match quarantined {
            Some(i) if !same || row_verdict == Verdict::Conflict => {
                self.quarantine[i].copies += 1;
                Verdict::Duplicate
            }
            _ if same => Verdict::Duplicate,
            _ => {
                // The row belongs to the first content: its verdict stays.
                self.quarantine_as(item, ConflictReason::Id);
                Verdict::Conflict
            }
        };
        self.tally[tally].verdict = verdict;
        Outcome::Decided(verdict, None)
    }

    fn quarantined(&self, event: &Event) -> Option<usize> {
        let same =
            |c: &Conflict| c.item.event.event_id() == event.event_id() && self.same_content(&c.item.event, event);
        self.quarantine.iter().position(same)
    }

    pub(super) fn quarantine_as(&mut self, item: Item, reason: ConflictReason) {
        self.coverage.hit("conflict", &reason.to_string());
        self.quarantine.push(Conflict { item, reason, copies: 1, status: ConflictStatus::Open });
    }

    /// Decides a new event and whatever it releases; also what replaces nothing and was never seen.
    fn decide(&mut self, item: Item) -> Outcome {
        let id = item.event.entity();
        let first = match self.ordering(&id.machine) {
            Ordering::Versioned => self.first_versioned(&id, &item.event),
            Ordering::Snapshot => self.first_snapshot(&id, &item.event),
            Ordering::Causal if self.blocked(&id) => self.step("5", First::Defer(Reason::Blocked)),
            Ordering::Causal => First::Ask,
            Ordering::Arrival if self.blocked(&id) => self.step("5", First::Defer(Reason::Blocked)),
            Ordering::Arrival if self.waiters(&id).any(|w| w.reason != Reason::Early) => {
                First::Defer(Reason::Dependency)
            }
            Ordering::Arrival => First::Ask,
        };
        let verdict = match first {
            First::Duplicate => Verdict::Duplicate,
            First::Stale => Verdict::Stale,
            First::Conflict(_) => Verdict::Conflict,
            First::Defer(reason) => {
                self.wait(item, reason);
                return Outcome::Decided(Verdict::Deferred, Some(reason));
            }
            First::Ask => {
                let before = self.log.get(&id).map_or(0, Vec::len);
                let taken = self.take(item, None, None);
                if self.log.get(&id).map_or(0, Vec::len) != before {
                    self.release(&id);
                }
                return Outcome::Decided(taken.verdict, taken.reason);
            }
        };
        self.verdict(&item, verdict);
        if let First::Conflict(reason) = first {
            self.quarantine_as(item, reason);
        }
        Outcome::Decided(verdict, None)
    }

    fn step(&mut self, step: &str, first: First) -> First {
        self.coverage.hit("step", step);
        first
    }

    fn first_versioned(&mut self, id: &EntityId, event: &Event) -> First {
        let now = self.view(id).version;
        let (at, follows) = (version(event), predecessor(event));
        if at <= now {
            let first = match self.consumed(id, at) {
                Some(row) if self.same_content(row, event) => First::Duplicate,
                Some(_) => First::Conflict(ConflictReason::Version),
                None if at <= self.view(id).imported => First::Duplicate,
                None => First::Stale,
            };
            return self.step("3", first);
        }
        if let Some(first) = self.against_standing(id, event) {
            return self.step("4", first);
        }
        if self.blocked(id) {
            return self.step("5", First::Defer(Reason::Blocked));
        }
        if follows < now || self.waiters(id).any(|w| predecessor(&w.item.event) == follows) {
            return self.step("6", First::Conflict(ConflictReason::Fork));
        }
        if follows > now {
            return self.step("6", First::Defer(Reason::Gap));
        }
        First::Ask
    }

    fn first_snapshot(&mut self, id: &EntityId, event: &Event) -> First {
        let now = self.view(id).version;
        let at = version(event);
        if at < now {
            return self.step("3", First::Stale);
        }
        if at == now {
            let first = match self.consumed(id, at) {
                Some(row) if self.same_content(row, event) => First::Duplicate,
                None if at <= self.view(id).imported => First::Duplicate,
                _ => First::Conflict(ConflictReason::Version),
            };
            return self.step("3", first);
        }
        match self.against_standing(id, event) {
            Some(first) => self.step("4", first),
            None => First::Ask,
        }
    }

    fn against_standing(&self, id: &EntityId, event: &Event) -> Option<First> {
        let standing = self.standing(id, version(event))?;
        let same = self.same_content(standing, event);
        Some(if same { First::Duplicate } else { First::Conflict(ConflictReason::Waiting) })
    }

    /// The event begins to wait.
    fn wait(&mut self, item: Item, reason: Reason) {
        self.verdict(&item, Verdict::Deferred);
        self.deferrals += 1;
        let (order, since) = (self.deferrals, self.clock);
        self.waiting.push(Waiter { item, reason, order, since, named: vec![] });
    }

    /// Snapshot: what is decided supersedes parked events of lower versions (R4).
    pub(super) fn supersede(&mut self, id: &EntityId, by: u64) {
        for i in 0..self.letters.len() {
            let letter = &self.letters[i];
            let lower = letter.item.as_ref().is_some_and(|item| item.event.version < Some(by));
            if letter.status == LetterStatus::Open && letter.entity.as_ref() == Some(id) && lower {
                self.close(i, LetterStatus::Superseded);
            }
        }
    }
}
