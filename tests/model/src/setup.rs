//! The configuration that a history runs under.

use std::collections::{BTreeMap, BTreeSet};

/// How a machine orders its events (R3, R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ordering {
    /// The +1 gate.
    Versioned,
    /// No versions: dependencies decide.
    Causal,
    /// A higher version overwrites.
    Snapshot,
    /// The source's order.
    Arrival,
}

/// What becomes of a refused event (R5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Policy {
    /// An open dead letter that blocks the entity.
    Park,
    /// A closed dead letter; the event's place is consumed.
    Skip,
    /// The rules' `compensate` decides; where it refuses or faults: park.
    Compensate,
}

/// How one machine is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineSetup {
    /// Its ordering.
    pub ordering: Ordering,
    /// Policy of class `illegal`.
    pub on_illegal: Policy,
    /// Policy of class `malformed`, envelopes of causal and arrival machines included.
    pub on_malformed: Policy,
    /// Policy of class `fault`.
    pub on_fault: Policy,
    /// Policy of code `unknown-type`, resolved: already that of `on_illegal` where the configuration says nothing.
    pub on_unknown: Policy,
    /// Types that consume their version and change nothing (R3 step 7).
    pub ignore: BTreeSet<String>,
    /// `on_early = "wait"`; only for causal and arrival machines.
    pub on_early_wait: bool,
    /// Milliseconds that an early event waits at most.
    pub early_after: i64,
}

/// A configured source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSetup {
    /// Its name; counters are kept under it.
    pub name: String,
    /// Number of partitions; an event's is the first 8 bytes of SHA-256(machine, 0, key) mod this (R10).
    pub partitions: u32,
}

/// The configuration that a history runs under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// By machine name: `orders`, `subscriptions`, `accounts`, always all three.
    pub machines: BTreeMap<String, MachineSetup>,
    /// The sources; none names a machine, every event does.
    pub sources: Vec<SourceSetup>,
    /// The history uses the markers of [`Event`](crate::Event)'s data and [`Step::Rules`](crate::Step::Rules), which only native test rules understand.
    /// Where false, the real components can run it.
    pub markers: bool,
}
