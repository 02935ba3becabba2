//! What the rules answer, markers of test rules included (R3 step 10).

use super::Oracle;
use super::take::Plan;
use super::view::View;
use crate::machines::{Answer, Input, Move, Trigger, machine};
use crate::{EntityId, Event, Reason, Target, Value, Verdict};

/// The most names that rules may wait for, those met included.
const MOST_NAMES: usize = 16;

impl Oracle {
    /// Asks the rules, again as long as all that they wait for is met.
    pub(super) fn ask(&self, event: &Event, view: &View, named: &[Target]) -> Plan {
        let fault = Plan::Refuse { class: Verdict::Fault, unknown_type: false };
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
        match machine(&event.machine).apply(&Input { state, facts: &view.facts, trigger, data }) {
            Answer::Move(step) => Plan::Move(step),
            Answer::Illegal => Plan::Refuse { class: Verdict::Illegal, unknown_type: false },
            Answer::Malformed => Plan::Refuse { class: Verdict::Malformed, unknown_type: false },
        }
    }

    /// The marker `__fault`.
    fn traps(&self, event: &Event) -> bool {
        let marked = event.value.as_ref().and_then(|v| v.get("__fault")) == Some(&Value::Bool(true));
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
            let new: Vec<Target> = all.iter().filter(|t| !met.contains(t)).take(most).cloned().collect();
            if all.is_empty() || !new.is_empty() {
                return Some(new);
            }
        }
        None
    }

    /// What the rules' `compensate` makes of a refused event; none where it refuses or traps.
    ///
    /// Data of an older layout is migrated first, as in step 10: the event may have been refused under other rules.
    pub(super) fn compensation(&mut self, event: &Event) -> Option<Move> {
        let id = event.entity();
        if self.schema_differs(&id) {
            match self.migrate(&id) {
                Some(true) => {}
                Some(false) => {
                    self.migration_letter(&id);
                    return None;
                }
                None => return None,
            }
        }
        let view = self.view(&id);
        if self.traps(event) {
            return None;
        }
        machine(&event.machine).compensate(view.state.as_deref(), &view.facts, &event.kind)
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
        let escaped = escaped.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(b));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    let entity = EntityId { machine: machine.to_owned(), key: String::from_utf8(bytes).ok()? };
    Some(Target { entity, version: version.parse().ok()? })
}
