//! Steps 7 to 10 of R3: an event whose turn it is.

use super::view::{Cause, View};
use super::{Item, Letter, Oracle, Waiter};
use crate::machines::{Answer, Input, Move, Trigger, machine};
use crate::{
    ConflictReason, EntityId, Event, LetterKind, LetterStatus, LetterSubject, Ordering, Policy,
    Reason, Target, Value, Verdict,
};

/// The most names that rules may wait for, those met included.
const MOST_NAMES: usize = 16;

/// What became of an event whose turn it was.
pub(super) struct Taken {
    pub(super) verdict: Verdict,
    pub(super) reason: Option<Reason>,
}

/// What steps 7 to 10 say, before anything is written.
pub(super) enum Plan {
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
        if setup.ignore.contains(&event.kind) {
            return (false, Plan::Ignore);
        }
        if let Some(holder) = event
            .idempotency_key
            .as_deref()
            .and_then(|key| self.intent(&id.machine, key))
        {
            let same = holder.entity() == id && holder.kind == event.kind;
            return (
                false,
                if same {
                    Plan::IntentDuplicate
                } else {
                    Plan::IntentConflict
                },
            );
        }
        if !self.met(event) {
            return (false, Plan::Wait(Reason::Dependency, named.to_vec()));
        }
        let may_be_early =
            setup.on_early_wait && matches!(setup.ordering, Ordering::Causal | Ordering::Arrival);
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
            return (
                migrate,
                Plan::Refuse {
                    class: Verdict::Illegal,
                    unknown_type: true,
                },
            );
        }
        (migrate, self.ask(event, &view, named))
    }

    /// Asks the rules, again as long as all that they wait for is met.
    fn ask(&self, event: &Event, view: &View, named: &[Target]) -> Plan {
        let fault = Plan::Refuse {
            class: Verdict::Fault,
            unknown_type: false,
        };
        if named.iter().any(|t| !self.reached(t)) {
            return Plan::Wait(Reason::Waiting, named.to_vec());
        }
        if self.traps(event) {
            return fault;
        }
        let mut met = named.to_vec();
        while let Some(new) = self.waits_for(event, &met) {
            let nothing_new = new.iter().all(|t| met.contains(t));
            met.extend(new);
            if nothing_new || met.len() > MOST_NAMES {
                return fault;
            }
            if met.iter().any(|t| !self.reached(t)) {
                return Plan::Wait(Reason::Waiting, met);
            }
        }
        let trigger = Trigger::Event(&event.kind);
        let state = view.state.as_deref();
        // Data that is no JSON by its content type is text or bytes that the rules cannot read either.
        let data = event.value.as_ref();
        match machine(&event.machine).apply(&Input {
            state,
            facts: &view.facts,
            trigger,
            data,
        }) {
            Answer::Move(step) => Plan::Move(step),
            Answer::Illegal => Plan::Refuse {
                class: Verdict::Illegal,
                unknown_type: false,
            },
            Answer::Malformed => Plan::Refuse {
                class: Verdict::Malformed,
                unknown_type: false,
            },
        }
    }

    /// The marker `__fault`.
    fn traps(&self, event: &Event) -> bool {
        let marked =
            event.value.as_ref().and_then(|v| v.get("__fault")) == Some(&Value::Bool(true));
        self.setup.markers && marked
    }

    /// What the markers `__wait` and `__each` name beyond `met`; none where they wait for nothing.
    fn waits_for(&self, event: &Event, met: &[Target]) -> Option<Vec<Target>> {
        let list = |name: &str| match event.value.as_ref()?.get(name)? {
            Value::List(items) => Some(items.iter().filter_map(target).collect::<Vec<_>>()),
            _ => None,
        };
        if !self.setup.markers {
            return None;
        }
        for (name, most) in [("__wait", usize::MAX), ("__each", 1)] {
            let Some(all) = list(name) else { continue };
            let new: Vec<Target> = all
                .iter()
                .filter(|t| !met.contains(t))
                .take(most)
                .cloned()
                .collect();
            if all.is_empty() || !new.is_empty() {
                return Some(new);
            }
        }
        None
    }

    /// Carries out the plan for an event whose turn it is. It comes from a source, or waited, or lies in that dead letter.
    pub(super) fn take(
        &mut self,
        item: Item,
        waited: Option<&Waiter>,
        letter: Option<usize>,
    ) -> Taken {
        let id = item.event.entity();
        let named = waited.map_or(vec![], |w| w.named.clone());
        let (migrate, plan) = self.plan(&item.event, &named);
        if migrate {
            self.coverage.hit("input", "migration before an event");
            self.change(&id, Cause::Migration, None, None);
        }
        self.coverage.hit("step", plan.step());
        let (verdict, reason) = match plan {
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
                self.change(
                    &id,
                    Cause::Event,
                    Some(&item.event),
                    Some((step, item.time)),
                );
                (Verdict::Applied, None)
            }
            Plan::Refuse {
                class,
                unknown_type,
            } => {
                self.refuse(&item, class, unknown_type, letter);
                (class, None)
            }
        };
        self.verdict(&item, verdict);
        let settled = !matches!(verdict, Verdict::Deferred | Verdict::Conflict);
        if let (Ordering::Snapshot, Some(version), true) =
            (self.ordering(&id.machine), item.event.version, settled)
        {
            self.supersede(&id, version);
        }
        Taken { verdict, reason }
    }

    /// The event waits, in its old place where it waited before.
    fn wait_again(
        &mut self,
        item: Item,
        waited: Option<&Waiter>,
        reason: Reason,
        named: Vec<Target>,
    ) {
        let (order, since) = match waited {
            Some(w) => (w.order, w.since),
            None => {
                self.deferrals += 1;
                (self.deferrals, self.clock)
            }
        };
        self.waiting.push(Waiter {
            item,
            reason,
            order,
            since,
            named,
        });
    }

    /// A refusal and its policy (R5). A dead letter that is decided again is updated.
    pub(super) fn refuse(
        &mut self,
        item: &Item,
        class: Verdict,
        unknown_type: bool,
        letter: Option<usize>,
    ) {
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
                    self.change(
                        &id,
                        Cause::Compensation,
                        Some(&item.event),
                        Some((step, item.time)),
                    );
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

    /// What the rules' `compensate` makes of a refused event; none where it refuses or traps.
    pub(super) fn compensation(&self, event: &Event) -> Option<Move> {
        let view = self.view(&event.entity());
        if self.traps(event) {
            return None;
        }
        machine(&event.machine).compensate(view.state.as_deref(), &view.facts, &event.kind)
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
            Plan::Ignore => "7",
            Plan::IntentDuplicate | Plan::IntentConflict => "8",
            Plan::Wait(Reason::Dependency, _) => "9",
            _ => "10",
        }
    }
}

/// `machine/key@version`, the key percent-encoded.
fn target(item: &Value) -> Option<Target> {
    let Value::Text(text) = item else { return None };
    let (machine, rest) = text.split_once('/')?;
    let (key, version) = rest.rsplit_once('@')?;
    let mut bytes = Vec::new();
    let mut rest = key.as_bytes();
    while let Some((&b, after)) = rest.split_first() {
        let escaped = (b == b'%').then(|| after.get(..2)).flatten();
        let escaped =
            escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(b));
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
    }
    let entity = EntityId {
        machine: machine.to_owned(),
        key: String::from_utf8(bytes).ok()?,
    };
    Some(Target {
        entity,
        version: version.parse().ok()?,
    })
}
