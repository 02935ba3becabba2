//! What comes neither from a source nor from a person: timers, deadlines, migrations (R6, R4, R8).

use super::view::Cause;
use super::{Letter, Oracle};
use crate::machines::{Answer, Input, Trigger, machine};
use crate::{EntityId, EventId, LetterKind, LetterStatus, LetterSubject, Outcome, Reason, TimerRules, Verdict};

impl Oracle {
    /// A timer fires where it is due and the entity has neither waiting events nor a dead letter (R6).
    pub(super) fn timer(&mut self, id: &EntityId, name: &str, now: i64) -> Outcome {
        self.clock = self.clock.max(now);
        let view = self.view(id);
        let due = view.timers.get(name).copied().filter(|due| *due <= now);
        let Some(due) = due.filter(|_| !self.blocked(id) && self.waiters(id).next().is_none()) else {
            self.coverage.hit("timer", "not now");
            return Outcome::Refused;
        };
        let state = view.state.as_deref();
        let input = Input { state, facts: &view.facts, trigger: Trigger::Timer(name), data: None };
        let answer = match self.rules[&id.machine].timers {
            TimerRules::Real => machine(&id.machine).apply(&input),
            TimerRules::Refuse => Answer::Illegal,
            TimerRules::Fault => {
                self.coverage.hit("timer", "fault");
                self.change(id, Cause::TimerGone(name.to_owned()), None, None);
                self.letters.push(Letter {
                    subject: LetterSubject::Timer { entity: id.clone(), name: name.to_owned() },
                    entity: Some(id.clone()),
                    kind: LetterKind::Timer,
                    class: Verdict::Fault,
                    unknown_type: false,
                    status: LetterStatus::Open,
                    item: None,
                    tally: None,
                });
                return Outcome::Decided(Verdict::Fault, None);
            }
        };
        match answer {
            Answer::Move(step) => {
                self.coverage.hit("timer", "fired");
                self.change(id, Cause::Timer(name.to_owned()), None, Some((step, due)));
                Outcome::Done
            }
            Answer::Illegal | Answer::Malformed => {
                self.coverage.hit("timer", "ignored");
                self.change(id, Cause::TimerGone(name.to_owned()), None, None);
                Outcome::Ignored
            }
        }
    }

    /// Early events at their deadline become illegal (R4); on a blocked entity they go on waiting.
    pub(super) fn deadline(&mut self, now: i64, only: Option<&EventId>) -> Outcome {
        self.clock = self.clock.max(now);
        self.coverage.hit("input", "deadline");
        let mut due: Vec<(EntityId, u64)> = Vec::new();
        for w in &self.waiting {
            let id = w.item.event.entity();
            let waited = now.saturating_sub(w.since) >= self.setup.machines[&id.machine].early_after;
            if waited && w.reason == Reason::Early && only.is_none_or(|only| *only == w.item.event.event_id()) {
                due.push((id, w.order));
            }
        }
        due.sort();
        let mut asked = false;
        for (id, order) in due {
            let early = |w: &super::Waiter| w.order == order && w.reason == Reason::Early;
            let Some(at) = self.waiting.iter().position(early).filter(|_| !self.blocked(&id)) else {
                continue;
            };
            let w = self.waiting.remove(at);
            self.coverage.hit("early", "deadline");
            self.refuse(&w.item, Verdict::Illegal, false, None);
            self.verdict(&w.item, Verdict::Illegal);
            self.release(&id);
            asked = true;
        }
        if asked { Outcome::Done } else { Outcome::Refused }
    }

    /// The entity is migrated to the rules in force, where they read its layout and it has another.
    pub(super) fn migrate_input(&mut self, id: &EntityId) -> Outcome {
        self.coverage.hit("input", "migrate");
        match self.migrate(id) {
            Some(true) => {
                self.release(id);
                Outcome::Done
            }
            Some(false) => {
                self.migration_letter(id);
                Outcome::Done
            }
            None => Outcome::Refused,
        }
    }

    /// True where it was migrated, false where the rules refused, none where there was nothing to migrate from.
    pub(super) fn migrate(&mut self, id: &EntityId) -> Option<bool> {
        if self.view(id).erased {
            return None;
        }
        let rules = &self.rules[&id.machine];
        let has = self.view(id).schema.filter(|s| *s != rules.schema && rules.reads.contains(s));
        has?;
        if rules.refuses {
            return Some(false);
        }
        self.change(id, Cause::Migration, None, None);
        Some(true)
    }
}
