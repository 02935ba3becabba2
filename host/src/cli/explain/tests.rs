use std::collections::BTreeMap;
use std::sync::Arc;

use seqgate_decide::envelope::depends;
use seqgate_decide::event::Event;
use seqgate_decide::ids::{Digest, EntityId, EventKey, Position, Ref};
use seqgate_decide::rules::Reason;
use seqgate_decide::setup::Ordering;
use seqgate_decide::verdict::{DeferReason, Verdict};
use seqgate_decide::world::{DeadEntry, DeadKind, Entity, Waiting};
use seqgate_decide::writes::{DeadRow, DeadStatus};

use super::story::tell;
use super::{Facts, Other};
use crate::store::views::{Blocked, BlockedBy, ConflictItem, DeadDetail};

/// 2026-11-30T10:00:00Z
const TEN: i64 = 1_796_032_800_000;
const MINUTE: i64 = 60_000;
/// Three minutes later.
const NOW: i64 = TEN + 3 * MINUTE;

fn event(version: Option<u64>, kind: &str) -> Event {
    let id = format!("e{}", version.unwrap_or(9));
    Event {
        key: EventKey { machine: "orders".into(), source: "shop".into(), id: id.as_str().into() },
        entity: EntityId::new("orders", *b"o1"),
        kind: kind.into(),
        version,
        previous: None,
        time: TEN,
        idempotency_key: None,
        depends_on: Vec::new(),
        logical_time: None,
        content_type: None,
        attributes: Vec::new(),
        data: Arc::from([]),
        digest: Digest([0; 32]),
        value_digest: Digest([0; 32]),
    }
}

fn position(offset: u64) -> Position {
    Position { source: "events-file".into(), partition: 2, offset }
}

fn waits(event: Event, reason: DeferReason) -> Waiting {
    Waiting {
        event: Arc::new(event),
        arrival: 1,
        reason,
        named: Vec::new(),
        since: TEN,
        deadline: None,
        ready: false,
        position: position(41),
    }
}

/// `o1`, pending at version 1 since ten.
fn facts() -> Facts {
    let mut entity = Entity::absent(EntityId::new("orders", *b"o1"));
    (entity.version, entity.revision, entity.entered) = (1, 1, TEN);
    entity.state = Some("pending".into());
    Facts {
        entity,
        ordering: Ordering::Versioned,
        terminal: false,
        held: None,
        dead: Vec::new(),
        conflicts: Vec::new(),
        others: BTreeMap::new(),
        history: Vec::new(),
    }
}

#[track_caller]
fn check(facts: &Facts, expect: &str) {
    let told = super::text(&tell(facts, NOW, &|rest| format!("seqgate {rest}")));
    assert_eq!(told.trim_end(), expect.trim_start_matches('\n').trim_end());
}

#[test]
fn nothing_holds_it() {
    check(&facts(), "o1 is pending at version 1 since 10:00.\nNothing holds it.");
    let mut done = facts();
    done.terminal = true;
    check(&done, "o1 is pending at version 1 since 10:00; nothing leaves this state.");
}

#[test]
fn a_missing_version_is_named_with_who_waits_behind_it() {
    let mut facts = facts();
    facts.entity.waiting.push(waits(event(Some(3), "order.shipped"), DeferReason::Gap));
    check(
        &facts,
        "
o1 is pending at version 1 since 10:00.
Version 2 never came; version 3 (order.shipped, events-file/2@41) has waited 3 min. By hand: seqgate gap repair orders o1 --from FILE",
    );
    // Another gap farther on; 4 waits behind 3, and is none.
    facts.entity.waiting.push(waits(event(Some(9), "order.refunded"), DeferReason::Gap));
    facts.entity.waiting.push(waits(event(Some(4), "order.delivered"), DeferReason::Gap));
    check(
        &facts,
        "
o1 is pending at version 1 since 10:00.
Version 2 never came; version 3 (order.shipped, events-file/2@41) has waited 3 min; 2 more wait behind it. By hand: seqgate gap repair orders o1 --from FILE
Versions 5 to 8 never came; version 9 (order.refunded, events-file/2@41) has waited 3 min. By hand: seqgate gap repair orders o1 --from FILE",
    );
}

#[test]
fn a_ghost_may_be_a_mistake() {
    let mut facts = facts();
    facts.entity = Entity::absent(facts.entity.id);
    facts.entity.waiting.push(waits(event(Some(2), "order.paid"), DeferReason::Gap));
    let id = facts.entity.waiting[0].id();
    check(
        &facts,
        &format!(
            "
o1 is a ghost: there is nothing of it but an event that waits.
Version 1 never came; version 2 (order.paid, events-file/2@41) has waited 3 min. By hand:
    seqgate gap repair orders o1 --from FILE
    seqgate deferred dismiss {id}"
        ),
    );
}

