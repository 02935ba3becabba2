//! A delivery: R3's steps 1 and 2, and the way into the others.

use std::sync::Arc;

use crate::envelope::Malformed;
use crate::event::Event;
use crate::ids::{EventKey, Position, Ref};
use crate::machine::Machines;
use crate::rules::Reason;
use crate::setup::{Ordering, Policy};
use crate::verdict::Verdict;
use crate::world::{DeadEntry, DeadKind, InboxEntry, Need, World};
use crate::writes::{Cause, ConflictWrite, DeadRow, DeadStatus, DeadWrite, InboxWrite, Writes};

use super::desk::{Desk, Step};
use super::judge::Judgement;
use super::settle::{self, Stand};
use super::{Decision, Outcome, Undecided, judge, release};

/// A position that was decided before (R2): counted as a duplicate, and nothing else.
pub(super) fn again(world: &World, key: Option<&EventKey>, position: &Position) -> Result<Decision, Undecided> {
    let mut writes = Writes::default();
    writes.counts.insert((position.source.clone(), position.partition, Verdict::Duplicate), 1);
    if let Some(key) = key
        && world.inbox(key)?.is_some()
    {
        let seen = InboxWrite::Update { deliveries: 1, last: Some(position.clone()), verdict: None };
        writes.inbox.insert(key.clone(), seen);
    }
    let outcome = Outcome::coded(Verdict::Duplicate, "delivered-again", "its position was decided before");
    Ok(bare(outcome, writes))
}

pub(super) fn bare(outcome: Outcome, writes: Writes) -> Decision {
    Decision { outcome, decided: Vec::new(), entity: None, writes, ready: Vec::new(), waits: Vec::new() }
}

/// A readable event, delivered.
pub(super) fn event(desk: &mut Desk<'_>, event: &Arc<Event>, position: &Position) -> Result<Outcome, Need> {
    deliver(desk, event, position, None)
}

/// The same for a delivery that was counted before as `was`: a malformed envelope that can be read now.
pub(super) fn deliver(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    position: &Position,
    was: Option<Verdict>,
) -> Result<Outcome, Need> {
    if let Some(row) = desk.world.inbox(&event.key)? {
        return Ok(known(desk, event, position, was, row));
    }
    let judgement = match quarantined(desk, event) {
        // It outlived its inbox row.
        Some(id) => {
            count_copy(desk, id);
            Judgement::Duplicate { note: Some("quarantined") }
        }
        None => judge::newcomer(desk, event)?,
    };
    let stand = Stand::New { position: position.clone(), was };
    let outcome = settle::settle(desk, event, stand, judgement)?;
    release::after(desk)?;
    Ok(outcome)
}

/// Step 2: the inbox knows its id.
fn known(
    desk: &mut Desk<'_>,
    event: &Arc<Event>,
    position: &Position,
    was: Option<Verdict>,
    row: &InboxEntry,
) -> Outcome {
    let same = row.entity == event.entity && event.same_content(&row.digest, &row.value_digest);
    let quarantined = quarantined(desk, event);
    if let Some(id) = quarantined.filter(|_| !same || row.verdict == Verdict::Conflict) {
        count_copy(desk, id);
    }
    let outcome = if same || quarantined.is_some() {
        Outcome::plain(Verdict::Duplicate)
    } else {
        let what = if row.entity == event.entity { "with other content".into() } else { format!("for {}", row.entity) };
        let message = format!("the id `{}` was decided {what}", event.key.id);
        settle::quarantine(desk, event, Some(position), "id", &message);
        Outcome::coded(Verdict::Conflict, "id", message)
    };
    match was {
        None => desk.count(position, outcome.verdict),
        Some(was) => desk.change_verdict(Some(position), was, outcome.verdict),
    }
    desk.inbox_seen(&event.key, position);
    desk.decided.push((event.key.clone(), outcome.clone()));
    outcome
}

