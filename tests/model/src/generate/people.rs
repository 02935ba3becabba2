//! What a person decides, mostly about things that are there.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::World;
use super::line;
use crate::{
    ConflictId, ConflictReason, ConflictStatus, Decision, EntityId, EventId, LetterId, LetterKind, LetterStatus,
    LetterSubject, Observed, Ordering, Verdict,
};

impl World {
    pub(super) fn about_letter(&mut self, observed: &Observed) -> Option<Decision> {
        let wanted_open = self.rng.random_bool(0.9);
        let fits = |status: LetterStatus| (status == LetterStatus::Open) == wanted_open;
        let letters: Vec<_> = observed.letters.iter().filter(|(_, l)| fits(l.status)).collect();
        let Some((id, letter)) = letters.choose(&mut self.rng) else {
            return self.rng.random_bool(0.2).then(|| Decision::Redrive(nobody()));
        };
        let (id, letter) = ((*id).clone(), (*letter).clone());
        let unsettled = letter.entity.as_ref().is_some_and(|e| self.unsettled(e, observed));
        let of_event = matches!(id.subject, LetterSubject::Event(_));
        match (self.rng.random_range(0..8), letter.kind) {
            (_, LetterKind::Migration) => Some(Decision::Redrive(id)),
            (0..4, LetterKind::Timer) | (4..6, LetterKind::Timer) => Some(Decision::Skip(id)),
            (_, LetterKind::Timer) => Some(Decision::Compensate(id)),
            (0..2, _) if !unsettled => Some(Decision::Redrive(id)),
            (2..4, _) => Some(Decision::Skip(id)),
            (4..6, _) if !unsettled => Some(Decision::Compensate(id)),
            (6.., _) if !unsettled && of_event => self.replace(id),
            _ => None,
        }
    }

    /// The rules in force differ in layout from the entity's data, or its migration lies open.
    pub(super) fn unsettled(&self, entity: &EntityId, observed: &Observed) -> bool {
        let migration = LetterSubject::Migration(entity.clone());
        let open = observed.letters.iter().any(|(id, l)| id.subject == migration && l.status == LetterStatus::Open);
        open || self.oracle.schema_differs(entity)
    }

    /// A snapshot machine's entity with an open dead letter, which blocks it for nothing but what the rules leave open.
    pub(super) fn parked_snapshot(&self, entity: &EntityId, observed: &Observed) -> bool {
        let mut open = observed.letters.values().filter(|l| l.status == LetterStatus::Open);
        self.ordering(&entity.machine) == Ordering::Snapshot && open.any(|l| l.entity.as_ref() == Some(entity))
    }

    /// A corrected event in the parked one's place; now and then one that does not fit there.
    fn replace(&mut self, letter: LetterId) -> Option<Decision> {
        let LetterSubject::Event(id) = &letter.subject else {
            return None;
        };
        let (at, mut draft) = self.sent.iter().rev().find(|(_, d)| d.event.event_id() == *id).cloned()?;
        let parked = self.oracle.letter_event(&letter)?;
        let mut life = self.lives[at].clone();
        life.state = self.oracle.state(&parked.entity());
        life.facts = self.oracle.kept(&parked.entity());
        let fresh = life.legal(&mut self.rng);
        let kind = fresh.unwrap_or(draft.event.kind);
        draft.body = life.body(&mut self.rng, &kind);
        draft.event.kind = kind;
        draft.event.version = parked.version;
        draft.event.previous = parked.previous;
        draft.event.key = parked.key.clone();
        draft.event.depends_on.clear();
        draft.event.idempotency_key = None;
        draft.event.time = Some(self.clock);
        draft.event.content_type = match &draft.body {
            line::Body::Text(_) => Some("text/plain".to_owned()),
            _ => Some("application/json".to_owned()),
        };
        match self.rng.random_range(0..10) {
            0..5 => draft.event.id = self.new_id(),
            5 => draft.event.id = "e1".to_owned(),
            6 => draft.event.key.push('x'),
            _ => {}
        }
        if self.machine(&draft.event.machine).ignore.contains(&draft.event.kind) {
            return None;
        }
        let (bytes, event) = line::write(&mut self.rng, &draft);
        Some(Decision::Replace(letter, bytes, Box::new(event)))
    }

    pub(super) fn dismiss_deferred(&mut self, observed: &Observed) -> Option<Decision> {
        let waiting: Vec<&EventId> = observed.waiting.keys().collect();
        let decided: Vec<&EventId> = observed.inbox.keys().collect();
        let all = if self.rng.random_bool(0.85) { waiting } else { decided };
        all.choose(&mut self.rng).map(|id| Decision::DismissDeferred((*id).clone()))
    }

    pub(super) fn dismiss_conflict(&mut self, observed: &Observed) -> Option<Decision> {
        let open = self.rng.random_bool(0.9);
        let fits = |(id, c): &(&ConflictId, &crate::ConflictView)| {
            let row = observed.inbox.get(&id.event).map(|row| row.verdict);
            let unclear = c.reason == ConflictReason::Id && row == Some(Verdict::Conflict);
            let parked = self.parked_snapshot(&c.entity, observed);
            !unclear && !parked && (c.status == ConflictStatus::Open) == open
        };
        let all: Vec<ConflictId> = observed.conflicts.iter().filter(fits).map(|(id, _)| id.clone()).collect();
        match all.choose(&mut self.rng) {
            Some(id) => Some(Decision::DismissConflict(id.clone())),
            None if self.rng.random_bool(0.1) => {
                let LetterSubject::Event(event) = nobody().subject else {
                    return None;
                };
                Some(Decision::DismissConflict(ConflictId { event, nth: 0 }))
            }
            None => None,
        }
    }
}

/// A dead letter that does not exist.
fn nobody() -> LetterId {
    let event = EventId { machine: "orders".to_owned(), source: "/nobody".to_owned(), id: "none".to_owned() };
    LetterId { subject: LetterSubject::Event(event), nth: 0 }
}
