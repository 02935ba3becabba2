//! Components by digest, and which of them decides (R8).

use std::sync::Arc;

use seqgate_decide::ids::Digest;

use super::Pending;
use super::views::{Listing, Page};

/// A registered component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesRecord {
    /// SHA-256 of its bytes.
    pub digest: Digest,
    /// The machine that its description names.
    pub machine: Arc<str>,
    /// Its description, as JSON.
    pub description: String,
    /// Length of its bytes.
    pub size: u64,
    /// Who registered it.
    pub actor: String,
    /// When.
    pub at: i64,
}

/// One activation of a machine's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The machine.
    pub machine: Arc<str>,
    /// Rises by 1 with each; from 1.
    pub number: u64,
    /// The component.
    pub digest: Digest,
    /// Who.
    pub actor: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: i64,
}

/// From which offset on an activation decided in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The source.
    pub source: Arc<str>,
    /// The partition.
    pub partition: u32,
    /// The machine.
    pub machine: Arc<str>,
    /// The activation.
    pub number: u64,
    /// The offset of its first batch.
    pub offset: u64,
    /// When.
    pub at: i64,
}

/// The rules' part of a store.
pub trait Registry {
    /// Keeps a component. One that is there stays as it is; says whether it is new.
    fn put_rules<'a>(&'a self, record: &'a RulesRecord, bytes: &'a [u8]) -> Pending<'a, bool>;

    /// A component with its bytes.
    fn rules(&self, digest: Digest) -> Pending<'_, Option<(RulesRecord, Vec<u8>)>>;

    /// A machine's components, or all, the newest first.
    fn list_rules<'a>(&'a self, machine: Option<&'a str>, page: &'a Page) -> Pending<'a, Listing<RulesRecord>>;

    /// Puts a registered component of this machine in force, and gives the activation's number: no decision under an
    /// earlier number commits afterwards (G9).
    fn activate<'a>(
        &'a self,
        machine: &'a str,
        digest: Digest,
        actor: &'a str,
        reason: &'a str,
        at: i64,
    ) -> Pending<'a, u64>;

    /// What is in force.
    fn active<'a>(&'a self, machine: &'a str) -> Pending<'a, Option<(u64, Digest)>>;

    /// What was ever in force, the newest first.
    fn activations<'a>(&'a self, machine: &'a str) -> Pending<'a, Vec<Activation>>;

    /// Where partitions switched to a machine's activations.
    fn switches<'a>(&'a self, machine: &'a str) -> Pending<'a, Vec<Switch>>;
}
