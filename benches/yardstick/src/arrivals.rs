//! Latency under load: events arrive by the clock, whether or not the program keeps up.
//!
//! Each delivery has a time at which it is appended to the source. Its latency is counted from that time to the moment at
//! which its partition's offset is seen to have passed it, in the store, from outside. A program that falls behind makes
//! every later event late, and that counts.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::lines::Delivery;
use crate::program::Program;
use crate::store::Yardstick;

/// How often the offsets are looked at; latencies are up to this much too long.
const LOOK: Duration = Duration::from_millis(1);
/// How long the program may take to start, and to end what has arrived.
const PATIENCE: Duration = Duration::from_secs(60);

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latencies {
    /// Half of the events are decided within this time.
    pub p50: f64,
    /// 99 of 100 are.
    pub p99: f64,
    /// All are.
    pub max: f64,
    /// Arrivals for each second.
    pub rate: f64,
}

/// Lets `deliveries` of the file `lines` arrive at the source `to`, at this rate.
///
/// # Errors
/// The program ends, or does not come to the end.
pub fn measure(
    program: &Program,
    config: &Path,
    store: &dyn Yardstick,
    (lines, deliveries): (&Path, &[Delivery]),
    to: &Path,
    rate: f64,
) -> anyhow::Result<Latencies> {
    let bytes = std::fs::read(lines)?;
    // A file's identity is the digest of its beginning; it begins with a line that is there from the start.
    let mut source = File::create(to)?;
    let mut running = program.start(config, &["--json", "run"])?;
    let begun = Instant::now();
    let partitions = deliveries.iter().map(|d| d.partition).max().map_or(0, |p| p as usize + 1);
    let mut watch = loop {
        anyhow::ensure!(running.look() && begun.elapsed() < PATIENCE, "the program does not start");
        match store.watch().and_then(|mut watch| Ok((watch.offsets()?, watch))) {
            Ok((offsets, watch)) if offsets.len() >= partitions => break watch,
            _ => std::thread::sleep(LOOK * 10),
        }
    };
    std::thread::sleep(Duration::from_millis(500));
    let scheduled = |n: usize| Duration::from_secs_f64(n as f64 / rate);
    let (begun, mut written) = (Instant::now(), 0);
    let mut queues: Vec<std::collections::VecDeque<usize>> = vec![Default::default(); partitions];
    let mut latencies = Vec::with_capacity(deliveries.len());
    while latencies.len() < deliveries.len() {
        let now = begun.elapsed();
        let from = written;
        while written < deliveries.len() && scheduled(written) <= now {
            queues[deliveries[written].partition as usize].push_back(written);
            written += 1;
        }
        if from < written {
            source.write_all(&bytes[deliveries[from].offset as usize..deliveries[written - 1].next as usize])?;
        }
        let offsets = watch.offsets()?;
        let now = begun.elapsed();
        for (partition, offset) in offsets {
            let Some(queue) = queues.get_mut(partition as usize) else { continue };
            while let Some(n) = queue.pop_front_if(|n| deliveries[*n].next <= offset) {
                latencies.push(now.saturating_sub(scheduled(n)));
            }
        }
        if written % 64 == 0 || from == written {
            anyhow::ensure!(running.look(), "the program ended before the last event");
        }
        anyhow::ensure!(now < scheduled(deliveries.len()) + PATIENCE, "the program does not keep up");
        std::thread::sleep(LOOK);
    }
    running.terminate()?;
    running.finish()?;
    latencies.sort_unstable();
    let at = |part: f64| latencies.get(((latencies.len() - 1) as f64 * part) as usize).context("no event arrived");
    let millis = |d: &Duration| d.as_secs_f64() * 1e3;
    Ok(Latencies { p50: millis(at(0.5)?), p99: millis(at(0.99)?), max: millis(at(1.0)?), rate })
}
