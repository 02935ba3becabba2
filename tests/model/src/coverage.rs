//! What the histories reached, and what they did not.

use std::collections::BTreeMap;
use std::fmt;

/// How often each thing that the rules tell apart occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(String, String), u64>);

/// Everything that can occur, by group. What an ordering excludes is not listed.
const ALL: &[(&str, &[&str])] = &[
    ("verdict", &["applied", "duplicate", "stale", "conflict", "deferred", "illegal", "malformed", "fault", "skipped"]),
    ("step", &["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "erased"]),
    (
        "versioned",
        &[
            "applied",
            "duplicate",
            "stale",
            "conflict",
            "illegal",
            "malformed",
            "fault",
            "skipped",
            "deferred (gap)",
            "deferred (dependency)",
            "deferred (waiting)",
            "deferred (blocked)",
            "deferred (schema)",
        ],
    ),
    (
        "causal",
        &[
            "applied",
            "duplicate",
            "conflict",
            "illegal",
            "malformed",
            "fault",
            "skipped",
            "deferred (dependency)",
            "deferred (waiting)",
            "deferred (early)",
            "deferred (blocked)",
            "deferred (schema)",
        ],
    ),
    (
        "snapshot",
        &[
            "applied",
            "duplicate",
            "stale",
            "conflict",
            "illegal",
            "malformed",
            "fault",
            "skipped",
            "deferred (dependency)",
            "deferred (waiting)",
            "deferred (schema)",
        ],
    ),
    (
        "arrival",
        &[
            "applied",
            "duplicate",
            "conflict",
            "illegal",
            "malformed",
            "fault",
            "skipped",
            "deferred (dependency)",
            "deferred (waiting)",
            "deferred (early)",
            "deferred (blocked)",
            "deferred (schema)",
        ],
    ),
    ("conflict", &["id", "version", "waiting", "fork", "intent"]),
    ("passed over", &["stale", "conflict", "duplicate"]),
    ("early", &["deadline"]),
    (
        "policy",
        &[
            "illegal park",
            "illegal skip",
            "illegal compensate",
            "malformed park",
            "malformed skip",
            "malformed compensate",
            "fault park",
            "fault skip",
            "fault compensate",
        ],
    ),
    ("letter", &["open", "skipped", "compensated", "redriven", "replaced", "superseded", "migration"]),
    (
        "input",
        &[
            "deliver",
            "deliver below the offset",
            "repair",
            "ready",
            "release",
            "deadline",
            "migrate",
            "import",
            "import refused",
            "migration before an event",
            "rules",
        ],
    ),
    ("timer", &["fired", "not now", "ignored", "fault"]),
    (
        "person",
        &[
            "erase done",
            "erase refused",
            "redrive done",
            "redrive refused",
            "skip done",
            "skip refused",
            "compensate done",
            "compensate refused",
            "replace done",
            "replace refused",
            "dismiss deferred done",
            "dismiss deferred refused",
            "dismiss conflict done",
            "dismiss conflict refused",
            "dismiss conflict consumes",
        ],
    ),
];

impl Coverage {
    /// Counts one occurrence.
    pub(crate) fn hit(&mut self, group: &str, what: &str) {
        *self.0.entry((group.to_owned(), what.to_owned())).or_default() += 1;
    }

    /// Adds another history's counts.
    pub fn merge(&mut self, other: &Coverage) {
        for (key, count) in &other.0 {
            *self.0.entry(key.clone()).or_default() += count;
        }
    }

    /// How often that occurred.
    pub fn count(&self, group: &str, what: &str) -> u64 {
        self.0.get(&(group.to_owned(), what.to_owned())).copied().unwrap_or(0)
    }

    /// What never occurred, as `group: what`; empty where everything did.
    pub fn missing(&self) -> Vec<String> {
        let all = ALL.iter().flat_map(|(group, whats)| whats.iter().map(move |what| (*group, *what)));
        all.filter(|(group, what)| self.count(group, what) == 0).map(|(g, w)| format!("{g}: {w}")).collect()
    }

    /// Counts that the table of what can occur does not list: a hole in that table.
    pub fn unlisted(&self) -> Vec<String> {
        let listed = |g: &str, w: &str| ALL.iter().any(|(group, whats)| *group == g && whats.contains(&w));
        self.0.keys().filter(|(g, w)| !listed(g, w)).map(|(g, w)| format!("{g}: {w}")).collect()
    }
}

/// A table: a group a paragraph, a line each.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (group, whats) in ALL {
            writeln!(f, "{group}")?;
            for what in *whats {
                writeln!(f, "  {:>9}  {what}", self.count(group, what))?;
            }
        }
        Ok(())
    }
}
