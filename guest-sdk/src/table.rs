//! The table of states and edges: what a machine declares about itself.

use std::fmt;

use crate::refusal::Refusal;

/// One of a machine's closed sets of names: its states, timers or compensations.
///
/// Implemented by [`table!`](crate::table).
pub trait Named: Copy + Eq + fmt::Debug + 'static {
    /// All of them, in the order of their declaration.
    const ALL: &'static [Self];

    /// Its name, as the contract writes it.
    fn name(self) -> &'static str;

    /// The one of this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}

/// The events that a machine knows, each with its decoded payload. Implemented by [`table!`](crate::table).
pub trait Decode: Sized {
    /// Reads an event of a type; `None` where no edge names the type.
    ///
    /// The payload of a type that is declared without one is not read, and may be anything.
    fn decode(kind: &str, data: &[u8]) -> Option<Result<Self, Refusal>>;
}

/// What a machine declares. Implemented by [`table!`](crate::table).
pub trait Table {
    /// Its states.
    type State: Named;
    /// Its events.
    type Event: Decode;
    /// Its timers.
    type Timer: Named;
    /// Its compensations; [`Named::name`] is the type of the refused event.
    type Compensation: Named;

    /// The machine's name: lower-case letters, digits and hyphens, from a letter.
    const NAME: &'static str;
    /// Semantic version of the rules: the crate's.
    const VERSION: &'static str;
    /// The layout of the entity's data that these rules write.
    const SCHEMA: u32;
    /// Older layouts that [`Machine::migrate`](crate::Machine::migrate) reads.
    const READS: &'static [u32];
    /// Every state.
    const STATES: &'static [StateRow];
    /// Every edge.
    const EDGES: &'static [EdgeRow];
}

/// A declared state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// Its name.
    pub name: &'static str,
    /// Nothing leaves a terminal state, except by compensation.
    pub terminal: bool,
    /// Milliseconds after which an entity that rests here is stuck.
    pub expected_within: Option<u64>,
}

/// A declared edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRow {
    /// Where it starts.
    pub origin: OriginRow,
    /// What takes it.
    pub trigger: TriggerRow,
    /// The state it leads to.
    pub target: &'static str,
}

/// Where an edge starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginRow {
    /// The entity does not exist yet.
    Absent,
    /// Any state that is not terminal.
    AnyLive,
    /// This state.
    State(&'static str),
}

/// What takes an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerRow {
    /// An event of this type.
    Event(&'static str),
    /// A timer of this name.
    Timer(&'static str),
    /// An event of this type that was refused.
    Compensation(&'static str),
}

/// Whether some declared edge leaves `state` (`None`: absent) by such a trigger.
pub(crate) fn leaves<T: Table>(state: Option<T::State>, such: impl Fn(TriggerRow) -> bool) -> bool {
    let live = |name| T::STATES.iter().any(|row| row.name == name && !row.terminal);
    T::EDGES.iter().filter(|edge| such(edge.trigger)).any(|edge| match (edge.origin, state) {
        (OriginRow::Absent, None) => true,
        (OriginRow::AnyLive, Some(state)) => live(state.name()),
        (OriginRow::State(from), Some(state)) => from == state.name(),
        _ => false,
    })
}

/// The edges of several lists in one. For [`table!`](crate::table) only.
#[doc(hidden)]
pub const fn __concat<const N: usize>(lists: &[&[EdgeRow]]) -> [EdgeRow; N] {
    let mut all = [EdgeRow { origin: OriginRow::Absent, trigger: TriggerRow::Event(""), target: "" }; N];
    let (mut list, mut next) = (0, 0);
    while list < lists.len() {
        let mut row = 0;
        while row < lists[list].len() {
            all[next] = lists[list][row];
            (row, next) = (row + 1, next + 1);
        }
        list += 1;
    }
    all
}

/// Fails to compile where a table contradicts itself. For [`table!`](crate::table) only.
#[doc(hidden)]
pub const fn __check(machine: &str, states: &[StateRow], edges: &[EdgeRow]) {
    assert!(is_machine_name(machine.as_bytes()), "a machine's name is lower-case letters, digits and hyphens");
    let mut i = 0;
    while i < states.len() {
        let mut j = i + 1;
        while j < states.len() {
            assert!(!same(states[i].name, states[j].name), "two states have the same name");
            j += 1;
        }
        let mut e = 0;
        while e < edges.len() {
            let leaves = match (edges[e].origin, edges[e].trigger) {
                (_, TriggerRow::Compensation(_)) => false,
                (OriginRow::State(from), _) => same(from, states[i].name),
                _ => false,
            };
            assert!(!(leaves && states[i].terminal), "nothing leaves a terminal state, except by compensation");
            e += 1;
        }
        i += 1;
    }
}

const fn is_machine_name(name: &[u8]) -> bool {
    let mut i = 0;
    while i < name.len() {
        match name[i] {
            b'a'..=b'z' => {}
            b'0'..=b'9' | b'-' if i > 0 => {}
            _ => return false,
        }
        i += 1;
    }
    i > 0
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
