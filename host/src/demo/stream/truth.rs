//! What a stream is meant to do: written down while it is made, never computed by the engine.

use std::collections::BTreeMap;

use seqgate_decide::verdict::Verdict;

/// An entity: its machine and its key.
pub type Address = (&'static str, String);

/// What the whole stream must come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Truth {
    /// Every entity that the store must know in the end, and no other.
    pub entities: BTreeMap<Address, End>,
    /// Deliveries by the verdict that they must have in the end.
    pub verdicts: BTreeMap<Verdict, u64>,
    /// Messages by type.
    pub outbox: BTreeMap<&'static str, u64>,
}

/// Where an entity must stand in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Its state; `None` where its first event never came.
    pub state: Option<&'static str>,
    /// The last version that it consumed.
    pub version: u64,
    /// How many changes the host made to it.
    pub revision: u64,
    /// Whether a parked event holds it.
    pub blocked: bool,
    /// How many of its events wait.
    pub waiting: u64,
    /// A member of its data, and the exact JSON text of its value.
    pub figure: Option<(&'static str, String)>,
}

/// One delivery.
#[derive(Clone, Debug)]
pub struct Line {
    /// The event as it is delivered, without a newline.
    pub text: String,
    /// The verdict that this delivery must have in the end.
    pub verdict: Verdict,
}

/// The deliveries that concern one entity, in their order, and what they come to. Lives can be mixed in any way.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// The deliveries.
    pub lines: Vec<Line>,
    /// The entity; `None` for lines that name none.
    pub entity: Option<(Address, End)>,
    /// The types of the messages that it sends.
    pub outbox: Vec<&'static str>,
}

/// A delivery that shows a verdict well.
#[derive(Clone, Debug)]
pub struct Example {
    /// The verdict.
    pub verdict: Verdict,
    /// The event's id.
    pub id: String,
    /// What happened to it, as the rest of a sentence that begins with the id.
    pub text: String,
    /// Whether the engine's own words for its refusal go behind the sentence.
    pub cite: bool,
}

impl Truth {
    /// Takes in what a life must come to.
    pub fn add(&mut self, life: &Life) {
        for line in &life.lines {
            *self.verdicts.entry(line.verdict).or_default() += 1;
        }
        for kind in &life.outbox {
            *self.outbox.entry(kind).or_default() += 1;
        }
        // Of an entity whose events are all lost, nobody can know.
        if !life.lines.is_empty() {
            self.entities.extend(life.entity.clone());
        }
    }
}
