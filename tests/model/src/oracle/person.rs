//! A person's decisions (R5).

use super::take::Plan;
use super::view::{Cause, predecessor, version};
use super::{InboxRow, Item, Oracle};
use crate::{
    ConflictId, ConflictStatus, Decision, EntityId, Event, EventId, LetterId, LetterKind, LetterStatus, Ordering,
    Outcome, PersonStep, Verdict,
};

impl Oracle {
    /// Carries out a person's decision; `Refused` where the command fails and nothing changes.
    pub(super) fn person(&mut self, step: &PersonStep) -> Outcome {
        self.clock = self.clock.max(step.now);
        let (what, done) = match &step.decision {
            Decision::Redrive(id) => ("redrive", self.redrive(id)),
            Decision::Skip(id) => ("skip", self.skip(id)),
            Decision::Compensate(id) => ("compensate", self.compensate(id)),
            Decision::Replace(id, _, event) => ("replace", self.replace(id, event, step.now)),
            Decision::DismissDeferred(id) => ("dismiss deferred", self.dismiss_deferred(id)),
            Decision::DismissConflict(id) => ("dismiss conflict", self.dismiss_conflict(id)),
            Decision::Erase(id, live) => ("erase", self.erase(id, *live)),
        };
        let (outcome, word) = if done.is_some() { (Outcome::Done, "done") } else { (Outcome::Refused, "refused") };
        self.coverage.hit("person", &format!("{what} {word}"));
        outcome
    }

    /// The index of that dead letter, where it is open.
    fn open(&self, id: &LetterId) -> Option<usize> {
        (0..self.letters.len()).find(|i| self.letter_id(*i) == *id && self.letters[*i].status == LetterStatus::Open)
    }

    /// Closes a dead letter. Its event is skipped unless it was compensated, or decided again.
    pub(super) fn close(&mut self, index: usize, status: LetterStatus) {
        self.coverage.hit("letter", &status.to_string());
        let letter = &mut self.letters[index];
        letter.status = status;
        if matches!(status, LetterStatus::Skipped | LetterStatus::Replaced | LetterStatus::Superseded) {
            if let Some(tally) = letter.tally {
                self.tally[tally].verdict = Verdict::Skipped;
            }
            if let Some(item) = letter.item.clone() {
                self.verdict(&item, Verdict::Skipped);
            }
        }
    }

    fn redrive(&mut self, id: &LetterId) -> Option<()> {
        let index = self.open(id)?;
        let letter = self.letters[index].clone();
        match (letter.kind, letter.item, letter.entity) {
            (LetterKind::Event, Some(item), Some(entity)) => {
                let taken = self.take(item, None, Some(index));
                let again = matches!(taken.verdict, Verdict::Illegal | Verdict::Malformed | Verdict::Fault);
                if !again {
                    self.close(index, LetterStatus::Redriven);
                }
                self.release(&entity);
                Some(())
            }
            // Decoded again, a malformed envelope is malformed again: its bytes are the same.
            (LetterKind::Event, ..) => Some(()),
            (LetterKind::Migration, _, Some(entity)) => {
                // Rules that write the entity's own layout have nothing to migrate: a rollback frees it.
                let current = self.view(&entity).schema == Some(self.rules[&entity.machine].schema);
                if current || self.migrate(&entity) == Some(true) {
                    self.close(index, LetterStatus::Redriven);
                    self.release(&entity);
                }
                Some(())
            }
            _ => None,
        }
    }

    fn skip(&mut self, id: &LetterId) -> Option<()> {
        let index = self.open(id)?;
        self.close(index, LetterStatus::Skipped);
        let letter = self.letters[index].clone();
        if let (LetterKind::Event, Some(entity)) = (letter.kind, letter.entity) {
            let event = letter.item.map(|i| i.event);
            self.change(&entity, Cause::Skip, event.as_ref(), None);
            self.after(&entity, event.as_ref());
        }
        Some(())
    }

