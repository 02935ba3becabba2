//! A machine as decisions use it: its configuration, its declared graph, and its rules in force.

use std::sync::Arc;

use crate::envelope::Directory;
use crate::graph::Graph;
use crate::rules::{Fault, Rules, UNAVAILABLE};
use crate::setup::{Ordering, Setup};
use crate::writes::RulesRef;

/// How much one decision may release (R3). What is left is marked ready, and goes on in the next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseLimits {
    /// The most events.
    pub events: usize,
    /// The most payload bytes together; the event that passes this is the last.
    pub bytes: usize,
}

impl Default for ReleaseLimits {
    fn default() -> Self {
        Self { events: 5_000, bytes: 32 * 1024 * 1024 }
    }
}

/// A configured machine with its rules in force.
pub struct Machine {
    /// The configuration.
    pub setup: Arc<Setup>,
    /// What the rules declare.
    pub graph: Arc<Graph>,
    /// The rules.
    pub rules: Box<dyn Rules + Send>,
    /// Their activation and digest, recorded with every transition (R8).
    pub in_force: RulesRef,
    /// How much one decision may release.
    pub release: ReleaseLimits,
    /// Why the host had no instance of the rules for the last question, if it had none.
    unavailable: Option<Arc<str>>,
}

impl Machine {
    /// Puts a machine together; the graph is that of the rules' own description.
    pub fn new(setup: Arc<Setup>, rules: Box<dyn Rules + Send>, in_force: RulesRef) -> Self {
        let graph = Arc::new(Graph::new(rules.description().clone()));
        Self { setup, graph, rules, in_force, release: ReleaseLimits::default(), unavailable: None }
    }

    /// Asks the rules. A fault that is the host's own is noted, and makes the whole decision void.
    pub(crate) fn ask<T>(&mut self, question: impl FnOnce(&mut dyn Rules) -> Result<T, Fault>) -> Result<T, Fault> {
        let answer = question(&mut *self.rules);
        if let Err(fault) = &answer
            && fault.code == UNAVAILABLE
        {
            self.unavailable = Some(fault.message.as_str().into());
        }
        answer
    }
}

/// Every configured machine.
#[derive(Default)]
pub struct Machines {
    by_name: std::collections::BTreeMap<Arc<str>, Machine>,
}

impl Machines {
    /// Adds or replaces a machine.
    pub fn insert(&mut self, machine: Machine) {
        self.by_name.insert(machine.setup.name.clone(), machine);
    }

    /// A machine by its name.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Machine> {
        self.by_name.get_mut(name)
    }

    /// What was noted since the last time: no decision that was made meanwhile is one.
    pub(crate) fn take_unavailable(&mut self) -> Option<Arc<str>> {
        self.by_name.values_mut().find_map(|m| m.unavailable.take())
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Machine> {
        self.by_name.values()
    }
}

impl Directory for Machines {
    fn ordering(&self, machine: &str) -> Option<Ordering> {
        self.by_name.get(machine).map(|m| m.setup.ordering)
    }
}
