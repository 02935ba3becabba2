//! One entity, and what the host does for it once an input's turn has come.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Dependency, Description, Edge, Effect, Entity, Event, Failure, Fault, Message, Origin, PendingTimer, Reason,
    Rejection, Subject, Transition, Trigger, When,
};
use crate::story::Given;
use crate::times::plus;

/// An event as it reaches the world.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// The event's type.
    pub kind: String,
    /// Its id.
    pub id: String,
    /// Its source; `/scenario` where absent.
    pub source: Option<String>,
    /// Milliseconds since the epoch.
    pub time: i64,
    /// Its version; one more than the entity's where absent.
    pub version: Option<u64>,
    /// The business intent.
    pub idempotency_key: Option<String>,
    /// Carried through.
    pub correlation_id: Option<String>,
    /// Media type of `data`.
    pub content_type: Option<String>,
    /// Extension attributes.
    pub attributes: Vec<(String, String)>,
    /// Dependencies that are met now.
    pub met: Vec<Dependency>,
    /// The payload.
    pub data: Vec<u8>,
}

/// What came of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The entity changed.
    Applied {
        /// What was sent, in order.
        messages: Vec<Message>,
        /// What the rules noted.
        notes: Vec<String>,
    },
    /// The rules refused it.
    Rejected(Rejection),
    /// The rules gave no answer.
    Fault(Fault),
    /// The rules broke their own declaration, or the input makes no sense here; the text says how.
    Broken(String),
}

/// One entity under one machine's rules.
#[derive(Clone, Debug)]
pub struct World {
    description: Description,
    key: Vec<u8>,
    entity: Option<Entity>,
    timers: BTreeMap<String, i64>,
    taken: BTreeSet<usize>,
}

impl World {
    /// An entity that does not exist yet.
    pub fn new(description: Description, key: impl Into<Vec<u8>>) -> Self {
        Self { description, key: key.into(), entity: None, timers: BTreeMap::new(), taken: BTreeSet::new() }
    }

    /// An entity that stands so at `start`, where that is given.
    pub fn standing(description: Description, key: impl Into<Vec<u8>>, given: Option<&Given>, start: i64) -> Self {
        let mut world = Self::new(description, key);
        if let Some(given) = given {
            world.timers = given.timers.clone();
            world.entity = Some(Entity {
                key: world.key.clone(),
                version: given.version,
                revision: given.revision,
                state: given.state.clone(),
                entered: given.entered.unwrap_or(start),
                schema: world.description.schema,
                data: given.data.clone(),
                timers: Vec::new(),
            });
            world.show_timers();
        }
        world
    }

    /// The entity, once it exists. Its `timers` are those that are pending, in the order of their names.
    pub fn entity(&self) -> Option<&Entity> {
        self.entity.as_ref()
    }

    /// Pending timers with their due times.
    pub fn timers(&self) -> &BTreeMap<String, i64> {
        &self.timers
    }

    /// Which of the declared edges were taken, by their positions in the description.
    pub fn taken(&self) -> &BTreeSet<usize> {
        &self.taken
    }

    /// An event arrives.
    pub fn event(&mut self, subject: &mut dyn Subject, input: Input) -> Outcome {
        let event = self.event_of(input);
        match subject.apply(self.entity.as_ref(), &event) {
            Ok(Ok(transition)) => self.take(&event, transition),
            Ok(Err(rejection)) => Outcome::Rejected(rejection),
            Err(fault) => Outcome::Fault(fault),
        }
    }

    /// A pending timer comes due.
    pub fn timer(&mut self, subject: &mut dyn Subject, name: &str) -> Outcome {
        let (Some(entity), Some(due)) = (&self.entity, self.timers.remove(name)) else {
            let pending: Vec<_> = self.timers.keys().map(String::as_str).collect();
            return Outcome::Broken(format!("timer `{name}` is not pending; pending: {}", list(&pending)));
        };
        let event = Event {
            id: format!("timer:{name}:{}", entity.revision),
            source: "seqgate".into(),
            trigger: Trigger::Timer(name.to_owned()),
            key: self.key.clone(),
            version: None,
            time: due,
            idempotency_key: None,
            correlation_id: None,
            content_type: None,
            attributes: Vec::new(),
            met: Vec::new(),
            data: Vec::new(),
        };
        // A timer that fires is no longer pending, whatever the rules say to it.
        self.show_timers();
        match subject.apply(self.entity.as_ref(), &event) {
            Ok(Ok(transition)) => self.take(&event, transition),
            Ok(Err(rejection)) => Outcome::Rejected(rejection),
            Err(fault) => Outcome::Fault(fault),
        }
    }

