//! The life of one entity of a versioned machine, in the order of its versions: what its producer says, and what must
//! become of each event.

use seqgate_decide::verdict::Verdict;

use super::event::{BEGIN, Event};
use super::truth::{Address, End};

/// Members of a payload.
pub type Data = Vec<(&'static str, String)>;

/// An event, and the verdict that its first delivery must have in the end.
#[derive(Clone, Debug)]
pub struct Step {
    /// The event.
    pub event: Event,
    /// Its verdict.
    pub verdict: Verdict,
}

/// A life as it is being written. Versions are consecutive; once the story has stopped, whatever follows waits.
#[derive(Clone, Debug)]
pub struct Story {
    machine: &'static str,
    key: String,
    time: i64,
    /// The last version that the producer gave.
    given: u64,
    /// What the next event says of itself.
    intent: Option<String>,
    depends_on: Option<String>,
    previous: Option<u64>,
    /// No later event can be decided.
    stopped: bool,
    /// What is delivered.
    pub steps: Vec<Step>,
    /// Left out by the producer, and sent late all the same.
    pub passed_over: Vec<Event>,
    /// Where the entity must stand.
    pub end: End,
    /// Messages that it must have sent, by type.
    pub outbox: Vec<&'static str>,
}

impl Story {
    /// A story that begins with version 1, `begin` seconds into the stream's time.
    pub fn new(machine: &'static str, key: String, begin: i64) -> Self {
        Self {
            machine,
            key,
            time: BEGIN + begin,
            given: 0,
            intent: None,
            depends_on: None,
            previous: None,
            stopped: false,
            steps: Vec::new(),
            passed_over: Vec::new(),
            end: End::default(),
            outbox: Vec::new(),
        }
    }

    /// The entity.
    pub fn address(&self) -> Address {
        (self.machine, self.key.clone())
    }

    /// The id of the last event.
    pub fn last_id(&self) -> String {
        self.steps.last().map(|step| step.event.id.clone()).unwrap_or_default()
    }

    /// Whether whatever follows waits.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// The next event carries this intent.
    pub fn intending(&mut self, intent: String) -> &mut Self {
        self.intent = Some(intent);
        self
    }

    /// The next event depends on this.
    pub fn depending(&mut self, names: String) -> &mut Self {
        self.depends_on = Some(names);
        self
    }

    /// The producer filters an event out; the next one says what it follows. The one that was left out comes late.
    pub fn filtered(&mut self, kind: &'static str) -> &mut Self {
        self.previous.get_or_insert(self.given);
        let previous = self.previous.take();
        let event = self.write(kind, Vec::new());
        self.passed_over.push(event);
        self.previous = previous;
        self
    }

    /// An event that takes effect and leads to `state`; behind a stop it waits.
    pub fn apply(&mut self, kind: &'static str, data: Data, state: &'static str) {
        if self.consume(kind, data, Verdict::Applied) {
            self.end.state = Some(state);
        }
    }

    /// A message that the last event sends.
    pub fn sends(&mut self, kind: &'static str) {
        if !self.stopped {
            self.outbox.push(kind);
        }
    }

    /// An event whose type is ignored by configuration: its version is consumed, and nothing changes.
    pub fn ignored(&mut self, kind: &'static str, data: Data) {
        self.consume(kind, data, Verdict::Skipped);
    }

    /// The last event's intent again, as a new event with a version of its own: carried out once.
    pub fn intent_again(&mut self) {
        let Some(last) = self.steps.last().map(|step| step.event.clone()) else { return };
        self.intent = last.intent;
        self.consume(last.kind, last.data, Verdict::Duplicate);
    }

    /// An event that the rules refuse: it is parked, and what follows waits for a person.
    pub fn refused(&mut self, kind: &'static str, data: Data, verdict: Verdict) {
        let verdict = if self.stopped { Verdict::Deferred } else { verdict };
        self.end.blocked |= !self.stopped;
        self.end.waiting += u64::from(self.stopped);
        self.stopped = true;
        let event = self.write(kind, data);
        self.steps.push(Step { event, verdict });
    }

    /// An event that the rules refuse and compensate: its version is consumed.
    pub fn compensated(&mut self, kind: &'static str, data: Data) {
        self.consume(kind, data, Verdict::Illegal);
    }

    /// An event that depends on what never happens.
    pub fn never_met(&mut self, kind: &'static str, data: Data, names: String) {
        self.depends_on = Some(names);
        self.stopped = true;
        self.consume(kind, data, Verdict::Deferred);
    }

    /// An event that is lost on its way: a gap that stays.
    pub fn lost(&mut self, kind: &'static str) {
        self.write(kind, Vec::new());
        self.stopped = true;
    }

    fn consume(&mut self, kind: &'static str, data: Data, verdict: Verdict) -> bool {
        let event = self.write(kind, data);
        let verdict = if self.stopped { Verdict::Deferred } else { verdict };
        if self.stopped {
            self.end.waiting += 1;
        } else {
            self.end.version = event.version;
            self.end.revision += 1;
        }
        self.steps.push(Step { event, verdict });
        !self.stopped
    }

    fn write(&mut self, kind: &'static str, data: Data) -> Event {
        self.given += 1;
        self.time += 60;
        Event {
            machine: self.machine,
            key: self.key.clone(),
            id: format!("{}.v{}", self.key, self.given),
            kind,
            version: self.given,
            previous: self.previous.take(),
            time: self.time,
            intent: self.intent.take(),
            depends_on: self.depends_on.take(),
            data,
        }
    }
}
