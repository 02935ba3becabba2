//! Steps 7 to 10 of R3: an event whose turn it is.

use super::view::Cause;
use super::{Item, Letter, Oracle, Waiter};
use crate::machines::{Move, machine};
use crate::{
    ConflictReason, EntityId, Event, LetterKind, LetterStatus, LetterSubject, Ordering, Policy, Reason, Target, Verdict,
};

/// What became of an event whose turn it was.
pub(super) struct Taken {
    pub(super) verdict: Verdict,
    pub(super) reason: Option<Reason>,
}

/// What steps 7 to 10 say, before anything is written.
pub(super) enum Plan {
    Erased,
    Ignore,
    IntentDuplicate,
    IntentConflict,
    Wait(Reason, Vec<Target>),
    MigrationRefused,
    Move(Move),
    Refuse { class: Verdict, unknown_type: bool },
}

impl Oracle {
    /// The plan for an event, and whether its entity is migrated first. `named` is what its rules waited for so far.
    pub(super) fn plan(&self, event: &Event, named: &[Target]) -> (bool, Plan) {
        let id = event.entity();
        let setup = &self.setup.machines[&id.machine];
        let view = self.view(&id);
        let rules = machine(&id.machine);
        if view.erased {
            return (false, Plan::Erased);
        }
        if setup.ignore.contains(&event.kind) {
            return (false, Plan::Ignore);
        }
        if let Some(holder) = event.idempotency_key.as_deref().and_then(|key| self.intent(&id.machine, key)) {
            let same = holder.entity() == id && holder.kind == event.kind;
            return (false, if same { Plan::IntentDuplicate } else { Plan::IntentConflict });
        }
        if !self.met(event) {
            return (false, Plan::Wait(Reason::Dependency, named.to_vec()));
        }
        if named.iter().any(|t| !self.reached(t)) {
            return (false, Plan::Wait(Reason::Waiting, named.to_vec()));
        }
        let may_be_early = setup.on_early_wait && matches!(setup.ordering, Ordering::Causal | Ordering::Arrival);
        if may_be_early && rules.early(view.state.as_deref(), &event.kind) {
            return (false, Plan::Wait(Reason::Early, named.to_vec()));
        }
        let in_force = &self.rules[&id.machine];
        let mut migrate = false;
        if view.schema.is_some_and(|schema| schema != in_force.schema) {
            if !in_force.reads.iter().any(|r| Some(*r) == view.schema) {
                return (false, Plan::Wait(Reason::Schema, named.to_vec()));
            }
            if in_force.refuses {
                return (false, Plan::MigrationRefused);
            }
            migrate = true;
        }
        if !rules.knows(&event.kind) {
            return (migrate, Plan::Refuse { class: Verdict::Illegal, unknown_type: true });
        }
        (migrate, self.ask(event, &view, named))
    }

    /// Carries out the plan for an event whose turn it is. It comes from a source, or waited, or lies in that dead letter.
    pub(super) fn take(&mut self, item: Item, waited: Option<&Waiter>, letter: Option<usize>) -> Taken {
        let id = item.event.entity();
        let named = waited.map_or(vec![], |w| w.named.clone());
        let (migrate, plan) = self.plan(&item.event, &named);
        if migrate {
            self.coverage.hit("input", "migration before an event");
            self.change(&id, Cause::Migration, None, None);
        }
        self.coverage.hit("step", plan.step());
        let (verdict, reason) = match plan {
            Plan::Erased => {
                self.change(&id, Cause::Skip, Some(&item.event), None);
                (Verdict::Skipped, None)
            }
            Plan::Ignore => {
                self.change(&id, Cause::Ignored, Some(&item.event), None);
                (Verdict::Skipped, None)
            }
            Plan::IntentDuplicate => {
                self.change(&id, Cause::IntentDuplicate, Some(&item.event), None);
                (Verdict::Duplicate, None)
            }
            Plan::IntentConflict => {
                self.quarantine_as(item.clone(), ConflictReason::Intent);
                (Verdict::Conflict, None)
            }
            Plan::Wait(reason, named) => {
                self.wait_again(item.clone(), waited, reason, named);
                (Verdict::Deferred, Some(reason))
            }
            Plan::MigrationRefused => {
                self.migration_letter(&id);
                self.wait_again(item.clone(), waited, Reason::Blocked, named);
                (Verdict::Deferred, Some(Reason::Blocked))
            }
            Plan::Move(step) => {
                self.change(&id, Cause::Event, Some(&item.event), Some((step, item.time)));
                (Verdict::Applied, None)
            }
            Plan::Refuse { class, unknown_type } => {
                self.refuse(&item, class, unknown_type, letter);
                (class, None)
            }
        };
        self.verdict(&item, verdict);
        let settled = !matches!(verdict, Verdict::Deferred | Verdict::Conflict);
        if let (Ordering::Snapshot, Some(version), true) = (self.ordering(&id.machine), item.event.version, settled) {
            self.supersede(&id, version);
        }
        Taken { verdict, reason }
    }

