//! `reach SEEDS [SIZE]`: what that many seeds reach, as a table; what they do not, by name.

use seqgate_model::{Coverage, History, replay};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let seeds = arguments.next().unwrap_or(500);
    let size = arguments.next();
    let mut all = Coverage::default();
    for seed in 0..seeds {
        let size = size.unwrap_or(10 + seed % 51);
        let (history, acts) = History::generate_recorded(seed, usize::try_from(size).expect("a small size"));
        let replayed = replay(&history, &acts);
        assert!(replayed.complaints.is_empty(), "seed {seed}: {:?}", replayed.complaints);
        all.merge(&replayed.coverage);
    }
    print!("{all}");
    println!("never: {:?}", all.missing());
}
