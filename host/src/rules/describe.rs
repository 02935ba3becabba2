//! Whether what rules declare about themselves holds together. The core relies on it (R8).

use std::collections::HashSet;
use std::fmt;

use seqgate_decide::ids::MAX_NAME;
use seqgate_decide::rules::{Description, Edge, Origin, Trigger};

/// The most states of one machine.
pub const MAX_STATES: usize = 256;
/// The most edges of one machine.
pub const MAX_EDGES: usize = 4096;
/// The most older layouts that `reads` may list.
pub const MAX_READS: usize = 256;

/// One thing that is wrong with a description. The text is for the rules' author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The machine's name is not `[a-z][a-z0-9-]*`, 1 to 256 bytes.
    #[error(
        "the machine's name {0:?} must be lower-case letters, digits and hyphens, from a letter, at most {MAX_NAME} bytes"
    )]
    Machine(String),
    /// The version is not semantic.
    #[error("the version {0:?} must be a semantic version such as 1.2.0")]
    Version(String),
    /// `reads` lists the layout that the rules write themselves.
    #[error("`reads` lists schema {0}, which is the one these rules write: list only older ones")]
    OwnSchema(u32),
    /// Too many of something.
    #[error("{count} {what}, and the limit is {limit}")]
    TooMany {
        /// `states`, `edges` or `older schemas`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are accepted.
        limit: usize,
    },
    /// A state's, event type's or timer's name is empty, over 256 bytes, or holds a control character.
    #[error("the {what} {name:?} {}", .problem)]
    Name {
        /// `state`, `event type`, `timer` or `compensated event type`.
        what: &'static str,
        /// The name, cut to 256 bytes.
        name: String,
        /// What is wrong with it.
        problem: NameProblem,
    },
    /// Two states of one name.
    #[error("the state {0:?} is declared twice")]
    DuplicateState(String),
    /// An edge that starts at or leads to a state that is not declared.
    #[error("{edge}: the state {state:?} is not declared")]
    UnknownState {
        /// The edge.
        edge: String,
        /// The missing state.
        state: String,
    },
    /// An event or timer edge out of a terminal state.
    #[error("{0}: nothing leaves a terminal state, except by compensation")]
    FromTerminal(String),
    /// The same edge twice. Several targets for one origin and trigger are fine.
    #[error("{0}: declared twice")]
    DuplicateEdge(String),
    /// No event creates an entity.
    #[error("no event leads out of `absent`, so no entity can ever exist: declare the edge that creates one")]
    NoCreation,
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It is longer than [`MAX_NAME`] bytes.
    #[error("is longer than {MAX_NAME} bytes")]
    Long,
    /// It holds a character of U+0000–001F or U+007F–009F.
    #[error("holds a control character")]
    Control,
}

/// Everything that is wrong with a description; empty when it is consistent.
pub fn check(description: &Description) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let Description { name, version, schema, reads, states, edges } = description;
    for (what, count, limit) in [
        ("states", states.len(), MAX_STATES),
        ("edges", edges.len(), MAX_EDGES),
        ("older schemas", reads.len(), MAX_READS),
    ] {
        if count > limit {
            flaws.push(Flaw::TooMany { what, count, limit });
        }
    }
    if !flaws.is_empty() {
        return flaws;
    }
    if !is_machine_name(name) {
        flaws.push(Flaw::Machine(cut(name)));
    }
    if semver::Version::parse(version).is_err() {
        flaws.push(Flaw::Version(cut(version)));
    }
    if reads.contains(schema) {
        flaws.push(Flaw::OwnSchema(*schema));
    }
    check_states(description, &mut flaws);
    check_edges(description, &mut flaws);
    flaws
}

/// Whether a text may name a machine (R1).
pub fn is_machine_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn check_states(description: &Description, flaws: &mut Vec<Flaw>) {
    let mut seen = HashSet::new();
    for state in &description.states {
        check_name("state", &state.name, flaws);
        if !seen.insert(&state.name) {
            flaws.push(Flaw::DuplicateState(cut(&state.name)));
        }
    }
}

fn check_edges(description: &Description, flaws: &mut Vec<Flaw>) {
    let terminal = |name: &str| description.states.iter().find(|state| state.name == name).map(|state| state.terminal);
    let mut seen = HashSet::new();
    for edge in &description.edges {
        let (what, name) = named(&edge.trigger);
        check_name(what, name, flaws);
        let origin = match &edge.origin {
            Origin::State(name) => Some(name),
            Origin::Absent | Origin::AnyLive => None,
        };
        for state in origin.into_iter().chain([&edge.target]) {
            if terminal(state).is_none() {
                flaws.push(Flaw::UnknownState { edge: Arrow(edge).to_string(), state: cut(state) });
            }
        }
        let leaves = origin.is_some_and(|name| terminal(name) == Some(true));
        if leaves && !matches!(edge.trigger, Trigger::Compensation(_)) {
            flaws.push(Flaw::FromTerminal(Arrow(edge).to_string()));
        }
        if !seen.insert((edge_kind(edge), origin, name, &edge.target)) {
            flaws.push(Flaw::DuplicateEdge(Arrow(edge).to_string()));
        }
    }
    let creates = |edge: &Edge| edge.origin == Origin::Absent && matches!(edge.trigger, Trigger::Event(_));
    if !description.edges.iter().any(creates) {
        flaws.push(Flaw::NoCreation);
    }
}

fn edge_kind(edge: &Edge) -> (std::mem::Discriminant<Origin>, std::mem::Discriminant<Trigger>) {
    (std::mem::discriminant(&edge.origin), std::mem::discriminant(&edge.trigger))
}

fn named(trigger: &Trigger) -> (&'static str, &String) {
    match trigger {
        Trigger::Event(name) => ("event type", name),
        Trigger::Timer(name) => ("timer", name),
        Trigger::Compensation(name) => ("compensated event type", name),
    }
}

fn check_name(what: &'static str, name: &str, flaws: &mut Vec<Flaw>) {
    let problem = if name.is_empty() {
        NameProblem::Empty
    } else if name.len() > MAX_NAME {
        NameProblem::Long
    } else if name.chars().any(char::is_control) {
        NameProblem::Control
    } else {
        return;
    };
    flaws.push(Flaw::Name { what, name: cut(name), problem });
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_NAME)].to_owned()
}

/// An edge as an author would say it: `pending -(order.paid)-> paid`.
struct Arrow<'a>(&'a Edge);

impl fmt::Display for Arrow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match &self.0.origin {
            Origin::Absent => "absent".into(),
            Origin::AnyLive => "any live state".into(),
            Origin::State(name) => cut(name),
        };
        let (what, name) = named(&self.0.trigger);
        write!(f, "edge {origin} -({what} {})-> {}", cut(name).escape_debug(), cut(&self.0.target))
    }
}
