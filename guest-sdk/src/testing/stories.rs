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
