//! Verdicts and the reasons that go with them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the host decided for one event; every event has exactly one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It took effect.
    Applied,
    /// It was decided before: same id, same intent, or an old version with the same content.
    Duplicate,
    /// Its version was passed over, or is lower under snapshot ordering.
    Stale,
    /// Same id, version or intent as another event, with other content: quarantined.
    Conflict,
    /// Not yet: see [`DeferReason`].
    Deferred,
    /// The rules refuse it in this state.
    Illegal,
    /// Its envelope or payload cannot be understood.
    Malformed,
    /// The rules trapped, passed a limit, or broke their own declaration.
    Fault,
    /// By configuration, or by a person's recorded decision.
    Skipped,
}

impl Verdict {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 9] = [
        Self::Applied,
        Self::Duplicate,
        Self::Stale,
        Self::Conflict,
        Self::Deferred,
        Self::Illegal,
        Self::Malformed,
        Self::Fault,
        Self::Skipped,
    ];

    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Duplicate => "duplicate",
            Self::Stale => "stale",
            Self::Conflict => "conflict",
            Self::Deferred => "deferred",
            Self::Illegal => "illegal",
            Self::Malformed => "malformed",
            Self::Fault => "fault",
            Self::Skipped => "skipped",
        }
    }

    /// The verdict of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.name() == name)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why an event waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeferReason {
    /// A version before it is missing.
    Gap,
    /// A dependency that it declares is unmet, or (arrival) an event before it waits.
    Dependency,
    /// The rules asked to decide again when other entities have come further.
    Waiting,
    /// Its type has no edge from here yet (`on_early = "wait"`).
    Early,
    /// A dead letter of its entity stands before it.
    Blocked,
    /// The rules in force cannot read the entity's data.
    Schema,
}

impl DeferReason {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Gap, Self::Dependency, Self::Waiting, Self::Early, Self::Blocked, Self::Schema];

    /// Its name in output and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gap => "gap",
            Self::Dependency => "dependency",
            Self::Waiting => "waiting",
            Self::Early => "early",
            Self::Blocked => "blocked",
            Self::Schema => "schema",
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

impl fmt::Display for DeferReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
