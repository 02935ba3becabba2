//! A crate's scenario files as one test.

use std::path::Path;

use crate::machine::Machine;
use crate::testing::Native;

/// Tells every story in a folder.
///
/// # Panics
/// Where a story cannot be read or does not hold, and where no story takes a declared edge; the text names them all.
pub fn tell_all<M: Machine>(folder: &str) {
    let stories = match seqgate_scenario::load(Path::new(folder)) {
        Ok(stories) => stories,
        Err(error) => panic!("{error}"),
    };
    let report = seqgate_scenario::run(&mut Native::<M>::new(), &stories);
    assert!(report.is_ok() && report.untaken.is_empty(), "\n{report}\n");
}

/// Makes a test of the crate's `scenarios/` folder: every story holds, and every declared edge is taken by one.
#[macro_export]
macro_rules! scenario_tests {
    ($machine:ty) => {
        #[cfg(test)]
        #[test]
        fn scenarios() {
            $crate::testing::tell_all::<$machine>(::core::concat!(
                ::core::env!("CARGO_MANIFEST_DIR"),
                "/scenarios"
            ));
        }
    };
}
