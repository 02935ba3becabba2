//! What comes from outside the sources: people, timers, deadlines, restarts, new owners, new rules.
//!
//! Where the rules say nothing of a case, it is not generated: redriving a timer's dead letter, skipping a migration's,
//! deciding for an entity whose layout the rules in force cannot read, dismissing a second content of an id whose first
//! one is a conflict itself, or a snapshot's conflict beside a parked event.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::World;
use super::line;
use crate::{
    ConflictId, ConflictReason, ConflictStatus, Decision, Delivery, EntityId, EventId, LetterId,
    LetterKind, LetterStatus, LetterSubject, Observed, Ordering, PersonStep, Policy, Reason, Step,
    TimerRules, Verdict,
};

const DAY: i64 = 86_400_000;

impl World {
    /// A person decides, or a timer comes due.
    pub(super) fn outside(&mut self) {
        let observed = self.oracle.observed();
        if self.rng.random_bool(0.15) && self.timer(&observed) {
            return;
        }
        let decision = match self.rng.random_range(0..12) {
            0..8 => self.about_letter(&observed),
            8..10 => self.dismiss_deferred(&observed),
            _ => self.dismiss_conflict(&observed),
        };
        let Some(decision) = decision else { return };
        let (actor, reason) = ("ada".to_owned(), "looked into it".to_owned());
        self.push(Step::Person(PersonStep {
            actor,
            reason,
            now: self.clock,
            decision,
        }));
    }

