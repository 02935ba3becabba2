//! The figures.

use std::time::Duration;

use serde::Serialize;

use crate::arrivals::Latencies;
use crate::store::TableSize;

/// One measurement of all three, in the same minute.
#[derive(Clone, Debug)]
pub struct Round {
    /// The program, from its first read to its last commit.
    pub engine: Duration,
    /// Its transactions.
    pub batches: u64,
    /// User and system time of its whole process, start included.
    pub cpu: Duration,
    /// The most resident memory of its process, in bytes.
    pub peak_rss: u64,
    /// The consumer that takes one event at a time.
    pub per_event: Option<Duration>,
    /// The bulk limit.
    pub bulk: Option<Duration>,
}

/// What is reported. Rates count different events, not deliveries.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The store's kind.
    pub store: String,
    /// The source's kind.
    pub source: String,
    /// Different events.
    pub events: u64,
    /// Deliveries: events and their copies.
    pub deliveries: u64,
    /// Entities.
    pub entities: u64,
    /// Partitions.
    pub partitions: u32,
    /// The most events of one transaction.
    pub batch: u32,
    /// Measured so often; all figures are medians.
    pub rounds: usize,
    /// Of the program.
    pub events_per_s: f64,
    /// Of the consumer that takes one event at a time.
    pub per_event_events_per_s: Option<f64>,
    /// Of the bulk limit.
    pub bulk_events_per_s: Option<f64>,
    /// The program against the first, in the same round.
    pub ratio_per_event: Option<f64>,
    /// The program against the second, in the same round.
    pub ratio_bulk: Option<f64>,
    /// User and system time for each event.
    pub cpu_us_per_event: f64,
    /// Transactions of the program.
    pub batches: u64,
    /// Half of the arrivals were decided within this time.
    pub p50_ms: Option<f64>,
    /// 99 of 100 were.
    pub p99_ms: Option<f64>,
    /// All were.
    pub max_ms: Option<f64>,
    /// Arrivals for each second when the latencies were taken.
    pub arrivals_per_s: Option<f64>,
    /// The program's most resident memory.
    pub peak_rss_mib: f64,
    /// What the database takes, for each event.
    pub bytes_per_event: f64,
    /// What every table holds; the baselines' tables hold the same.
    pub tables: Vec<Held>,
}

/// What a table holds.
#[derive(Clone, Debug, Serialize)]
pub struct Held {
    /// Its name.
    pub table: String,
    /// How many rows.
    pub rows: u64,
    /// The bytes of all their values.
    pub bytes: u64,
}

impl From<TableSize> for Held {
    fn from(size: TableSize) -> Self {
        Self { table: size.name, rows: size.rows, bytes: size.bytes }
    }
}

/// The middle one.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

/// Two digits behind the point.
pub fn rounded(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

impl Report {
    /// Takes the rounds' medians in.
    pub fn take(&mut self, rounds: &[Round], latencies: Option<Latencies>) {
        let events = self.events as f64;
        let rate = |d: Duration| (events / d.as_secs_f64().max(1e-6)).round();
        let ratio = |r: &Round, other: Duration| other.as_secs_f64() / r.engine.as_secs_f64().max(1e-6);
        self.rounds = rounds.len();
        self.events_per_s = median(rounds.iter().map(|r| rate(r.engine))).unwrap_or_default();
        self.per_event_events_per_s = median(rounds.iter().filter_map(|r| r.per_event.map(rate)));
        self.bulk_events_per_s = median(rounds.iter().filter_map(|r| r.bulk.map(rate)));
        self.ratio_per_event = median(rounds.iter().filter_map(|r| Some(ratio(r, r.per_event?)))).map(rounded);
        self.ratio_bulk = median(rounds.iter().filter_map(|r| Some(ratio(r, r.bulk?)))).map(rounded);
        let cpu = median(rounds.iter().map(|r| r.cpu.as_secs_f64() * 1e6 / events));
        self.cpu_us_per_event = rounded(cpu.unwrap_or_default());
        self.batches = median(rounds.iter().map(|r| r.batches as f64)).unwrap_or_default() as u64;
        let rss = rounds.iter().map(|r| r.peak_rss).max().unwrap_or_default();
        self.peak_rss_mib = rounded(rss as f64 / f64::from(1 << 20));
        self.p50_ms = latencies.map(|l| rounded(l.p50));
        self.p99_ms = latencies.map(|l| rounded(l.p99));
        self.max_ms = latencies.map(|l| rounded(l.max));
        self.arrivals_per_s = latencies.map(|l| l.rate.round());
    }

    /// For people.
    pub fn text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!(
            "{} events ({} deliveries) of {} entities, {} partitions, batches of {}, {} → {}\n\n",
            self.events, self.deliveries, self.entities, self.partitions, self.batch, self.source, self.store
        );
        let mut row = |name: &str, figure: String| {
            let _ = writeln!(text, "  {name:<34} {figure}");
        };
        row("Seqgate", format!("{:.0} events/s", self.events_per_s));
        if let (Some(rate), Some(ratio)) = (self.per_event_events_per_s, self.ratio_per_event) {
            row("one transaction for each event", format!("{rate:.0} events/s; Seqgate is {ratio:.2} times as fast"));
        }
        if let (Some(rate), Some(ratio)) = (self.bulk_events_per_s, self.ratio_bulk) {
            row("bulk statements without logic", format!("{rate:.0} events/s; Seqgate reaches {ratio:.2} of it"));
        }
        row("processor time", format!("{:.1} µs/event", self.cpu_us_per_event));
        row("memory at most", format!("{:.0} MiB", self.peak_rss_mib));
        row("database", format!("{:.0} bytes/event", self.bytes_per_event));
        if let (Some(p50), Some(p99), Some(max), Some(rate)) =
            (self.p50_ms, self.p99_ms, self.max_ms, self.arrivals_per_s)
        {
            row("latency", format!("p50 {p50:.1} ms, p99 {p99:.1} ms, max {max:.0} ms at {rate:.0} arrivals/s"));
        }
        text
    }
}
