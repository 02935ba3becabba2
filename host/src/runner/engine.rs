//! What every task shares: the store, the clock, the rules; and single decisions in transactions of their own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use seqgate_decide::decide::{Decision, Input, Undecided, decide};
use seqgate_decide::ids::{EntityId, EventKey, Position};
use seqgate_decide::machine::Machines;
use seqgate_decide::rules::Reason;
use seqgate_decide::setup::Setup;
use seqgate_decide::world::{Need, World};
use seqgate_decide::writes::Writes;

use super::RunError;
use super::rules::RulesProvider;
use crate::clock::Clock;
use crate::store::error::Race;
use crate::store::{self, Commit, NextStep, OperationId, Settled, Store, StoreError, Wants};

/// The first and the longest pause before a failed transaction is tried again.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(5));

/// The pause before the rules are asked again when the host had no memory for an instance.
const NO_MEMORY: Duration = Duration::from_millis(200);

/// What was committed, for whoever observes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// A delivery.
    Delivered(Position),
    /// Waiting events of an entity that were marked ready.
    Released(EntityId),
    /// A timer.
    Fired(EntityId, Arc<str>),
    /// Early events of an entity past their deadline.
    Overdue(EntityId),
    /// A person's decision, or a migration.
    Other,
}

type Tell = dyn Fn(&[Act]) + Send + Sync;

/// Is told what each transaction decided, after it was committed.
pub struct Observer {
    tell: Box<Tell>,
    turn: Option<tokio::sync::Mutex<()>>,
}

impl Observer {
    /// Calls `tell` after each commit; those of one task in their order.
    pub fn new(tell: impl Fn(&[Act]) + Send + Sync + 'static) -> Self {
        Self { tell: Box::new(tell), turn: None }
    }

    /// Calls `tell` in the order of the commits of all tasks, which take turns for it.
    pub fn in_order(tell: impl Fn(&[Act]) + Send + Sync + 'static) -> Self {
        Self { tell: Box::new(tell), turn: Some(tokio::sync::Mutex::new(())) }
    }
}

/// What every task shares.
#[derive(Clone)]
pub struct Engine {
    /// The rows.
    pub store: Arc<dyn Store>,
    /// Host time.
    pub clock: Clock,
    /// The rules.
    pub rules: Arc<dyn RulesProvider>,
    /// The machines' configuration.
    pub setups: Arc<Vec<Arc<Setup>>>,
    /// Told of every commit.
    pub observer: Option<Arc<Observer>>,
}

/// Decisions that are to be committed together, with the world they were made in.
pub(super) struct Pending {
    pub world: World,
    pub writes: Writes,
    pub changed: BTreeSet<EntityId>,
    pub ready: BTreeSet<EntityId>,
    pub acts: Vec<Act>,
}

impl Pending {
    pub fn new(world: World) -> Self {
        let (changed, ready) = (BTreeSet::new(), BTreeSet::new());
        Self { world, writes: Writes::default(), changed, ready, acts: Vec::new() }
    }

    /// Takes a decision in.
    pub fn take(&mut self, mut decision: Decision, act: Act) {
        self.changed.extend(decision.entity.as_ref().map(|e| e.id.clone()));
        self.world.absorb(&mut decision);
        self.ready.extend(decision.ready);
        self.writes.merge(decision.writes);
        self.acts.push(act);
    }

    /// The rows, complete, and the guard of every entity that was read (R7).
    pub fn rows(&mut self) -> (&Writes, BTreeMap<EntityId, u64>) {
        for id in &self.changed {
            if let Some(entity) = self.world.get(id) {
                self.writes.touched.remove(id);
                self.writes.entities.insert(id.clone(), entity.clone());
            }
        }
        let guards = self.world.entities().map(|e| (e.id.clone(), e.row_version)).collect();
        (&self.writes, guards)
    }
}

impl Engine {
    /// The machines with their rules in force, for one task.
    pub async fn machines(&self) -> Result<Machines, RunError> {
        let mut machines = Machines::default();
        for setup in self.setups.iter() {
            machines.insert(self.rules.in_force(setup).await?);
        }
        Ok(machines)
    }