    fn about_letter(&mut self, observed: &Observed) -> Option<Decision> {
        let wanted_open = self.rng.random_bool(0.9);
        let fits = |status: LetterStatus| (status == LetterStatus::Open) == wanted_open;
        let letters: Vec<_> = observed
            .letters
            .iter()
            .filter(|(_, l)| fits(l.status))
            .collect();
        let Some((id, letter)) = letters.choose(&mut self.rng) else {
            return self
                .rng
                .random_bool(0.2)
                .then(|| Decision::Redrive(nobody()));
        };
        let (id, letter) = ((*id).clone(), (*letter).clone());
        let unsettled = letter
            .entity
            .as_ref()
            .is_some_and(|e| self.unsettled(e, observed));
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
    fn unsettled(&self, entity: &EntityId, observed: &Observed) -> bool {
        let migration = LetterSubject::Migration(entity.clone());
        let open = observed
            .letters
            .iter()
            .any(|(id, l)| id.subject == migration && l.status == LetterStatus::Open);
        open || self.oracle.schema_differs(entity)
    }

    /// A corrected event in the parked one's place; now and then one that does not fit there.
    fn replace(&mut self, letter: LetterId) -> Option<Decision> {
        let LetterSubject::Event(id) = &letter.subject else {
            return None;
        };
        let (at, mut draft) = self
            .sent
            .iter()
            .rev()
            .find(|(_, d)| d.event.event_id() == *id)
            .cloned()?;
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
        if self
            .machine(&draft.event.machine)
            .ignore
            .contains(&draft.event.kind)
        {
            return None;
        }
        let (bytes, event) = line::write(&mut self.rng, &draft);
        Some(Decision::Replace(letter, bytes, Box::new(event)))
    }

    fn dismiss_deferred(&mut self, observed: &Observed) -> Option<Decision> {
        let waiting: Vec<&EventId> = observed.waiting.keys().collect();
        let decided: Vec<&EventId> = observed.inbox.keys().collect();
        let all = if self.rng.random_bool(0.85) {
            waiting
        } else {
            decided
        };
        all.choose(&mut self.rng)
            .map(|id| Decision::DismissDeferred((*id).clone()))
    }

    fn dismiss_conflict(&mut self, observed: &Observed) -> Option<Decision> {
        let open = self.rng.random_bool(0.9);
        let fits = |(id, c): &(&ConflictId, &crate::ConflictView)| {
            let row = observed.inbox.get(&id.event).map(|row| row.verdict);
            let unclear = c.reason == ConflictReason::Id && row == Some(Verdict::Conflict);
            let parked = self.ordering(&c.entity.machine) == Ordering::Snapshot
                && observed.letters.values().any(|l| {
                    l.entity.as_ref() == Some(&c.entity) && l.status == LetterStatus::Open
                });
            !unclear && !parked && (c.status == ConflictStatus::Open) == open
        };
        let all: Vec<ConflictId> = observed
            .conflicts
            .iter()
            .filter(fits)
            .map(|(id, _)| id.clone())
            .collect();
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

    /// A pending timer's time comes; sometimes its entity is not free, sometimes it is too early.
    fn timer(&mut self, observed: &Observed) -> bool {
        let all: Vec<(EntityId, String, i64)> = observed
            .entities
            .iter()
            .filter(|(id, _)| !self.unsettled(id, observed))
            .flat_map(|(id, e)| {
                e.timers
                    .iter()
                    .map(|(name, due)| (id.clone(), name.clone(), *due))
            })
            .collect();
        let Some((entity, name, due)) = all.choose(&mut self.rng).cloned() else {
            return false;
        };
        if self.rng.random_bool(0.8) {
            self.clock = self.clock.max(due + self.rng.random_range(0..60_000));
        }
        self.push(Step::Timer {
            entity,
            name,
            now: self.clock,
        });
        true
    }

    /// Batch boundaries, restarts, hand-overs, deadlines, rules.
    pub(super) fn upheaval(&mut self) {
        match self.rng.random_range(0..10) {
            0..3 => self.push(Step::Cut),
            3 => {
                self.push(Step::Restart);
                let last = self.history.steps.iter().rev().find_map(|s| match s {
                    Step::Deliver(d) => Some((d.source.clone(), d.partition)),
                    _ => None,
                });
                if let Some((source, partition)) = last {
                    self.replay(&source, partition);
                }
            }
            4 => {
                let sources = &self.history.setup.sources;
                let source = &sources[self.rng.random_range(0..sources.len())];
                let (source, partitions) = (source.name.clone(), source.partitions);
                let partition = self.rng.random_range(0..partitions);
                self.push(Step::HandOver {
                    source: source.clone(),
                    partition,
                });
                self.replay(&source, partition);
            }
            5 | 6 => self.deadline(),
            7 => {
                self.mend();
            }
            _ if self.history.setup.markers => self.rules(),
            _ => self.push(Step::Cut),
        }
    }

    /// The last lines of a partition come again at their old positions, more often than not.
    fn replay(&mut self, source: &str, partition: u32) {
        let of_partition = |s: &Step| match s {
            Step::Deliver(d) if !d.replay && d.source == source && d.partition == partition => {
                Some(d.clone())
            }
            _ => None,
        };
        let delivered: Vec<_> = self.history.steps.iter().filter_map(of_partition).collect();
        if self.rng.random_bool(0.4) {
            return;
        }
        let from = delivered.len().saturating_sub(self.rng.random_range(1..4));
        for d in &delivered[from..] {
            let received = self.clock;
            self.push(Step::Deliver(Delivery {
                received,
                replay: true,
                ..d.clone()
            }));
        }
    }

    /// All early events that wait are at their deadline; only where it is clear what then becomes of the others.
    fn deadline(&mut self) {
        let observed = self.oracle.observed();
        let early: Vec<_> = observed
            .waiting
            .values()
            .filter(|w| w.reason == Reason::Early)
            .collect();
        let clear = early.iter().all(|w| {
            let alone = early.iter().filter(|o| o.entity == w.entity).count() == 1;
            let blocked = observed
                .letters
                .values()
                .any(|l| l.entity.as_ref() == Some(&w.entity) && l.status == LetterStatus::Open);
            !blocked && (alone || self.machine(&w.entity.machine).on_illegal == Policy::Skip)
        });
        if clear && !early.is_empty() {
            self.clock += DAY;
            self.push(Step::Deadline { now: self.clock });
        }
    }

    /// New test rules: another layout that reads the old one, or does not, or refuses; other answers to timers.
    fn rules(&mut self) {
        let names: Vec<String> = self.history.setup.machines.keys().cloned().collect();
        let Some(machine) = names.choose(&mut self.rng).cloned() else {
            return;
        };
        if self.broken.contains(&machine) {
            return;
        }
        let schema = self.oracle.schema(&machine);
        let timers = [TimerRules::Real, TimerRules::Refuse, TimerRules::Fault];
        let timers = *timers.choose(&mut self.rng).unwrap_or(&TimerRules::Real);
        let older: Vec<u32> = (1..=schema).collect();
        let (schema, reads, refuses) = match self.rng.random_range(0..4) {
            0 => (schema, (1..schema).collect(), false),
            1 => (schema + 1, older, false),
            2 if self.ordering(&machine) != Ordering::Snapshot => (schema + 1, older, true),
            _ => (schema + 1, vec![], false),
        };
        if reads.len() as u32 + 1 < schema || refuses {
            self.broken.push(machine.clone());
        }
        self.push(Step::Rules {
            machine: machine.clone(),
            schema,
            reads,
            refuses,
            timers,
        });
        if self.rng.random_bool(0.5) {
            self.migrate_some(&machine);
        }
    }

    /// Rules that read everything, and entities migrated to them.
    pub(super) fn mend(&mut self) {
        for machine in std::mem::take(&mut self.broken) {
            let schema = self.oracle.schema(&machine);
            let reads = (1..schema).collect();
            let timers = TimerRules::Real;
            self.push(Step::Rules {
                machine: machine.clone(),
                schema,
                reads,
                refuses: false,
                timers,
            });
            let observed = self.oracle.observed();
            for (id, letter) in &observed.letters {
                let ours = letter.entity.as_ref().is_some_and(|e| e.machine == machine);
                if ours
                    && letter.kind == LetterKind::Migration
                    && letter.status == LetterStatus::Open
                {
                    let (actor, reason) = ("ada".to_owned(), "the rules read it now".to_owned());
                    let decision = Decision::Redrive(id.clone());
                    self.push(Step::Person(PersonStep {
                        actor,
                        reason,
                        now: self.clock,
                        decision,
                    }));
                }
            }
            self.migrate_some(&machine);
        }
    }

    fn migrate_some(&mut self, machine: &str) {
        let observed = self.oracle.observed();
        for entity in observed.entities.keys().filter(|e| e.machine == machine) {
            let now = self.oracle.observed();
            let migration = LetterSubject::Migration(entity.clone());
            let open = now
                .letters
                .iter()
                .any(|(id, l)| id.subject == migration && l.status == LetterStatus::Open);
            if self.oracle.can_migrate(entity) && !open {
                self.push(Step::Migrate {
                    entity: entity.clone(),
                });
            }
        }
    }
}

/// A dead letter that does not exist.
fn nobody() -> LetterId {
    let event = EventId {
        machine: "orders".to_owned(),
        source: "/nobody".to_owned(),
        id: "none".to_owned(),
    };
    LetterId {
        subject: LetterSubject::Event(event),
        nth: 0,
    }
}