    /// The event waits, in its old place where it waited before.
    fn wait_again(&mut self, item: Item, waited: Option<&Waiter>, reason: Reason, named: Vec<Target>) {
        let (order, since) = match waited {
            Some(w) if w.reason == reason => (w.order, w.since),
            Some(w) => (w.order, self.clock),
            None => {
                self.deferrals += 1;
                (self.deferrals, self.clock)
            }
        };
        self.waiting.push(Waiter { item, reason, order, since, named });
    }

    /// A refusal and its policy (R5). A dead letter that is decided again is updated.
    pub(super) fn refuse(&mut self, item: &Item, class: Verdict, unknown_type: bool, letter: Option<usize>) {
        let id = item.event.entity();
        let setup = &self.setup.machines[&id.machine];
        let policy = match class {
            _ if unknown_type => setup.on_unknown,
            Verdict::Illegal => setup.on_illegal,
            Verdict::Malformed => setup.on_malformed,
            _ => setup.on_fault,
        };
        self.coverage.hit("policy", &format!("{class} {policy}"));
        let status = match policy {
            Policy::Park => LetterStatus::Open,
            Policy::Skip => {
                self.change(&id, Cause::Skip, Some(&item.event), None);
                LetterStatus::Skipped
            }
            Policy::Compensate => match self.compensation(&item.event) {
                Some(step) => {
                    self.change(&id, Cause::Compensation, Some(&item.event), Some((step, item.time)));
                    LetterStatus::Compensated
                }
                None => LetterStatus::Open,
            },
        };
        self.coverage.hit("letter", &status.to_string());
        match letter {
            Some(i) => {
                let old = &mut self.letters[i];
                (old.class, old.unknown_type, old.status) = (class, unknown_type, status);
            }
            None => self.letters.push(Letter {
                subject: LetterSubject::Event(item.event.event_id()),
                entity: Some(id),
                kind: LetterKind::Event,
                class,
                unknown_type,
                status,
                item: Some(item.clone()),
                tally: None,
            }),
        }
    }

    /// The rules refused to migrate the entity: a dead letter that blocks it.
    pub(super) fn migration_letter(&mut self, id: &EntityId) {
        let subject = LetterSubject::Migration(id.clone());
        let open = |l: &Letter| l.subject == subject && l.status == LetterStatus::Open;
        if self.letters.iter().any(open) {
            return;
        }
        self.coverage.hit("letter", "migration");
        self.letters.push(Letter {
            subject,
            entity: Some(id.clone()),
            kind: LetterKind::Migration,
            class: Verdict::Fault,
            unknown_type: false,
            status: LetterStatus::Open,
            item: None,
            tally: None,
        });
    }
}

impl Plan {
    /// The step of R3 that decided.
    fn step(&self) -> &'static str {
        match self {
            Plan::Erased => "erased",
            Plan::Ignore => "7",
            Plan::IntentDuplicate | Plan::IntentConflict => "8",
            Plan::Wait(Reason::Dependency, _) => "9",
            _ => "10",
        }
    }
}
