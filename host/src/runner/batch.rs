//! One batch: records in, decisions and one transaction out (G2).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use seqgate_decide::decide::{Input, Outcome, Undecided, decide};
use seqgate_decide::envelope::Decoded;
use seqgate_decide::ids::{EntityId, Position};
use seqgate_decide::machine::Machines;
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::{Need, World};

use super::RunError;
use super::engine::{Act, Engine, Patience, Pending, activations, event_needs};
use crate::source::Record;
use crate::store::{Commit, Fence, NextStep, StoreError};
use crate::telemetry::Phase;

/// A batch stops deciding after this long: a slow entity delays others by at most that, and one time limit (R7).
const MOST_DECIDING: Duration = Duration::from_millis(250);

/// A partition as its owner knows it.
pub(super) struct Owned {
    pub source: Arc<str>,
    pub partition: u32,
    pub epoch: u64,
    pub offset: u64,
    /// Activations that this partition has decided under, by machine (R8).
    pub switched: BTreeMap<Arc<str>, u64>,
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// Records that it took.
    pub taken: usize,
    /// How often it was redone.
    pub redone: u64,
}

impl Owned {
    fn position(&self, offset: u64) -> Position {
        Position { source: self.source.clone(), partition: self.partition, offset }
    }

    fn input(&self, record: &Record) -> Input {
        let position = self.position(record.offset);
        let redelivered = record.offset < self.offset;
        match &record.decoded {
            Decoded::Event(event) => Input::Event { event: event.clone(), position, redelivered },
            Decoded::Malformed(malformed) => Input::Malformed {
                malformed: malformed.clone(),
                raw: record.raw.clone().unwrap_or_else(|| Arc::from([])),
                position,
                redelivered,
            },
        }
    }

    /// Decides and commits records from the front of `records`, as many as go together, and everything they made ready.
    pub async fn batch(
        &mut self,
        engine: &Engine,
        machines: &mut Machines,
        records: &[Record],
    ) -> Result<Done, RunError> {
        let (mut patience, mut most, mut redone) = (Patience::new(), records.len(), 0);
        loop {
            let now = engine.clock.now();
            let mut pending = self.decide(engine, machines, &records[..most], now).await?;
            let taken = pending.acts.len();
            let ready = pending.ready.clone();
            let acts = std::mem::take(&mut pending.acts);
            let next = records[taken - 1].next.max(self.offset);
            let (writes, guards) = pending.rows();
            let mut commit = Commit::new(writes, now);
            commit.guards = guards;
            commit.activations = activations(machines, writes);
            commit.switches = self.new_switches(&commit.activations);
            commit.fence = Some(self.fence(next, taken as u64));
            let committing = Instant::now();
            let committed = engine.commit(&commit, &acts).await;
            Phase::Commit.took(committing.elapsed());
            match committed {
                Ok(()) => {
                    self.switched.append(&mut commit.switches);
                    self.offset = next;
                    engine.release(machines, ready).await?;
                    return Ok(Done { taken, redone });
                }
                Err(error) => match error.next_step() {
                    NextStep::Redo => patience.raced(&error).await,
                    NextStep::Reload => *machines = engine.machines().await?,
                    NextStep::Retry => patience.wait_out(error, "commit").await?,
                    NextStep::Bisect if taken > 1 => most = taken / 2,
                    NextStep::Bisect => return Err(self.unstorable(&records[0], error)),
                    _ => return Err(error.into()),
                },
            }
            redone += 1;
        }
    }

    /// Moves the offset alone: everything before it was other partitions'.
    pub async fn advance(&mut self, engine: &Engine, next: u64) -> Result<(), RunError> {
        if next <= self.offset {
            return Ok(());
        }
        let writes = Default::default();
        let mut patience = Patience::new();
        loop {
            let mut commit = Commit::new(&writes, engine.clock.now());
            commit.fence = Some(self.fence(next, 0));
            match engine.commit(&commit, &[]).await {
                Ok(()) => break,
                Err(error) => patience.wait_out(error, "advance").await?,
            }
        }
        self.offset = next;
        Ok(())
    }

    fn fence(&self, next: u64, received: u64) -> Fence {
        let (source, partition, epoch, expected) = (self.source.clone(), self.partition, self.epoch, self.offset);
        Fence { source, partition, epoch, expected, next, received }
    }