    fn compensate(&mut self, id: &LetterId) -> Option<()> {
        let index = self.open(id)?;
        let item = self.letters[index].item.clone()?;
        let before = (self.log.clone(), self.letters.clone());
        let Some(step) = self.compensation(&item.event) else {
            (self.log, self.letters) = before;
            return None;
        };
        let entity = item.event.entity();
        self.close(index, LetterStatus::Compensated);
        self.change(&entity, Cause::Compensation, Some(&item.event), Some((step, item.time)));
        self.after(&entity, Some(&item.event));
        Some(())
    }

    /// The corrected event takes the parked one's place; only where it is applied or ignored.
    fn replace(&mut self, id: &LetterId, event: &Event, now: i64) -> Option<()> {
        let index = self.open(id)?;
        let original = self.letters[index].item.clone()?;
        let entity = original.event.entity();
        let numbered = matches!(self.ordering(&entity.machine), Ordering::Versioned | Ordering::Snapshot);
        let same_place = event.entity() == entity && (!numbered || event.version == original.event.version);
        let same_id = event.event_id() == original.event.event_id();
        if !same_place || (!same_id && self.inbox.contains_key(&event.event_id())) {
            return None;
        }
        let (migrate, plan) = self.plan(event, &[]);
        let (cause, verdict, step) = match plan {
            Plan::Move(step) => (Cause::Event, Verdict::Applied, Some((step, event.time.unwrap_or(now)))),
            Plan::Ignore => (Cause::Ignored, Verdict::Skipped, None),
            _ => return None,
        };
        if migrate {
            self.change(&entity, Cause::Migration, None, None);
        }
        self.close(index, LetterStatus::Replaced);
        self.change(&entity, cause, Some(event), step);
        if !same_id {
            self.inbox.insert(event.event_id(), InboxRow { event: event.clone(), verdict, deliveries: 0 });
        }
        self.after(&entity, Some(event));
        Some(())
    }

    fn dismiss_deferred(&mut self, id: &EventId) -> Option<()> {
        let at = self.waiting.iter().position(|w| w.item.event.event_id() == *id)?;
        let w = self.waiting.remove(at);
        self.verdict(&w.item, Verdict::Skipped);
        let entity = w.item.event.entity();
        if self.ordering(&entity.machine) == Ordering::Arrival {
            self.release(&entity);
        }
        Some(())
    }

    /// The quarantined event is skipped; where its version is the next, that is consumed.
    fn dismiss_conflict(&mut self, id: &ConflictId) -> Option<()> {
        let open = |i: &usize| self.quarantine[*i].status == ConflictStatus::Open;
        let index = (0..self.quarantine.len()).find(|i| self.conflict_id(*i) == *id).filter(open)?;
        self.quarantine[index].status = ConflictStatus::Dismissed;
        let Item { event, tally, .. } = self.quarantine[index].item.clone();
        if let Some(tally) = tally {
            self.tally[tally].verdict = Verdict::Skipped;
        }
        if let Some(row) = self.inbox.get_mut(&event.event_id())
            && row.verdict == Verdict::Conflict
        {
            row.verdict = Verdict::Skipped;
        }
        let entity = event.entity();
        let now = self.view(&entity).version;
        let next = match self.ordering(&entity.machine) {
            // One that waits and follows the same version is the one that comes next.
            Ordering::Versioned => {
                let rival = |w: &super::Waiter| predecessor(&w.item.event) == now;
                let follows = predecessor(&event) == now && version(&event) > now;
                follows && !self.blocked(&entity) && !self.waiters(&entity).any(rival)
            }
            Ordering::Snapshot => version(&event) > now,
            Ordering::Causal | Ordering::Arrival => false,
        };
        if next && self.standing(&entity, version(&event)).is_none() {
            self.coverage.hit("person", "dismiss conflict consumes");
            self.change(&entity, Cause::Dismiss, Some(&event), None);
            self.after(&entity, Some(&event));
        }
        Some(())
    }

    /// What follows a person's change: snapshot machines close what it passed, and waiting events go on.
    fn after(&mut self, entity: &EntityId, event: Option<&Event>) {
        if let (Ordering::Snapshot, Some(version)) = (self.ordering(&entity.machine), event.and_then(|e| e.version)) {
            self.supersede(entity, version);
        }
        self.release(entity);
    }
}
