//! Step 10: the rules decide, and their answer is held against their own declaration.

use std::sync::Arc;

use crate::event::Event;
use crate::rules::{Dependency, EntityView, EventView, Failure, Fault, Reason, Rejection, Transition, TriggerView};
use crate::verdict::Verdict;
use crate::world::{Entity, Need};

use super::check;
use super::desk::Desk;
use super::timer;

/// The most dependencies that the rules may name for one event (R3, step 10).
const MOST_NAMED: usize = 16;

/// The rules' answer, checked.
pub(super) enum Asked {
    Accepted(Box<Transition>),
    /// Decide again when all of these are met; not all are.
    Waiting(Vec<Dependency>),
    /// The entity's data has a layout that these rules do not read.
    Unreadable,
    /// It could have been read, but `migrate` failed: the entity is blocked now.
    MigrationFailed,
    /// No edge names the type.
    Unknown(Reason),
    Refused(Verdict, Reason),
}

impl From<Fault> for Asked {
    fn from(fault: Fault) -> Self {
        Self::Refused(Verdict::Fault, check::fault(fault).into())
    }
}

/// Asks `apply` about an event, with the dependencies that earlier answers named.
pub(super) fn apply(desk: &mut Desk<'_>, event: &Arc<Event>, named: &[Dependency]) -> Result<Asked, Need> {
    match timer::bring_up_to_date(desk) {
        timer::Layout::Current => {}
        timer::Layout::Unreadable => return Ok(Asked::Unreadable),
        timer::Layout::Failed => return Ok(Asked::MigrationFailed),
    }
    if !desk.machine.graph.knows_event(&event.kind) {
        let message = format!("no edge of `{}` names the type `{}`", desk.entity.id.machine, event.kind);
        return Ok(Asked::Unknown(Reason::new("unknown-type", message)));
    }
    let mut met = named.to_vec();
    loop {
        let trigger = TriggerView::Event(&event.kind);
        let view = event_view(event, trigger, &met);
        let timers = timers(&desk.entity);
        let current = entity_view(&desk.entity, &timers);
        let answer = desk.machine.ask(|rules| rules.apply(current.as_ref(), &view));
        match answer {
            Err(fault) => return Ok(fault.into()),
            Ok(Ok(transition)) => {
                return Ok(match check::transition(&desk.machine.graph, &desk.entity, trigger, transition) {
                    Ok(transition) => Asked::Accepted(Box::new(transition)),
                    Err(fault) => fault.into(),
                });
            }
            Ok(Err(Rejection::Illegal(reason))) => return Ok(Asked::Refused(Verdict::Illegal, check::reason(reason))),
            Ok(Err(Rejection::Malformed(reason))) => {
                return Ok(Asked::Refused(Verdict::Malformed, check::reason(reason)));
            }
            Ok(Err(Rejection::Waiting(names))) => match more(&met, names) {
                Err(fault) => return Ok(fault.into()),
                Ok(all) => {
                    for name in &all {
                        if !desk.is_met(name)? {
                            return Ok(Asked::Waiting(all));
                        }
                    }
                    met = all;
                }
            },
        }
    }
}

/// What the rules named before and now. Every answer adds at least one, so asking ends.
fn more(met: &[Dependency], names: Vec<Dependency>) -> Result<Vec<Dependency>, Fault> {
    let mut all = met.to_vec();
    for name in names {
        check::dependency(&name)?;
        if !all.contains(&name) {
            all.push(name);
        }
    }
    if all.len() == met.len() {
        return Err(Fault::new(
            "waiting-for-nothing",
            "the rules answered `waiting` and named nothing that is not met",
        ));
    }
    if all.len() > MOST_NAMED {
        let message = format!("the rules wait for {} versions; the limit is {MOST_NAMED} (fixed)", all.len());
        return Err(Fault::new("waiting-for-too-many", message));
    }
    Ok(all)
}

/// Asks `compensate` what a refused event leaves behind. A fault, and anything but a transition, is a refusal.
///
/// An event may have been refused under older rules, so here too the data is first brought to the layout of those that
/// are asked now.
pub(super) fn compensate(desk: &mut Desk<'_>, event: &Arc<Event>, failure: &Failure) -> Result<Transition, Reason> {
    match timer::bring_up_to_date(desk) {
        timer::Layout::Current => {}
        timer::Layout::Unreadable => return Err(Reason::new("schema", "they cannot read the entity's data")),
        timer::Layout::Failed => return Err(Reason::new("migration", "they could not migrate the entity's data")),
    }
    let trigger = TriggerView::Compensation(&event.kind);
    let view = event_view(event, trigger, &[]);
    let timers = timers(&desk.entity);
    let current = entity_view(&desk.entity, &timers);
    let answer = desk.machine.ask(|rules| rules.compensate(current.as_ref(), &view, failure));
    let faulty = |fault: Fault| Reason::from(check::fault(fault));
    match answer {
        Err(fault) => Err(faulty(fault)),
        Ok(Ok(transition)) => check::transition(&desk.machine.graph, &desk.entity, trigger, transition).map_err(faulty),
        Ok(Err(Rejection::Illegal(reason) | Rejection::Malformed(reason))) => Err(check::reason(reason)),
        Ok(Err(Rejection::Waiting(_))) => {
            Err(Reason::new("waiting", "`compensate` answered `waiting`, which it cannot"))
        }
    }
}

pub(super) fn timers(entity: &Entity) -> Vec<(String, i64)> {
    entity.timers.iter().map(|(name, due)| (name.to_string(), *due)).collect()
}

/// The entity as the rules see it; one without a state is absent to them.
pub(super) fn entity_view<'e>(entity: &'e Entity, timers: &'e [(String, i64)]) -> Option<EntityView<'e>> {
    Some(EntityView {
        key: &entity.id.key,
        version: entity.version,
        revision: entity.revision,
        state: entity.state.as_deref()?,
        entered: entity.entered,
        schema: entity.schema,
        data: &entity.data,
        timers,
    })
}

fn event_view<'e>(event: &'e Event, trigger: TriggerView<'e>, met: &'e [Dependency]) -> EventView<'e> {
    EventView {
        id: &event.key.id,
        source: &event.key.source,
        trigger,
        key: &event.entity.key,
        version: event.version,
        time: event.time,
        idempotency_key: event.idempotency_key.as_deref(),
        correlation_id: event.attribute("correlationid"),
        content_type: event.content_type.as_deref(),
        attributes: &event.attributes,
        met,
        data: &event.data,
    }
}
