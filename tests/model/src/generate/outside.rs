//! What comes from outside the sources: people, timers, deadlines, restarts, new owners, new rules.
//!
//! Where the rules say nothing of a case, it is not generated: redriving a timer's dead letter, skipping a migration's,
//! deciding for an entity whose layout the rules in force cannot read, dismissing a second content of an id whose first
//! one is a conflict itself, a snapshot's conflict or timer beside a parked event.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::World;
use crate::{
    Decision, Delivery, EntityId, ImportStep, LetterKind, LetterStatus, LetterSubject, Observed, Ordering, PersonStep,
    Policy, Reason, Step, TimerRules,
};

const DAY: i64 = 86_400_000;

impl World {
    /// A person decides, or a timer comes due.
    pub(super) fn outside(&mut self) {
        let observed = self.oracle.observed();
        if self.rng.random_bool(0.15) && self.timer(&observed) {
            return;
        }
        if self.rng.random_bool(0.08) && self.import(&observed) {
            return;
        }
        let decision = match self.rng.random_range(0..13) {
            12 => self.erase(),
            0..8 => self.about_letter(&observed),
            8..10 => self.dismiss_deferred(&observed),
            _ => self.dismiss_conflict(&observed),
        };
        let Some(decision) = decision else { return };
        let (actor, reason) = ("ada".to_owned(), "looked into it".to_owned());
        self.push(Step::Person(PersonStep { actor, reason, now: self.clock, decision }));
    }

    /// An entity that another system has had so far, mostly one that is not there yet; now and then it does not fit.
    fn import(&mut self, observed: &Observed) -> bool {
        let new = self.rng.random_bool(0.8);
        let fits = |id: &&EntityId| id.machine != "subscriptions" && (!new || !observed.entities.contains_key(id));
        let all: Vec<EntityId> = self.lives.iter().map(|l| &l.entity).filter(fits).cloned().collect();
        let Some(entity) = all.choose(&mut self.rng).cloned() else { return false };
        let order = (&["pending", "paid", "shipped", "cancelled"][..], r#"{"total":"1999","currency":"EUR"}"#);
        let account = (&["open", "frozen", "closed"][..], r#"{"currency":"EUR","balance":"120"}"#);
        let (states, data) = if entity.machine == "orders" { order } else { account };
        let state = match self.rng.random_range(0..20) {
            0 => "nowhere",
            _ => states.choose(&mut self.rng).copied().unwrap_or("nowhere"),
        };
        // What was paid is what can be refunded.
        let paid = matches!(state, "paid" | "shipped");
        let data = if paid { r#"{"total":"1999","currency":"EUR","paid":"1999"}"# } else { data };
        let version = self.rng.random_range(0..6);
        let seen = if self.rng.random_bool(0.3) { vec!["order.created".to_owned()] } else { vec![] };
        let mut timers = std::collections::BTreeMap::new();
        if entity.machine == "orders" && self.rng.random_bool(0.3) {
            timers.insert("payment-timeout".to_owned(), self.clock + self.rng.random_range(0..DAY));
        }
        let schema = self.oracle.schema(&entity.machine);
        let (state, data, now) = (state.to_owned(), data.as_bytes().to_vec(), self.clock);
        self.push(Step::Import(ImportStep { entity, version, state, schema, data, seen, timers, now }));
        true
    }

    /// Any entity, mostly whatever its state.
    fn erase(&mut self) -> Option<Decision> {
        let live = self.rng.random_bool(0.6);
        self.lives.choose(&mut self.rng).map(|l| Decision::Erase(l.entity.clone(), live))
    }

    /// A pending timer's time comes; sometimes its entity is not free, sometimes it is too early.
    fn timer(&mut self, observed: &Observed) -> bool {
        let all: Vec<(EntityId, String, i64)> = observed
            .entities
            .iter()
            .filter(|(id, _)| !self.unsettled(id, observed) && !self.parked_snapshot(id, observed))
            .flat_map(|(id, e)| e.timers.iter().map(|(name, due)| (id.clone(), name.clone(), *due)))
            .collect();
        let Some((entity, name, due)) = all.choose(&mut self.rng).cloned() else {
            return false;
        };
        if self.rng.random_bool(0.8) {
            self.clock = self.clock.max(due + self.rng.random_range(0..60_000));
        }
        self.push(Step::Timer { entity, name, now: self.clock });
        true
    }

    /// Batch boundaries, restarts, hand-overs, deadlines, rules.
    pub(super) fn upheaval(&mut self) {
        match self.rng.random_range(0..10) {
            0..2 if self.history.setup.markers => self.rules(),
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
                self.push(Step::HandOver { source: source.clone(), partition });
                self.replay(&source, partition);
            }
            5 | 6 => self.deadline(),
            7 if !self.broken.is_empty() => self.mend(),
            _ if self.history.setup.markers => self.rules(),
            _ => self.push(Step::Cut),
        }
    }

    /// The last lines of a partition come again at their old positions, more often than not.
    fn replay(&mut self, source: &str, partition: u32) {
        let of_partition = |s: &Step| match s {
            Step::Deliver(d) if !d.replay && d.source == source && d.partition == partition => Some(d.clone()),
            _ => None,
        };
        let delivered: Vec<_> = self.history.steps.iter().filter_map(of_partition).collect();
        if self.rng.random_bool(0.4) {
            return;
        }
        let from = delivered.len().saturating_sub(self.rng.random_range(1..4));
        for d in &delivered[from..] {
            let received = self.clock;
            self.push(Step::Deliver(Delivery { received, replay: true, ..d.clone() }));
        }
    }

    /// All early events that wait are at their deadline; only where it is clear what then becomes of the others.
    fn deadline(&mut self) {
        let observed = self.oracle.observed();
        let early: Vec<_> = observed.waiting.values().filter(|w| w.reason == Reason::Early).collect();
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
        self.push(Step::Rules { machine: machine.clone(), schema, reads, refuses, timers });
        if self.rng.random_bool(0.5) {
            self.migrate_some(&machine);
        }
        if timers != TimerRules::Real {
            let observed = self.oracle.observed();
            self.timer(&observed);
        }
    }

    /// Rules that read everything, and entities migrated to them.
    pub(super) fn mend(&mut self) {
        for machine in std::mem::take(&mut self.broken) {
            let schema = self.oracle.schema(&machine);
            let reads = (1..schema).collect();
            let timers = TimerRules::Real;
            self.push(Step::Rules { machine: machine.clone(), schema, reads, refuses: false, timers });
            let observed = self.oracle.observed();
            for (id, letter) in &observed.letters {
                let ours = letter.entity.as_ref().is_some_and(|e| e.machine == machine);
                if ours && letter.kind == LetterKind::Migration && letter.status == LetterStatus::Open {
                    let (actor, reason) = ("ada".to_owned(), "the rules read it now".to_owned());
                    let decision = Decision::Redrive(id.clone());
                    self.push(Step::Person(PersonStep { actor, reason, now: self.clock, decision }));
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
            let open = now.letters.iter().any(|(id, l)| id.subject == migration && l.status == LetterStatus::Open);
            if self.oracle.can_migrate(entity) && !open {
                self.push(Step::Migrate { entity: entity.clone() });
            }
        }
    }
}