    /// An event arrives, must be refused, and is compensated. The reason of the first refusal comes with the outcome.
    pub fn compensate(&mut self, subject: &mut dyn Subject, input: Input) -> (Option<Reason>, Outcome) {
        let mut event = self.event_of(input);
        let (reason, failure) = match subject.apply(self.entity.as_ref(), &event) {
            Ok(Err(Rejection::Illegal(reason))) => (reason.clone(), Failure::Illegal(reason)),
            Ok(Err(Rejection::Malformed(reason))) => (reason.clone(), Failure::Malformed(reason)),
            Ok(Err(Rejection::Waiting(_))) => {
                return (None, Outcome::Broken("the event waits; nothing to undo".into()));
            }
            Ok(Ok(to)) => {
                return (
                    None,
                    Outcome::Broken(format!("the event is taken, to state `{}`; nothing to undo", to.state)),
                );
            }
            Err(fault) => return (None, Outcome::Fault(fault)),
        };
        if let Trigger::Event(kind) = event.trigger {
            event.trigger = Trigger::Compensation(kind);
        }
        let outcome = match subject.compensate(self.entity.as_ref(), &event, &failure) {
            Ok(Ok(transition)) => self.take(&event, transition),
            Ok(Err(rejection)) => Outcome::Rejected(rejection),
            Err(fault) => Outcome::Fault(fault),
        };
        (Some(reason), outcome)
    }

    fn event_of(&self, input: Input) -> Event {
        let next = self.entity.as_ref().map_or(0, |entity| entity.version).saturating_add(1);
        Event {
            id: input.id,
            source: input.source.unwrap_or_else(|| "/scenario".to_owned()),
            trigger: Trigger::Event(input.kind),
            key: self.key.clone(),
            version: Some(input.version.unwrap_or(next)),
            time: input.time,
            idempotency_key: input.idempotency_key,
            correlation_id: input.correlation_id,
            content_type: input.content_type,
            attributes: input.attributes,
            met: input.met,
            data: input.data,
        }
    }

    /// Follows a transition, after the checks that the host makes. Nothing changes where one fails.
    fn take(&mut self, event: &Event, transition: Transition) -> Outcome {
        let state = self.entity.as_ref().map(|entity| entity.state.as_str());
        let edge = self.description.edges.iter().position(|edge| {
            edge.trigger == event.trigger && edge.target == transition.state && self.starts_from(edge, state)
        });
        let stays = matches!(event.trigger, Trigger::Compensation(_)) && state == Some(transition.state.as_str());
        if edge.is_none() && !stays {
            let from = state.unwrap_or("absent");
            return Outcome::Broken(format!("no edge is declared from `{from}` to `{}`", transition.state));
        }
        let Some(terminal) = self.description.states.iter().find(|info| info.name == transition.state) else {
            return Outcome::Broken(format!("state `{}` is not declared", transition.state));
        };
        let terminal = terminal.terminal;
        let mut timers = self.timers.clone();
        let mut messages = Vec::new();
        for effect in transition.effects {
            match effect {
                Effect::Send(message) => messages.push(message),
                Effect::Start { name, when } => {
                    if !self.description.edges.iter().any(|edge| edge.trigger == Trigger::Timer(name.clone())) {
                        return Outcome::Broken(format!("no edge is declared for timer `{name}`"));
                    }
                    let due = match when {
                        When::At(at) => at,
                        When::After(length) => plus(event.time, length),
                    };
                    timers.insert(name, due);
                }
                Effect::Cancel(name) => drop(timers.remove(&name)),
            }
        }
        if terminal {
            timers.clear();
        }
        self.timers = timers;
        self.taken.extend(edge);
        self.change(event, transition.state, transition.data);
        Outcome::Applied { messages, notes: transition.notes }
    }

    fn starts_from(&self, edge: &Edge, state: Option<&str>) -> bool {
        match (&edge.origin, state) {
            (Origin::Absent, None) => true,
            (Origin::State(from), Some(state)) => from == state,
            (Origin::AnyLive, Some(state)) => {
                self.description.states.iter().any(|info| info.name == state && !info.terminal)
            }
            _ => false,
        }
    }

    fn change(&mut self, event: &Event, state: String, data: Vec<u8>) {
        let before = self.entity.take();
        let entered = match &before {
            Some(before) if before.state == state => before.entered,
            _ => event.time,
        };
        let (version, revision) = before.map_or((0, 0), |before| (before.version, before.revision));
        self.entity = Some(Entity {
            key: self.key.clone(),
            version: event.version.unwrap_or(version),
            revision: revision + 1,
            state,
            entered,
            schema: self.description.schema,
            data,
            timers: Vec::new(),
        });
        self.show_timers();
    }

    fn show_timers(&mut self) {
        if let Some(entity) = &mut self.entity {
            entity.timers =
                self.timers.iter().map(|(name, due)| PendingTimer { name: name.clone(), due: *due }).collect();
        }
    }
}

/// Names for a person; `none` where there are none.
pub(crate) fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
