//! What a run can be asked for at its end, and how things are named there.

use super::{Letter, Oracle};
use crate::{ConflictId, ConflictView, EntityView, InboxView, LetterId, LetterView, Observed, Ordering, WaitingView};

impl Oracle {
    /// What a run can be asked for at its end.
    pub fn observed(&self) -> Observed {
        let mut out = Observed::default();
        for id in self.log.keys() {
            let view = self.view(id);
            if !view.messages.is_empty() {
                out.outbox.insert(id.clone(), view.messages);
            }
            let mut data = view.facts;
            data.retain(|name, _| name != "period");
            let (state, version, revision) = (view.state, view.version, view.revision);
            let entity = EntityView { state, version, revision, seen: view.seen, data, timers: view.timers };
            out.entities.insert(id.clone(), entity);
        }
        for w in &self.waiting {
            let view = WaitingView { entity: w.item.event.entity(), reason: w.reason };
            out.waiting.insert(w.item.event.event_id(), view);
        }
        for (i, l) in self.letters.iter().enumerate() {
            let Letter { entity, kind, class, unknown_type, status, .. } = l.clone();
            out.letters.insert(self.letter_id(i), LetterView { entity, kind, class, unknown_type, status });
        }
        for (i, c) in self.quarantine.iter().enumerate() {
            let entity = c.item.event.entity();
            let numbered = matches!(self.ordering(&entity.machine), Ordering::Versioned | Ordering::Snapshot);
            let version = c.item.event.version.filter(|_| numbered);
            let view = ConflictView { entity, version, reason: c.reason, copies: c.copies, status: c.status };
            out.conflicts.insert(self.conflict_id(i), view);
        }
        for (id, row) in &self.inbox {
            out.inbox.insert(id.clone(), InboxView { verdict: row.verdict, deliveries: row.deliveries });
        }
        for t in &self.tally {
            *out.counters.entry((t.source.clone(), t.partition, t.verdict)).or_default() += 1;
        }
        out
    }

    /// How a letter is named.
    pub(super) fn letter_id(&self, index: usize) -> LetterId {
        let subject = self.letters[index].subject.clone();
        let earlier = self.letters[..index].iter().filter(|l| l.subject == subject).count();
        LetterId { subject, nth: u32::try_from(earlier).unwrap_or(u32::MAX) }
    }

    /// How a conflict is named.
    pub(super) fn conflict_id(&self, index: usize) -> ConflictId {
        let event = self.quarantine[index].item.event.event_id();
        let earlier = self.quarantine[..index].iter().filter(|c| c.item.event.event_id() == event).count();
        ConflictId { event, nth: u32::try_from(earlier).unwrap_or(u32::MAX) }
    }
}