#[test]
fn a_refused_event_holds_what_comes_after_it() {
    let mut facts = facts();
    let shipped = Arc::new(event(Some(2), "order.shipped"));
    facts.entity.dead.push(DeadEntry {
        id: Ref(7),
        kind: DeadKind::Event,
        blocks: true,
        class: Verdict::Illegal,
        reason: Reason::new("wrong-state", "order.shipped in state pending"),
        event: Some(shipped.clone()),
        position: Some(position(17)),
        attempts: 1,
        timer: None,
    });
    let row = DeadRow {
        kind: DeadKind::Event,
        class: Verdict::Illegal,
        code: "wrong-state".into(),
        message: "order.shipped in state pending".into(),
        entity: Some(facts.entity.id.clone()),
        event: Some(shipped),
        raw: None,
        position: Some(position(17)),
        timer: None,
        blocks: true,
        status: DeadStatus::Open,
        attempts: 1,
        since: TEN,
        rules: None,
        by: None,
        replaced_by: None,
    };
    facts.dead.push(DeadDetail { id: Ref(7), row, changed: TEN });
    // Version 3 waits behind the dead letter: that is no gap.
    facts.entity.waiting.push(waits(event(Some(3), "order.paid"), DeferReason::Blocked));
    facts.entity.timers.insert("payment-timeout".into(), NOW + 27 * MINUTE);
    check(
        &facts,
        "
o1 is pending at version 1 since 10:00.
Version 2 (order.shipped, events-file/2@17) was refused 3 min ago: illegal, wrong-state: order.shipped in state pending. 1 event waits behind it. By hand:
    seqgate dead-letter redrive 0000000000000007
    seqgate dead-letter replace 0000000000000007 --with FILE
    seqgate dead-letter compensate 0000000000000007
    seqgate dead-letter skip 0000000000000007
Timer payment-timeout is due in 27 min (10:30).",
    );
}

#[test]
fn what_is_unmet_is_named_with_whose_it_is() {
    let mut facts = facts();
    let mut paid = event(Some(2), "order.paid");
    paid.depends_on = depends::parse("order.created,order.checked,orders/o2@3,orders/o3@1").expect("readable");
    facts.entity.seen.insert("order.created".into());
    facts.entity.waiting.push(waits(paid, DeferReason::Dependency));
    let id = facts.entity.waiting[0].id();
    let held = Other { version: 1, held: Some(BlockedBy::DeadLetter) };
    facts.others.insert(EntityId::new("orders", *b"o2"), held);
    facts.others.insert(EntityId::new("orders", *b"o3"), Other { version: 1, held: None });
    check(
        &facts,
        &format!(
            "
o1 is pending at version 1 since 10:00.
Version 2 (order.paid, events-file/2@41) has waited 3 min: it waits for order.checked of o1, which was not applied yet; and for orders/o2 at version 3, which stands at version 1 and is held by a refused event. By hand:
    seqgate entity explain orders o2
    seqgate deferred dismiss {id}"
        ),
    );
}

#[test]
fn an_early_event_says_until_when() {
    let mut facts = facts();
    facts.ordering = Ordering::Arrival;
    let mut early = waits(event(None, "order.shipped"), DeferReason::Early);
    early.deadline = Some(NOW + 57 * MINUTE);
    facts.entity.waiting.push(early);
    check(
        &facts,
        "
o1 is pending at version 1 since 10:00.
order.shipped e9 (events-file/2@41) came early 3 min ago: no edge leads out of pending by it yet; it is refused in 57 min.",
    );
}

#[test]
fn a_conflict_at_the_next_version_says_what_dismissing_does() {
    let mut facts = facts();
    let paid = event(Some(2), "order.paid");
    facts.conflicts.push(ConflictItem {
        id: Ref(9),
        key: paid.key,
        entity: paid.entity,
        kind: paid.kind,
        version: Some(2),
        code: "id".into(),
        message: "the id `e2` was decided with other content".into(),
        copies: 2,
        dismissed: None,
        since: TEN,
        position: Some(position(99)),
    });
    facts.held = Some(Blocked { by: BlockedBy::Conflict, id: Ref(9), version: Some(2) });
    check(
        &facts,
        "
o1 is pending at version 1 since 10:00.
order.paid with id e2 at version 2, events-file/2@99 is set aside since 10:00: the id `e2` was decided with other content. It came 2 times. Nothing else stands at this version, which is the next; dismissing it consumes the version. By hand:
    seqgate conflict show 0000000000000009
    seqgate conflict dismiss 0000000000000009",
    );
}