    /// Loads what `needs` name; a fault in the store is waited out.
    pub(super) async fn load(&self, needs: impl IntoIterator<Item = Need>, world: &mut World) -> Result<(), RunError> {
        let needs: Vec<Need> = needs.into_iter().collect();
        if let [Need::Instance(why)] = needs.as_slice() {
            tracing::warn!(
                why = &**why,
                pause_ms = NO_MEMORY.as_millis() as u64,
                "no instance of the rules; trying again"
            );
            tokio::time::sleep(NO_MEMORY).await;
            return Ok(());
        }
        let wants: Wants = needs.into_iter().collect();
        let mut patience = Patience::new();
        loop {
            match self.store.load(&wants, world).await {
                Ok(()) => return Ok(()),
                Err(error) => patience.wait_out(error, "load").await?,
            }
        }
    }

    /// Does something that may as well be done twice, until it is known to be done: a fault in the store is waited out.
    pub async fn patiently<'s, T>(
        &self,
        what: &str,
        mut operation: impl FnMut() -> store::Pending<'s, T>,
    ) -> Result<T, RunError> {
        let mut patience = Patience::new();
        loop {
            match operation().await {
                Ok(done) => return Ok(done),
                Err(error) if error.next_step() == NextStep::Settle => patience.pause(&error, what).await,
                Err(error) => patience.wait_out(error, what).await?,
            }
        }
    }

    /// Decides one input in a transaction of its own, and then whatever it made ready, each in its own.
    ///
    /// # Errors
    /// [`RunError::Refused`] for what cannot be done; the store's errors that waiting does not mend.
    pub async fn act(&self, machines: &mut Machines, input: &Input, act: Act) -> Result<Decision, RunError> {
        let (decision, ready) = self.act_once(machines, input, act).await?;
        self.release(machines, ready).await?;
        Ok(decision)
    }

    /// Decides entities' ready events, each in a transaction of its own, and what that makes ready in turn (R3).
    pub async fn release(&self, machines: &mut Machines, ready: BTreeSet<EntityId>) -> Result<(), RunError> {
        let mut queue: VecDeque<EntityId> = ready.into_iter().collect();
        while let Some(entity) = queue.pop_front() {
            if machines.get_mut(&entity.machine).is_none() {
                tracing::warn!(entity = %entity, "its events are ready, but its machine is not configured; they stay");
                continue;
            }
            let act = Act::Released(entity.clone());
            let (_, more) = self.act_once(machines, &Input::Release(entity), act).await?;
            queue.extend(more);
        }
        Ok(())
    }

    async fn act_once(
        &self,
        machines: &mut Machines,
        input: &Input,
        act: Act,
    ) -> Result<(Decision, BTreeSet<EntityId>), RunError> {
        let mut patience = Patience::new();
        let operation = OperationId(rand::random());
        loop {
            let mut world = World::new();
            self.load(first_needs(input), &mut world).await?;
            let now = self.clock.now();
            let decision = loop {
                match tokio::task::block_in_place(|| decide(&world, machines, input, now)) {
                    Ok(decision) => break decision,
                    Err(Undecided::Need(need)) => self.load([need], &mut world).await?,
                    Err(Undecided::Refused(reason)) => return Err(RunError::Refused(reason)),
                }
            };
            let mut pending = Pending::new(world);
            pending.take(decision.clone(), act.clone());
            let ready = pending.ready.clone();
            let acts = std::mem::take(&mut pending.acts);
            let (writes, guards) = pending.rows();
            let mut commit = Commit::new(writes, now);
            commit.guards = guards;
            commit.operation = Some(operation);
            commit.activations = activations(machines, writes);
            match self.commit(&commit, &acts).await {
                Ok(()) => return Ok((decision, ready)),
                Err(StoreError::Raced(Race::Row("dead_letters"))) if matches!(input, Input::Person { .. }) => {
                    let message = "somebody else has decided this dead letter meanwhile";
                    return Err(RunError::Refused(Reason::new("not-open", message)));
                }
                Err(error) => match error.next_step() {
                    NextStep::Redo => patience.raced(&error).await,
                    NextStep::Reload => *machines = self.machines().await?,
                    NextStep::Retry => patience.wait_out(error, "commit").await?,
                    _ => return Err(error.into()),
                },
            }
        }
    }

    /// Commits; an unknown outcome is settled, and `Ok` means that it is there.
    pub(super) async fn commit(&self, commit: &Commit<'_>, acts: &[Act]) -> Result<(), StoreError> {
        let Some(observer) = &self.observer else { return self.commit_settled(commit).await };
        let _turn = match &observer.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        self.commit_settled(commit).await?;
        (observer.tell)(acts);
        Ok(())
    }

    async fn commit_settled(&self, commit: &Commit<'_>) -> Result<(), StoreError> {
        match self.store.commit(commit).await {
            Ok(()) => {}
            Err(error) if error.next_step() == NextStep::Settle => {
                tracing::warn!(error = %chain(&error), "the outcome of a commit is unknown; asking the store");
                let transaction = commit.transaction();
                let mut patience = Patience::new();
                loop {
                    match self.store.settle(&transaction).await {
                        Ok(Settled::Committed) => break,
                        Ok(Settled::NotCommitted) => {
                            return Err(StoreError::Io("the commit did not take place".into()));
                        }
                        Err(error) if error.next_step() == NextStep::Retry => patience.pause(&error, "settle").await,
                        Err(error) => return Err(error),
                    }
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// The activations under which these rows were decided: of every machine whose entities change (R8).
pub(super) fn activations(machines: &Machines, writes: &Writes) -> BTreeMap<Arc<str>, u64> {
    let concerned: BTreeSet<&str> = writes.entities.keys().map(|e| &*e.machine).collect();
    let in_force = machines.iter().filter(|m| concerned.contains(&*m.setup.name));
    in_force.map(|m| (m.setup.name.clone(), m.in_force.activation)).collect()
}

/// What an input surely asks for.
pub(super) fn first_needs(input: &Input) -> Vec<Need> {
    use seqgate_decide::decide::Action;
    match input {
        Input::Event { event, .. } => event_needs(event),
        Input::Malformed { malformed, .. } => malformed.entity.iter().cloned().map(Need::Entity).collect(),
        Input::Release(entity) | Input::Deadline(entity) | Input::Migrate(entity) | Input::Timer { entity, .. } => {
            vec![Need::Entity(entity.clone())]
        }
        Input::Import { import, .. } => vec![Need::Entity(import.entity.clone())],
        Input::Person { action, .. } => match action {
            Action::Redrive(t) | Action::Skip(t) | Action::Compensate(t) => {
                t.entity.iter().cloned().map(Need::Entity).collect()
            }
            Action::Replace(_, event) => event_needs(event),
            Action::Erase(erase) => vec![Need::Entity(erase.entity.clone())],
            Action::DismissWaiting(entity, _) => vec![Need::Entity(entity.clone())],
            Action::DismissConflict(c) => vec![Need::Entity(c.event.entity.clone()), Need::Inbox(c.event.key.clone())],
        },
    }
}

/// What deciding an event asks for.
pub(super) fn event_needs(event: &seqgate_decide::event::Event) -> Vec<Need> {
    use seqgate_decide::envelope::depends::DependsOn;
    let key: EventKey = event.key.clone();
    let mut needs = vec![Need::Entity(event.entity.clone()), Need::Inbox(key)];
    needs.extend(event.version.map(|v| Need::History(event.entity.clone(), v)));
    needs.extend(event.idempotency_key.iter().map(|k| Need::Intent(event.entity.machine.clone(), k.clone())));
    needs.extend(event.depends_on.iter().filter_map(|d| match d {
        DependsOn::Entity(dependency) => Some(Need::Entity(dependency.entity.clone())),
        DependsOn::Type(_) => None,
    }));
    needs
}

/// Waits between tries, longer each time and with jitter, and says so.
pub(super) struct Patience {
    pause: Duration,
    tries: u32,
}

impl Patience {
    pub fn new() -> Self {
        Self { pause: PAUSES.0, tries: 0 }
    }

    /// Waits, if waiting can mend it.
    pub async fn wait_out(&mut self, error: StoreError, what: &str) -> Result<(), RunError> {
        if error.next_step() != NextStep::Retry {
            return Err(error.into());
        }
        self.pause(&error, what).await;
        Ok(())
    }

    pub async fn pause(&mut self, error: &StoreError, what: &str) {
        self.tries += 1;
        let pause = rand::rng().random_range(self.pause / 2..=self.pause);
        let millis = pause.as_millis() as u64;
        tracing::warn!(what, tries = self.tries, pause_ms = millis, error = %chain(error), "the store failed; trying again");
        tokio::time::sleep(pause).await;
        self.pause = (self.pause * 2).min(PAUSES.1);
    }

    /// A lost race is redone at once, with a short pause from the third time on.
    pub async fn raced(&mut self, error: &StoreError) {
        self.tries += 1;
        tracing::debug!(tries = self.tries, %error, "redone");
        if self.tries > 2 {
            let most = Duration::from_millis(u64::from(self.tries.min(50)));
            let pause = rand::rng().random_range(Duration::ZERO..=most);
            tokio::time::sleep(pause).await;
        }
    }
}

/// An error with its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}