    fn new_switches(&self, activations: &BTreeMap<Arc<str>, u64>) -> BTreeMap<Arc<str>, u64> {
        let new = activations.iter().filter(|(m, n)| self.switched.get(*m) != Some(*n));
        new.map(|(m, n)| (m.clone(), *n)).collect()
    }

    fn unstorable(&self, record: &Record, error: StoreError) -> RunError {
        let position = self.position(record.offset);
        tracing::error!(%position, error = %super::engine::chain(&error), "the store cannot hold this event's rows");
        error.into()
    }

    async fn decide(
        &self,
        engine: &Engine,
        machines: &mut Machines,
        records: &[Record],
        now: i64,
    ) -> Result<Pending, RunError> {
        let mut world = World::new();
        let loading = Instant::now();
        engine.load(records.iter().flat_map(needs), &mut world).await?;
        let mut pending = Pending::new(world);
        let (mut loaded, started) = (loading.elapsed(), Instant::now());
        loop {
            // The rules compute: other tasks of this thread are moved away for as long.
            let stopped =
                tokio::task::block_in_place(|| self.decide_some(machines, records, &mut pending, now, started));
            match stopped {
                Stopped::Done => {
                    Phase::Load.took(loaded);
                    Phase::Decide.took(loading.elapsed() - loaded);
                    return Ok(pending);
                }
                Stopped::Needs(need) => {
                    let more = Instant::now();
                    engine.load([need], &mut pending.world).await?;
                    loaded += more.elapsed();
                }
                Stopped::Refused(reason) => return Err(RunError::Refused(reason)),
            }
        }
    }

    fn decide_some(
        &self,
        machines: &mut Machines,
        records: &[Record],
        pending: &mut Pending,
        now: i64,
        started: Instant,
    ) -> Stopped {
        while let Some(record) = records.get(pending.acts.len()) {
            let input = self.input(record);
            let begun = !pending.acts.is_empty();
            // What was made ready comes before its entity's later events (R3): commit, release, then go on.
            if begun && (started.elapsed() > MOST_DECIDING || holds(pending, record)) {
                break;
            }
            let decision = match decide(&pending.world, machines, &input, now) {
                Ok(decision) => decision,
                Err(Undecided::Need(need)) => return Stopped::Needs(need),
                Err(Undecided::Refused(reason)) => return Stopped::Refused(reason),
            };
            log(&decision.decided, &decision.outcome, record);
            pending.take(decision, Act::Delivered(self.position(record.offset)));
        }
        Stopped::Done
    }
}

enum Stopped {
    Done,
    Needs(Need),
    Refused(seqgate_decide::rules::Reason),
}

fn needs(record: &Record) -> Vec<Need> {
    match &record.decoded {
        Decoded::Event(event) => event_needs(event),
        Decoded::Malformed(malformed) => malformed.entity.iter().cloned().map(Need::Entity).collect(),
    }
}

fn holds(pending: &Pending, record: &Record) -> bool {
    let entity: Option<&EntityId> = match &record.decoded {
        Decoded::Event(event) => Some(&event.entity),
        Decoded::Malformed(malformed) => malformed.entity.as_ref(),
    };
    entity.is_some_and(|e| pending.ready.contains(e))
}

/// Every refusal and conflict is a line with its ids (G6).
fn log(decided: &[(seqgate_decide::ids::EventKey, Outcome)], outcome: &Outcome, record: &Record) {
    if outcome.verdict == Verdict::Malformed && decided.is_empty() {
        let (code, message) = (outcome.code.as_deref(), outcome.message.as_deref());
        tracing::warn!(offset = record.offset, code, message, "malformed");
    }
    for (key, outcome) in decided {
        let (code, message) = (outcome.reason(), outcome.message.as_deref());
        let (machine, source, id, verdict) = (&*key.machine, &*key.source, &*key.id, outcome.verdict.name());
        match outcome.verdict {
            Verdict::Conflict | Verdict::Illegal | Verdict::Malformed | Verdict::Fault => {
                tracing::warn!(machine, source, id, verdict, code, message, offset = record.offset, "refused");
            }
            Verdict::Deferred | Verdict::Stale | Verdict::Skipped => {
                tracing::info!(machine, source, id, verdict, code, message, offset = record.offset, "not applied");
            }
            Verdict::Applied | Verdict::Duplicate => tracing::debug!(machine, source, id, verdict, code, "decided"),
        }
    }
}
