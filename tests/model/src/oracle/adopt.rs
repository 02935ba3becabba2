//! Entities that come from another system, and entities that are erased (R5).

use super::Oracle;
use super::view::Cause;
use crate::machines::machine;
use crate::{EntityId, ImportStep, LetterStatus, Ordering, Outcome, Verdict};

impl Oracle {
    /// Revision 1 of an entity that has none.
    pub(super) fn import(&mut self, step: &ImportStep) -> Outcome {
        self.clock = self.clock.max(step.now);
        let id = &step.entity;
        let rules = &self.rules[&id.machine];
        let numbered = matches!(self.ordering(&id.machine), Ordering::Versioned | Ordering::Snapshot);
        let known = machine(&id.machine).has(&step.state);
        let readable = step.schema == rules.schema || rules.reads.contains(&step.schema);
        let ended = !machine(&id.machine).is_live(&step.state) && !step.timers.is_empty();
        let fits = known && readable && !ended && !(numbered && step.version == 0);
        if self.view(id).revision > 0 || self.blocked(id) || !fits {
            self.coverage.hit("input", "import refused");
            return Outcome::Refused;
        }
        self.coverage.hit("input", "import");
        self.change(id, Cause::Import(Box::new(step.clone())), None, None);
        self.release(id);
        Outcome::Done
    }

    /// Whatever waits or is parked is skipped; timers and data go, and one revision says so.
    pub(super) fn erase(&mut self, id: &EntityId, live: bool) -> Option<()> {
        let view = self.view(id);
        let open = |o: &Self| {
            let ours = |l: &super::Letter| l.entity.as_ref() == Some(id) && l.status == LetterStatus::Open;
            o.letters.iter().position(ours)
        };
        let waits = |o: &Self| o.waiting.iter().position(|w| w.item.event.entity() == *id);
        let there = view.revision > 0 || open(self).is_some() || waits(self).is_some();
        let ended = view.state.as_deref().is_some_and(|state| !machine(&id.machine).is_live(state));
        if !there || !(live || ended) {
            return None;
        }
        while let Some(at) = waits(self) {
            let w = self.waiting.remove(at);
            self.verdict(&w.item, Verdict::Skipped);
        }
        while let Some(at) = open(self) {
            self.close(at, LetterStatus::Skipped);
        }
        self.change(id, Cause::Erase, None, None);
        Some(())
    }
}
