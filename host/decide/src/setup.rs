//! How a machine is configured, as far as decisions depend on it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What orders a machine's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ordering {
    /// The +1 gate (R3).
    #[default]
    Versioned,
    /// No versions: `dependson` decides, and the order of the source otherwise (R4).
    Causal,
    /// A higher version overwrites, a lower one is stale (R4).
    Snapshot,
    /// The source's order; the host numbers events (R4).
    Arrival,
}

impl Ordering {
    /// Whether events bring their own version.
    pub const fn uses_versions(self) -> bool {
        matches!(self, Self::Versioned | Self::Snapshot)
    }

    /// Its name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Versioned => "versioned",
            Self::Causal => "causal",
            Self::Snapshot => "snapshot",
            Self::Arrival => "arrival",
        }
    }
}

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What becomes of a refused event (R5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// It becomes a dead letter; its entity's later events wait.
    #[default]
    Park,
    /// It becomes a closed dead letter; its version is consumed and the state stays.
    Skip,
    /// As skip, and the rules' `compensate` decides what it leaves behind; if that refuses, park.
    Compensate,
}

/// The policy for each class of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Policies {
    /// For events that the rules refuse.
    pub illegal: Policy,
    /// For payloads that cannot be understood.
    pub malformed: Policy,
    /// For traps, limits and broken declarations.
    pub fault: Policy,
    /// For types that no edge names; `None` follows `illegal`.
    pub unknown: Option<Policy>,
}

/// One machine, as decisions see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// The machine's name.
    pub name: Arc<str>,
    /// What orders its events.
    pub ordering: Ordering,
    /// What becomes of refused ones.
    pub policies: Policies,
    /// Types that consume their version and change nothing.
    pub ignore: BTreeSet<Arc<str>>,
    /// `on_early = "wait"`: for how many milliseconds an early event waits at most.
    pub early_after: Option<u64>,
}

impl Setup {
    /// A machine with the defaults: versioned, every refusal parks.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            ordering: Ordering::default(),
            policies: Policies::default(),
            ignore: BTreeSet::new(),
            early_after: None,
        }
    }
}
