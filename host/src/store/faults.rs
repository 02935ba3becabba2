//! Where tests stop a transaction, or the process.

use std::fmt;
use std::sync::Arc;

/// A point in a commit's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    /// Nothing was sent to the database.
    BeforeBegin,
    /// The fence and some rows are written.
    MidWrite,
    /// All rows are written.
    BeforeCommit,
    /// The database has committed; the caller does not know it yet.
    AfterCommit,
}

impl Point {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [Self::BeforeBegin, Self::MidWrite, Self::BeforeCommit, Self::AfterCommit];

    /// Its name, as tests give it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforeBegin => "before-begin",
            Self::MidWrite => "mid-write",
            Self::BeforeCommit => "before-commit",
            Self::AfterCommit => "after-commit",
        }
    }

    /// The point of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }
}

type Hook = dyn Fn(Point) -> bool + Send + Sync;

/// Is called at each [`Point`] of whatever writes. It may end the process; where it answers `true`, the store acts as if the
/// connection had broken there: an I/O error before COMMIT is sent, an unknown outcome from then on.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Hook>>);

impl Faults {
    /// Nothing fails.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Fails as `hook` says.
    pub fn new(hook: impl Fn(Point) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(super) fn at(&self, point: Point) -> bool {
        self.0.as_ref().is_some_and(|hook| hook(point))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Faults(hook)" } else { "Faults(none)" })
    }
}
