//! The order of questions about one event: R3 for versioned machines, R4 for the others.
//!
//! Judging reads the desk and asks the rules; the rows are written by `settle`. (One exception: data of an older layout is
//! migrated on the way, which is a revision of its own.)

use std::sync::Arc;

use crate::digest;
use crate::envelope::depends::DependsOn;
use crate::event::Event;
use crate::rules::{Dependency, Reason, Transition};
use crate::setup::Ordering;
use crate::verdict::{DeferReason, Verdict};
use crate::world::{Intent, Need, Waiting};

use super::ask::{self, Asked};
use super::desk::Desk;

/// What is to become of an event.
pub(super) enum Judgement {
    /// It was decided before; nothing changes.
    Duplicate { note: Option<&'static str> },
    /// Its version was passed.
    Stale,
    /// It contradicts what is known.
    Conflict { code: &'static str, message: String },
    /// Not yet.
    Defer { reason: DeferReason, named: Vec<Dependency> },
    /// Its type is configured to change nothing.
    Ignored,
    /// Its entity was erased.
    Erased,
    /// Its intent was carried out before.
    IntentDuplicate { differs: bool },
    /// It is refused.
    Refused { class: Verdict, reason: Reason, unknown: bool },
    /// The rules take it.
    Accepted(Box<Transition>),
}

impl Judgement {
    /// It waits; what its rules named so far is kept.
    fn defer(reason: DeferReason, named: &[Dependency]) -> Self {
        Self::Defer { reason, named: named.to_vec() }
    }
}

/// An event of which the inbox knows nothing.
pub(super) fn newcomer(desk: &mut Desk<'_>, event: &Arc<Event>) -> Result<Judgement, Need> {
    let by_version = match (desk.ordering(), event.version) {
        (Ordering::Versioned, Some(version)) => place_versioned(desk, event, version)?,
        (Ordering::Snapshot, Some(version)) => place_snapshot(desk, event, version)?,
        _ => place_unversioned(desk),
    };
    match by_version {
        Some(judgement) => Ok(judgement),
        None => tail(desk, event, &[]),
    }
}

/// An event that waits, asked again. `overdue`: an early one whose deadline is over.
pub(super) fn waiting(desk: &mut Desk<'_>, row: &Waiting, overdue: bool) -> Result<Judgement, Need> {
    let (event, current) = (&row.event, desk.entity.version);
    match (desk.ordering(), event.version) {
        // Only an import takes an entity past what waits for it: the other system has taken it into account.
        (Ordering::Versioned, Some(version)) if version <= desk.entity.pruned_through => {
            return Ok(Judgement::Duplicate { note: Some("beyond retention") });
        }
        (Ordering::Versioned | Ordering::Snapshot, Some(version)) if version <= current => return Ok(Judgement::Stale),
        (Ordering::Versioned, Some(version)) if event.predecessor() < current => {
            return Ok(fork(version, event, current));
        }
        _ => {}
    }
    if desk.ordering() != Ordering::Snapshot && desk.entity.blocked() {
        return Ok(Judgement::defer(DeferReason::Blocked, &row.named));
    }
    if desk.ordering() == Ordering::Versioned && event.predecessor() != current {
        return Ok(Judgement::defer(DeferReason::Gap, &row.named));
    }
    if overdue {
        let message = format!("`{}` still has no edge from here after its deadline", event.kind);
        let reason = Reason::new("early-deadline", message);
        return Ok(Judgement::Refused { class: Verdict::Illegal, reason, unknown: false });
    }
    tail(desk, event, &row.named)
}

/// Steps 3 to 6.
fn place_versioned(desk: &Desk<'_>, event: &Event, version: u64) -> Result<Option<Judgement>, Need> {
    let current = desk.entity.version;
    if version <= current {
        return passed(desk, event, version).map(Some);
    }
    if let Some(judgement) = against_waiting(desk, event, version) {
        return Ok(Some(judgement));
    }
    if desk.entity.blocked() {
        return Ok(Some(Judgement::defer(DeferReason::Blocked, &[])));
    }
    let before = event.predecessor();
    let rival = desk.entity.waiting.iter().find(|w| w.event.predecessor() == before);
    if before < current {
        return Ok(Some(fork(version, event, current)));
    }
    if let Some(rival) = rival {
        let other = rival.event.version.unwrap_or_default();
        let message =
            format!("versions {other} and {version} both follow {before}{}", two_writers(&rival.event, event));
        return Ok(Some(Judgement::Conflict { code: "fork", message }));
    }
    Ok((before > current).then(|| Judgement::defer(DeferReason::Gap, &[])))
}

/// Step 3: a version at or below the entity's.
fn passed(desk: &Desk<'_>, event: &Event, version: u64) -> Result<Judgement, Need> {
    let key = (desk.entity.id.clone(), version);
    let row = desk.world.history.get(&key).ok_or_else(|| Need::History(key.0.clone(), version))?;
    Ok(match row {
        Some(row) if event.same_content(&row.digest, &row.value_digest) => Judgement::Duplicate { note: None },
        Some(row) => {
            let other =
                if row.source == event.key.source { String::new() } else { writers(&row.source, &event.key.source) };
            let message = format!("version {version} was decided with other content{other}");
            Judgement::Conflict { code: "version", message }
        }
        None if version <= desk.entity.pruned_through => Judgement::Duplicate { note: Some("beyond retention") },
        None => Judgement::Stale,
    })
}

/// Step 4: what waits, or is parked, at this version.
fn against_waiting(desk: &Desk<'_>, event: &Event, version: u64) -> Option<Judgement> {
    let waiting = desk.entity.waiting.iter().map(|w| &w.event);
    let dead = desk.entity.dead.iter().filter_map(|d| d.event.as_ref());
    let other = waiting.chain(dead).find(|e| e.version == Some(version))?;
    Some(if event.same_content(&other.digest, &other.value_digest) {
        Judgement::Duplicate { note: None }
    } else {
        let message = format!(
            "event `{}` stands at version {version} with other content{}",
            other.key.id,
            two_writers(other, event)
        );
        Judgement::Conflict { code: "waiting", message }
    })
}

fn place_snapshot(desk: &Desk<'_>, event: &Event, version: u64) -> Result<Option<Judgement>, Need> {
    let current = desk.entity.version;
    Ok(if version < current {
        Some(Judgement::Stale)
    } else if version == current {
        Some(passed(desk, event, version)?)
    } else {
        against_waiting(desk, event, version)
    })
}

/// Causal and arrival: who is blocked waits, and in arrival machines so does who comes behind a waiting event.
fn place_unversioned(desk: &Desk<'_>) -> Option<Judgement> {
    if desk.entity.blocked() {
        return Some(Judgement::defer(DeferReason::Blocked, &[]));
    }
    let held =
        desk.ordering() == Ordering::Arrival && desk.entity.waiting.iter().any(|w| w.reason != DeferReason::Early);
    held.then(|| Judgement::defer(DeferReason::Dependency, &[]))
}

/// Steps 7 to 10, which hold under every ordering and for everybody whose turn it is.
pub(super) fn tail(desk: &mut Desk<'_>, event: &Arc<Event>, named: &[Dependency]) -> Result<Judgement, Need> {
    if desk.entity.erased {
        return Ok(Judgement::Erased);
    }
    if desk.machine.setup.ignore.contains(&event.kind) {
        return Ok(Judgement::Ignored);
    }
    if let Some(judgement) = intent(desk, event)? {
        return Ok(judgement);
    }
    if !depends_met(desk, event)? {
        return Ok(Judgement::defer(DeferReason::Dependency, named));
    }
    for name in named {
        if !desk.is_met(name)? {
            return Ok(Judgement::defer(DeferReason::Waiting, named));
        }
    }
    let state = desk.entity.state.as_deref();
    if desk.machine.setup.early_after.is_some()
        && !desk.ordering().uses_versions()
        && desk.machine.graph.is_early(state, &event.kind)
    {
        return Ok(Judgement::defer(DeferReason::Early, named));
    }
    Ok(match ask::apply(desk, event, named)? {
        Asked::Accepted(transition) => Judgement::Accepted(transition),
        Asked::Waiting(named) => Judgement::Defer { reason: DeferReason::Waiting, named },
        Asked::Unreadable => Judgement::defer(DeferReason::Schema, named),
        Asked::MigrationFailed => Judgement::defer(DeferReason::Blocked, named),
        Asked::Unknown(reason) => Judgement::Refused { class: Verdict::Illegal, reason, unknown: true },
        Asked::Refused(class, reason) => Judgement::Refused { class, reason, unknown: false },
    })
}

/// Step 8 (R2): an idempotency key is taken only by an applied event.
fn intent(desk: &Desk<'_>, event: &Event) -> Result<Option<Judgement>, Need> {
    let Some(name) = &event.idempotency_key else { return Ok(None) };
    let key = (event.key.machine.clone(), name.clone());
    let taken: Option<&Intent> = match desk.writes.intents.get(&key) {
        Some(intent) => Some(intent),
        None => desk.world.intents.get(&key).ok_or_else(|| Need::Intent(key.0.clone(), key.1.clone()))?.as_ref(),
    };
    Ok(taken.map(|intent| {
        if intent.entity == event.entity && intent.kind == event.kind {
            let data = digest::of_data(event.content_type.as_deref(), &event.data);
            return Judgement::IntentDuplicate { differs: data != intent.data_digest };
        }
        let message = format!("the intent `{name}` was taken by a {} of {}", intent.kind, intent.entity);
        Judgement::Conflict { code: "intent", message }
    }))
}

/// Whether what a waiting event waits for is there, as far as it says.
pub(super) fn is_askable(desk: &Desk<'_>, row: &Waiting) -> Result<bool, Need> {
    match row.reason {
        DeferReason::Dependency => depends_met(desk, &row.event),
        DeferReason::Waiting => row.named.iter().try_fold(true, |met, name| Ok(met && desk.is_met(name)?)),
        DeferReason::Gap | DeferReason::Early | DeferReason::Blocked | DeferReason::Schema => Ok(true),
    }
}

/// Step 9.
fn depends_met(desk: &Desk<'_>, event: &Event) -> Result<bool, Need> {
    for item in &event.depends_on {
        let met = match item {
            DependsOn::Type(kind) => desk.entity.seen.contains(kind),
            DependsOn::Entity(dependency) => desk.is_met(dependency)?,
        };
        if !met {
            return Ok(false);
        }
    }
    Ok(true)
}

fn fork(version: u64, event: &Event, current: u64) -> Judgement {
    let message = format!("version {version} follows {}, but the entity is at {current}", event.predecessor());
    Judgement::Conflict { code: "fork", message }
}

/// R5: two sources that number one entity are told apart from one that contradicts itself.
pub(super) fn two_writers(a: &Event, b: &Event) -> String {
    if a.key.source == b.key.source { String::new() } else { writers(&a.key.source, &b.key.source) }
}

fn writers(a: &str, b: &str) -> String {
    format!("; two writers number this entity: {a} and {b}")
}
