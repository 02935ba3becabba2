//! Sensors, under snapshot ordering: the highest version counts, gaps do not matter, and what is parked holds nobody.
//!
//! What becomes of a report depends on the order of delivery, so that a sensor's life is written in that order.

use rand::RngExt as _;
use rand::rngs::StdRng;
use seqgate_decide::verdict::Verdict;

use super::delivery::named;
use super::event::{BEGIN, Event};
use super::story::Data;
use super::truth::{End, Life, Line};

/// A sensor's life as it is being written.
pub struct Sensor {
    key: String,
    end: End,
    lines: Vec<Line>,
    /// The last event that was consumed.
    last: Option<Event>,
    /// The parked event, and its line. A higher one supersedes it, so there is at most one.
    parked: Option<(Event, usize)>,
    /// Versions that were never sent, below the highest.
    holes: Vec<u64>,
    highest: u64,
}

impl Sensor {
    /// A sensor that nothing is known of.
    pub fn new(key: String) -> Self {
        let (end, lines) = (End::default(), Vec::new());
        Self { key, end, lines, last: None, parked: None, holes: Vec::new(), highest: 0 }
    }

    /// What became of it.
    pub fn life(mut self) -> Life {
        self.end.blocked = self.parked.is_some();
        Life { lines: self.lines, entity: Some((("sensors", self.key), self.end)), outbox: Vec::new() }
    }

    /// The id of the event at a version.
    pub fn id(&self, version: u64) -> String {
        format!("{}.v{version}", self.key)
    }

    /// A report above everything that was seen, with `gap` versions in between that were not sent.
    pub fn report(&mut self, gap: u64, millis: i64) {
        let event = self.next(gap, "sensor.reported", vec![("celsius", millis.to_string())]);
        self.consume(event, Verdict::Applied);
        self.end.state = Some("online");
        self.end.figure = Some(("celsius", millis.to_string()));
    }

    /// Nothing was heard of it.
    pub fn lose(&mut self, gap: u64) {
        let event = self.next(gap, "sensor.lost", Vec::new());
        self.consume(event, Verdict::Applied);
        self.end.state = Some("offline");
    }

    /// Of a type that is ignored: its version counts all the same.
    pub fn ping(&mut self, gap: u64) {
        let event = self.next(gap, "sensor.pinged", Vec::new());
        self.consume(event, Verdict::Skipped);
    }

    /// A report on which the rules divide by zero.
    pub fn divide_by_zero(&mut self, gap: u64) {
        let data = vec![("celsius", "21000".to_owned()), ("calibration", "0".to_owned())];
        self.park(gap, "sensor.reported", data, Verdict::Fault);
    }

    /// A report whose number is none.
    pub fn mumble(&mut self, gap: u64) {
        self.park(gap, "sensor.reported", vec![("celsius", "\"warm\"".to_owned())], Verdict::Malformed);
    }

    /// A type that the rules do not know.
    pub fn explode(&mut self, gap: u64) {
        self.park(gap, "sensor.exploded", Vec::new(), Verdict::Illegal);
    }

    /// A report from before what is known: it says nothing any more. Gives its version, where there is one to be late.
    pub fn late(&mut self) -> Option<u64> {
        let at = self.holes.iter().position(|version| *version < self.end.version)?;
        let version = self.holes.remove(at);
        let event = self.event(version, "sensor.reported", vec![("celsius", "1".to_owned())]);
        self.push(&event.line(), Verdict::Stale);
        Some(version)
    }

    /// The last event once more, under its own id or under another one.
    pub fn repeat(&mut self, other_id: bool) {
        let Some(event) = self.latest() else { return };
        let event = if other_id { named(&event, &format!("again{}", self.lines.len())) } else { event };
        self.push(&event.line(), Verdict::Duplicate);
    }

    /// Something else at the version of the last event, under its own id or another one.
    pub fn contradict(&mut self, other_id: bool) {
        let Some(event) = self.latest() else { return };
        let suffix = format!("rival{}", self.lines.len());
        let mut event = if other_id { named(&event, &suffix) } else { event };
        // Each contradiction is another one; an exact copy would be a duplicate.
        event.data.push(("attempt", self.lines.len().to_string()));
        self.push(&event.line(), Verdict::Conflict);
    }

    /// The parked event where there is one, which is always above the one that was consumed last.
    fn latest(&self) -> Option<Event> {
        self.parked.as_ref().map(|(event, _)| event).or(self.last.as_ref()).cloned()
    }

    fn next(&mut self, gap: u64, kind: &'static str, data: Data) -> Event {
        self.holes.extend((1..=gap).map(|n| self.highest + n));
        self.highest += gap + 1;
        self.event(self.highest, kind, data)
    }

    fn event(&self, version: u64, kind: &'static str, data: Data) -> Event {
        let time = BEGIN + i64::try_from(version).unwrap_or_default() * 30;
        let (key, id) = (self.key.clone(), self.id(version));
        let (previous, intent, depends_on) = (None, None, None);
        Event { machine: "sensors", key, id, kind, version, previous, time, intent, depends_on, data }
    }

    fn consume(&mut self, event: Event, verdict: Verdict) {
        self.supersede();
        self.push(&event.line(), verdict);
        self.end.version = event.version;
        self.end.revision += 1;
        self.last = Some(event);
    }

    fn park(&mut self, gap: u64, kind: &'static str, data: Data, verdict: Verdict) {
        let event = self.next(gap, kind, data);
        self.supersede();
        self.push(&event.line(), verdict);
        self.parked = Some((event, self.lines.len() - 1));
    }

    fn supersede(&mut self) {
        if let Some((_, line)) = self.parked.take() {
            self.lines[line].verdict = Verdict::Skipped;
        }
    }

    fn push(&mut self, text: &str, verdict: Verdict) {
        self.lines.push(Line { text: text.to_owned(), verdict });
    }
}

/// A sensor's life.
pub fn sensor(key: String, rng: &mut StdRng) -> Life {
    let mut sensor = Sensor::new(key);
    for _ in 0..rng.random_range(3..16) {
        let gap = if rng.random_bool(0.3) { rng.random_range(1..4) } else { 0 };
        match rng.random_range(0..100) {
            0..60 => sensor.report(gap, rng.random_range(-40_000..60_000)),
            60..66 => sensor.lose(gap),
            66..72 => sensor.ping(gap),
            72..74 => sensor.divide_by_zero(gap),
            74..75 => sensor.mumble(gap),
            75..76 => sensor.explode(gap),
            76..84 => drop(sensor.late()),
            84..92 => sensor.repeat(false),
            92..98 => sensor.repeat(true),
            _ => sensor.contradict(rng.random_bool(0.5)),
        }
    }
    sensor.life()
}
