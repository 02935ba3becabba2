//! What to measure.

use clap::Args;

/// How to measure.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Partitions of the source
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub partitions: u32,
    /// The most events of one transaction
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub batch: u32,
    /// Measure so often, and take the medians
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    pub repeat: u32,
    /// How long events arrive by the clock, for the latencies; 0 leaves them out
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub latency_seconds: u32,
    /// A tenth of the events and of the time: a look, no figure to quote
    #[arg(long)]
    pub quick: bool,
    /// Leave the baselines out
    #[arg(long)]
    pub engine_only: bool,
    /// Where to make the throw-away folder (default: among the system's temporary files)
    #[arg(long, value_name = "DIR")]
    pub dir: Option<std::path::PathBuf>,
    /// Leave the folder
    #[arg(long)]
    pub keep: bool,
}

impl Options {
    /// With `quick` worked in.
    pub(crate) fn settled(mut self) -> Self {
        if self.quick {
            self.latency_seconds /= 10;
        }
        self
    }
}

/// The orders workload; the defaults are what figures are quoted with.
#[derive(Args, Clone, Debug)]
pub struct Orders {
    /// Different events
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub events: usize,
    /// Orders that they are about
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub entities: usize,
    /// Bytes of each payload
    #[arg(long, value_name = "BYTES", default_value_t = 300)]
    pub payload: usize,
    /// What the stream is made from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Default for Orders {
    fn default() -> Self {
        Self { events: 200_000, entities: 50_000, payload: 300, seed: 1 }
    }
}
