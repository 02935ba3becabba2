//! The rules that this process has loaded, by digest.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use seqgate_decide::ids::Digest;

use super::load::LoadedRules;

/// All loaded rules at one moment.
pub type Snapshot = Arc<HashMap<Digest, Arc<LoadedRules>>>;

/// Loaded rules. A change replaces one [`Snapshot`] by another: whoever holds rules, or a snapshot, keeps them for as
/// long as it wants, and a reader never waits for a load.
#[derive(Debug, Default)]
pub struct Registry {
    current: RwLock<Snapshot>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rules of a digest, where they are loaded.
    pub fn get(&self, digest: Digest) -> Option<Arc<LoadedRules>> {
        self.snapshot().get(&digest).cloned()
    }

    /// All that is loaded now.
    pub fn snapshot(&self) -> Snapshot {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds rules, or replaces those of the same digest (with other limits), and gives back what was there.
    pub fn insert(&self, rules: Arc<LoadedRules>) -> Option<Arc<LoadedRules>> {
        self.change(|map| map.insert(rules.digest(), rules))
    }

    /// Forgets rules. Work in flight goes on with its own.
    pub fn remove(&self, digest: Digest) -> Option<Arc<LoadedRules>> {
        self.change(|map| map.remove(&digest))
    }

    // A panic between two snapshots leaves the old one whole, so a poisoned lock means nothing here.
    fn change<T>(&self, change: impl FnOnce(&mut HashMap<Digest, Arc<LoadedRules>>) -> T) -> T {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = HashMap::clone(&current);
        let result = change(&mut next);
        *current = Arc::new(next);
        result
    }
}
