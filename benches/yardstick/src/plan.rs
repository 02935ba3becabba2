//! The rows that the program wrote, cut into transactions again.
//!
//! A `Plan` says which transaction writes what, for any cut of the deliveries: one by one (the hand-written consumer) or in
//! batches (the bulk limit). It follows from the rows alone: an entity's history has consecutive revisions, so an event that
//! comes before its turn waits, and its turn comes when the revision before it is there. No rule of a machine is asked.

use std::collections::{BTreeMap, HashMap};

use crate::lines::{Delivery, EventKey};

/// What the rows say, by their numbers. A row of another table that a change brought along is `Brought`.
#[derive(Debug, Default)]
pub struct Facts {
    /// Changes, in the order of (entity, revision).
    pub changes: Vec<Change>,
    /// Inbox rows.
    pub events: Vec<Event>,
    /// Rows that stand at the position of a delivery: dead letters, conflicts, events that still wait.
    pub at: HashMap<u64, Vec<(Kind, usize)>>,
}

/// A history row.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The entity's row.
    pub entity: usize,
    /// Whether an event brought it; otherwise it comes right behind the change before it.
    pub by_event: bool,
    /// Rows that are written with it.
    pub brought: Vec<(Kind, usize)>,
}

/// An inbox row.
#[derive(Clone, Debug)]
pub struct Event {
    /// What names it.
    pub key: EventKey,
    /// The change that it brought.
    pub change: Option<usize>,
}

/// Tables whose rows are only inserted, or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An idempotency key.
    Intent,
    /// A message.
    Message,
    /// A timer that starts.
    Timer,
    /// A timer that ends.
    TimerClosed,
    /// A dead letter.
    DeadLetter,
    /// A quarantined content.
    Conflict,
    /// An event that still waits.
    Waiting,
}

/// A transaction.
#[derive(Debug, Default)]
pub struct Batch {
    /// The deliveries that it takes, by number.
    pub deliveries: Vec<usize>,
    /// The partition and its offset afterwards.
    pub partition: u32,
    /// See `partition`.
    pub next: u64,
    /// Entities that change, once each.
    pub entities: Vec<usize>,
    /// Changes to append.
    pub changes: Vec<usize>,
    /// Inbox rows to insert or to amend, by event.
    pub inbox: BTreeMap<usize, Inbox>,
    /// Rows to insert, or timers to close.
    pub brought: Vec<(Kind, usize)>,
    /// Changes whose events begin to wait, with the delivery.
    pub wait: BTreeMap<usize, usize>,
    /// Changes whose events have waited.
    pub waited: Vec<usize>,
}

/// What becomes of an inbox row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inbox {
    /// It is a new one.
    pub new: bool,
    /// Deliveries in this transaction.
    pub deliveries: u32,
    /// The last one, where it is not the first of all.
    pub last: Option<usize>,
    /// The event waits.
    pub waits: bool,
    /// The event has waited, and is decided.
    pub decided: bool,
}

struct State<'f> {
    facts: &'f Facts,
    seen: Vec<bool>,
    arrived: Vec<bool>,
    /// Whether the change is there.
    done: Vec<bool>,
    /// By change, its event.
    event_of: HashMap<usize, usize>,
}

/// Cuts the deliveries in batches of at most so many of one partition; 1 takes them one by one in the order of the file.
pub fn plan(facts: &Facts, deliveries: &[Delivery], batch: usize) -> Vec<Batch> {
    let by_key: HashMap<&EventKey, usize> = facts.events.iter().enumerate().map(|(n, e)| (&e.key, n)).collect();
    let mut state = State {
        facts,
        seen: vec![false; facts.events.len()],
        arrived: vec![false; facts.changes.len()],
        done: vec![false; facts.changes.len()],
        event_of: facts.events.iter().enumerate().filter_map(|(n, e)| Some((e.change?, n))).collect(),
    };
    cut(deliveries, batch).into_iter().map(|taken| state.batch(deliveries, taken, &by_key)).collect()
}

fn cut(deliveries: &[Delivery], batch: usize) -> Vec<Vec<usize>> {
    let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut full = Vec::new();
    for (n, delivery) in deliveries.iter().enumerate() {
        let taken = open.entry(delivery.partition).or_default();
        taken.push(n);
        if taken.len() == batch {
            full.push(std::mem::take(taken));
        }
    }
    full.extend(open.into_values().filter(|taken| !taken.is_empty()));
    full
}

impl State<'_> {
    fn batch(&mut self, deliveries: &[Delivery], taken: Vec<usize>, by_key: &HashMap<&EventKey, usize>) -> Batch {
        let mut batch = Batch::default();
        for n in &taken {
            let delivery = &deliveries[*n];
            (batch.partition, batch.next) = (delivery.partition, delivery.next);
            batch.brought.extend(self.facts.at.get(&delivery.offset).into_iter().flatten());
            let Some(event) = delivery.event.as_ref().and_then(|key| by_key.get(key)).copied() else { continue };
            let row = batch.inbox.entry(event).or_default();
            row.deliveries += 1;
            if std::mem::replace(&mut self.seen[event], true) {
                row.last = Some(*n);
                continue;
            }
            row.new = true;
            if let Some(change) = self.facts.events[event].change {
                self.arrive(change, event, *n, &mut batch);
            }
        }
        batch.deliveries = taken;
        batch.entities.sort_unstable();
        batch.entities.dedup();
        batch.changes.sort_unstable();
        batch.brought.sort_unstable();
        batch.waited.sort_unstable();
        batch
    }

    fn arrive(&mut self, change: usize, event: usize, delivery: usize, batch: &mut Batch) {
        self.arrived[change] = true;
        if !self.is_next(change) {
            batch.wait.insert(change, delivery);
            batch.inbox.entry(event).or_default().waits = true;
            return;
        }
        let mut next = change;
        loop {
            self.apply(next, batch);
            next += 1;
            let same = self.facts.changes.get(next).is_some_and(|c| c.entity == self.facts.changes[change].entity);
            if !same || (self.facts.changes[next].by_event && !self.arrived[next]) {
                return;
            }
            self.leave_the_queue(next, batch);
        }
    }

    fn is_next(&self, change: usize) -> bool {
        let before =
            change.checked_sub(1).filter(|b| self.facts.changes[*b].entity == self.facts.changes[change].entity);
        before.is_none_or(|before| self.done[before])
    }

    fn leave_the_queue(&self, change: usize, batch: &mut Batch) {
        let Some(event) = self.event_of.get(&change) else { return };
        let row = batch.inbox.entry(*event).or_default();
        if batch.wait.remove(&change).is_some() {
            row.waits = false;
        } else {
            row.decided = true;
            batch.waited.push(change);
        }
    }

    fn apply(&mut self, change: usize, batch: &mut Batch) {
        self.done[change] = true;
        let facts = &self.facts.changes[change];
        batch.entities.push(facts.entity);
        batch.changes.push(change);
        batch.brought.extend(&facts.brought);
    }
}
