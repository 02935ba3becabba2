//! What a person sees while `run` works: a line on the terminal, and nothing anywhere else.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::config::{Config, SourceConfig};
use crate::runner::{Act, Observer};

/// A line that follows what is committed.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts it where standard error is a terminal. `whole`: the run ends with the files.
    pub fn start(config: &Config, whole: bool, json: bool) -> Option<Self> {
        if json || !std::io::stderr().is_terminal() {
            return None;
        }
        let bytes = config.sources.iter().map(length).sum::<Option<u64>>().filter(|_| whole);
        let (bar, template) = match bytes {
            Some(bytes) => (ProgressBar::new(bytes), "{bar:30} {percent:>3} %  {msg}"),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}"),
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Some(Self { bar })
    }

    /// What the engine tells of its commits.
    pub fn observer(&self) -> Arc<Observer> {
        let bar = self.bar.clone();
        let (received, furthest) = (AtomicU64::new(0), Mutex::new(BTreeMap::<Arc<str>, u64>::new()));
        Arc::new(Observer::new(move |acts: &[Act]| {
            let mut new = 0;
            let mut furthest = furthest.lock().unwrap_or_else(PoisonError::into_inner);
            for act in acts {
                if let Act::Delivered(position) = act {
                    new += 1;
                    let at = furthest.entry(position.source.clone()).or_default();
                    *at = position.offset.max(*at);
                }
            }
            let received = received.fetch_add(new, Ordering::Relaxed) + new;
            bar.set_position(furthest.values().sum());
            let seconds = bar.elapsed().as_secs_f64().max(0.001);
            bar.set_message(format!("{received} events, {:.0}/s", received as f64 / seconds));
        }))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The length of a source that ends.
fn length(source: &SourceConfig) -> Option<u64> {
    let SourceConfig::Jsonl(jsonl) = source else { return None };
    std::fs::metadata(jsonl.path.as_ref()?).ok().map(|file| file.len())
}
