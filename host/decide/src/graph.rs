//! The declared graph of a machine, indexed for the questions that decisions ask.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::rules::{Description, Edge, Origin, Trigger, TriggerView};

/// A machine's description and its edges by trigger.
#[derive(Debug)]
pub struct Graph {
    description: Arc<Description>,
    events: HashMap<String, Vec<Edge>>,
    timers: HashMap<String, Vec<Edge>>,
    compensations: HashMap<String, Vec<Edge>>,
    terminal: HashSet<String>,
    states: HashMap<String, Arc<str>>,
}

impl Graph {
    /// Indexes a description.
    pub fn new(description: Arc<Description>) -> Self {
        let mut graph = Self {
            events: HashMap::new(),
            timers: HashMap::new(),
            compensations: HashMap::new(),
            terminal: description.states.iter().filter(|s| s.terminal).map(|s| s.name.clone()).collect(),
            states: description.states.iter().map(|s| (s.name.clone(), s.name.as_str().into())).collect(),
            description: description.clone(),
        };
        for edge in &description.edges {
            let (edges, name) = match &edge.trigger {
                Trigger::Event(name) => (&mut graph.events, name),
                Trigger::Timer(name) => (&mut graph.timers, name),
                Trigger::Compensation(name) => (&mut graph.compensations, name),
            };
            edges.entry(name.clone()).or_default().push(edge.clone());
        }
        graph
    }

    /// What was declared.
    pub fn description(&self) -> &Arc<Description> {
        &self.description
    }

    /// Whether any edge names this event type.
    pub fn knows_event(&self, kind: &str) -> bool {
        self.events.contains_key(kind)
    }

    /// Whether any edge names this timer.
    pub fn knows_timer(&self, name: &str) -> bool {
        self.timers.contains_key(name)
    }

    /// Whether a state is terminal.
    pub fn is_terminal(&self, state: &str) -> bool {
        self.terminal.contains(state)
    }

    /// A declared state's name, shared.
    pub fn state(&self, name: &str) -> Option<&Arc<str>> {
        self.states.get(name)
    }

    /// Whether an edge leads from a state (or from absence) to another by this trigger.
    pub fn allows(&self, from: Option<&str>, trigger: TriggerView<'_>, target: &str) -> bool {
        let (edges, name) = match trigger {
            TriggerView::Event(name) => (&self.events, name),
            TriggerView::Timer(name) => (&self.timers, name),
            TriggerView::Compensation(name) => (&self.compensations, name),
        };
        edges.get(name).is_some_and(|edges| edges.iter().any(|e| e.target == target && self.leaves(e, from)))
    }

    /// Whether any edge of this event type starts here.
    pub fn event_starts(&self, from: Option<&str>, kind: &str) -> bool {
        self.events.get(kind).is_some_and(|edges| edges.iter().any(|e| self.leaves(e, from)))
    }

    /// Whether an event of this type has no edge from here, but one from a state that is still reached from here by
    /// events and timers: the `early` of R4.
    pub fn is_early(&self, from: Option<&str>, kind: &str) -> bool {
        if !self.knows_event(kind) || self.event_starts(from, kind) {
            return false;
        }
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(here) = open.pop() {
            for edge in self.events.values().chain(self.timers.values()).flatten() {
                if self.leaves(edge, here) && reached.insert(&edge.target) {
                    if self.event_starts(Some(&edge.target), kind) {
                        return true;
                    }
                    open.push(Some(&edge.target));
                }
            }
        }
        false
    }

    fn leaves(&self, edge: &Edge, from: Option<&str>) -> bool {
        match (&edge.origin, from) {
            (Origin::Absent, None) => true,
            (Origin::AnyLive, Some(state)) => !self.is_terminal(state),
            (Origin::State(origin), Some(state)) => origin == state,
            _ => false,
        }
    }
}
