//! The three machines of R11, typed from that page: tables of states and edges, and the checks behind them.

mod accounts;
mod amount;
mod facts;
mod orders;
mod subscriptions;

use std::collections::BTreeMap;

pub use facts::facts;

use crate::Value;

/// Facts of an entity's data that the rules keep.
pub(crate) type Facts = BTreeMap<String, String>;

/// Where an edge starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Absent,
    AnyLive,
    In(&'static str),
}

/// What takes an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger<'a> {
    Event(&'a str),
    Timer(&'a str),
    Compensation(&'a str),
}

/// A declared edge: from, trigger, to.
pub(crate) type Edge = (From, Trigger<'static>, &'static str);

/// A machine's declaration.
pub(crate) struct Machine {
    pub(crate) live: &'static [&'static str],
    pub(crate) edges: &'static [Edge],
    decide: fn(&Input) -> Answer,
    compensate: fn(state: &str, kind: &str) -> Option<Move>,
}

/// What the rules are asked with.
pub(crate) struct Input<'a> {
    pub(crate) state: Option<&'a str>,
    pub(crate) facts: &'a Facts,
    pub(crate) trigger: Trigger<'a>,
    /// The event's data, where it reads as JSON.
    pub(crate) data: Option<&'a Value>,
}

/// A transition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Move {
    pub(crate) state: String,
    pub(crate) facts: Facts,
    pub(crate) effects: Vec<Effect>,
}

/// What a transition does besides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Effect {
    Send(&'static str),
    /// Milliseconds after the deciding event's time.
    StartAfter(&'static str, i64),
    /// At this time.
    StartAt(&'static str, i64),
    Cancel(&'static str),
}

/// The rules' answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Move(Move),
    Illegal,
    Malformed,
}

/// The machine of that name.
///
/// # Panics
/// Where there is none: a setup names only these.
pub(crate) fn machine(name: &str) -> &'static Machine {
    match name {
        "orders" => &orders::MACHINE,
        "subscriptions" => &subscriptions::MACHINE,
        "accounts" => &accounts::MACHINE,
        other => panic!("no machine {other}"),
    }
}

impl Machine {
    /// Whether the type is in any event edge (R3 step 10).
    pub(crate) fn knows(&self, kind: &str) -> bool {
        self.edges.iter().any(|e| e.1 == Trigger::Event(kind))
    }

    /// A state that something leads to.
    pub(crate) fn has(&self, state: &str) -> bool {
        self.edges.iter().any(|e| e.2 == state)
    }

    /// A state that something may leave.
    pub(crate) fn is_live(&self, state: &str) -> bool {
        self.live.contains(&state)
    }

    /// Edges with this trigger from this state, or from none.
    pub(crate) fn edge(&self, state: Option<&str>, trigger: Trigger) -> bool {
        self.edges.iter().any(|e| e.1 == trigger && self.starts(e.0, state))
    }

    fn starts(&self, from: From, state: Option<&str>) -> bool {
        match (from, state) {
            (From::Absent, None) => true,
            (From::In(s), Some(state)) => s == state,
            (From::AnyLive, Some(state)) => self.is_live(state),
            _ => false,
        }
    }

    /// The event is early (R4): no edge from here, but one from a state that event and timer edges still reach.
    pub(crate) fn early(&self, state: Option<&str>, kind: &str) -> bool {
        let trigger = Trigger::Event(kind);
        if !self.knows(kind) || self.edge(state, trigger) {
            return false;
        }
        let mut reached: Vec<&str> = Vec::new();
        loop {
            let here = reached.len();
            for (from, by, to) in self.edges {
                let declared = !matches!(by, Trigger::Compensation(_));
                let starts = self.starts(*from, state) || reached.iter().any(|s| self.starts(*from, Some(s)));
                if declared && starts && !reached.contains(to) {
                    reached.push(to);
                }
            }
            if reached.len() == here {
                return reached.iter().any(|s| self.edge(Some(s), trigger));
            }
        }
    }

    /// The rules' answer to an event or a timer: payload first, then state and business (R11).
    pub(crate) fn apply(&self, input: &Input) -> Answer {
        let answer = (self.decide)(input);
        if let Answer::Move(m) = &answer {
            let declared = |e: &Edge| e.1 == input.trigger && e.2 == m.state && self.starts(e.0, input.state);
            assert!(
                self.edges.iter().any(declared),
                "undeclared edge {:?} {:?} {}",
                input.state,
                input.trigger,
                m.state
            );
        }
        answer
    }

    /// What a refused event leaves behind; looks only at type and state (R11).
    pub(crate) fn compensate(&self, state: Option<&str>, facts: &Facts, kind: &str) -> Option<Move> {
        let mut done = (self.compensate)(state?, kind)?;
        done.facts = facts.clone();
        Some(done)
    }
}

/// A member that is a non-empty string: what a currency is.
fn name(data: &Value, member: &str) -> Option<String> {
    match data.get(member) {
        Some(Value::Text(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// A transition to `state`.
fn to(state: &str, facts: &Facts, effects: Vec<Effect>) -> Answer {
    Answer::Move(Move { state: state.to_owned(), facts: facts.clone(), effects })
}

#[cfg(test)]
mod tests;