/// The quarantined event of this key and content.
fn quarantined(desk: &Desk<'_>, event: &Event) -> Option<Ref> {
    let known = desk.world.conflicts(&event.key);
    known.iter().find(|c| event.same_content(&c.digest, &c.value_digest)).map(|c| c.id)
}

fn count_copy(desk: &mut Desk<'_>, id: Ref) {
    let more = ConflictWrite::Update { copies: 1, dismissed: None, at: desk.now };
    desk.writes.conflicts.insert(id, more);
}

/// Step 1: an envelope that cannot be read. It blocks nobody, except the entity that it names in machines whose events
/// carry no versions: there, what it was may matter to what follows (R5).
pub(super) fn malformed(
    world: &World,
    machines: &mut Machines,
    malformed: &Malformed,
    raw: &Arc<[u8]>,
    position: &Position,
    now: i64,
) -> Result<Decision, Undecided> {
    let outcome = Outcome::coded(Verdict::Malformed, malformed.reason.code.clone(), malformed.reason.message.clone());
    let holder = malformed
        .entity
        .as_ref()
        .filter(|id| machines.get_mut(&id.machine).is_some_and(|m| !m.setup.ordering.uses_versions()));
    let Some(id) = holder else {
        let mut writes = Writes::default();
        writes.counts.insert((position.source.clone(), position.partition, Verdict::Malformed), 1);
        let mut row = envelope_row(&malformed.reason, raw, position, now);
        row.entity.clone_from(&malformed.entity);
        writes.dead.insert(Ref::of_position(position), DeadWrite::Put(row));
        return Ok(bare(outcome, writes));
    };
    let mut desk = Desk::open(world, machines, id, now)?;
    desk.count(position, Verdict::Malformed);
    let mut row = envelope_row(&malformed.reason, raw, position, now);
    row.entity = Some(id.clone());
    row.rules = Some(desk.machine.in_force);
    if desk.entity.erased {
        // It is recorded without its bytes.
        row.raw = None;
    }
    // On a blocked entity it has to wait like everything else, and an envelope can only do so as a dead letter.
    let skips = desk.machine.setup.policies.malformed == Policy::Skip || desk.entity.erased;
    if skips && !desk.entity.blocked() {
        row.status = DeadStatus::Skipped;
        desk.writes.dead.insert(Ref::of_position(position), DeadWrite::Put(row));
        pass_over(&mut desk, Some(malformed.reason.code.clone()));
        release::after(&mut desk)?;
    } else {
        row.blocks = true;
        desk.open_dead(envelope_entry(position, &malformed.reason), row);
    }
    Ok(desk.close(outcome))
}

/// An envelope without an event leaves a revision, and in arrival machines a number.
pub(super) fn pass_over(desk: &mut Desk<'_>, code: Option<String>) {
    let state = desk.entity.state.clone();
    let consumed = desk.next_number().filter(|_| desk.ordering() == Ordering::Arrival);
    desk.revise(Step {
        cause: Cause::Skip,
        event: None,
        timer: None,
        time: desk.now,
        consumed,
        previous_state: state,
        effects_digest: crate::effects::digest(&[]),
        code,
        notes: Vec::new(),
    });
}

fn envelope_entry(position: &Position, reason: &Reason) -> DeadEntry {
    DeadEntry {
        id: Ref::of_position(position),
        kind: DeadKind::Event,
        blocks: true,
        class: Verdict::Malformed,
        reason: reason.clone(),
        event: None,
        position: Some(position.clone()),
        attempts: 1,
        timer: None,
    }
}

fn envelope_row(reason: &Reason, raw: &Arc<[u8]>, position: &Position, now: i64) -> DeadRow {
    DeadRow {
        kind: DeadKind::Event,
        class: Verdict::Malformed,
        code: reason.code.clone(),
        message: reason.message.clone(),
        entity: None,
        event: None,
        raw: Some(raw.clone()),
        position: Some(position.clone()),
        timer: None,
        blocks: false,
        status: DeadStatus::Open,
        attempts: 1,
        since: now,
        rules: None,
        by: None,
        replaced_by: None,
    }
}
