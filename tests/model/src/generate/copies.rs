//! What comes again, the same or not.

use rand::RngExt;
use rand::seq::IndexedRandom;

use super::World;
use super::line::{self, Body, Draft};
use crate::{Meaning, Ordering, Step, Value};

impl World {
    /// Something that came before comes again: the same, written anew, or with something changed.
    pub(super) fn deliver_copy(&mut self) {
        let Some((at, draft)) = self.sent.choose(&mut self.rng).cloned() else {
            return self.deliver_pending();
        };
        match self.rng.random_range(0..20) {
            0..4 => self.repeat(at, draft),
            4..7 => {
                let body = line::reserialised(&mut self.rng, &draft.body);
                self.once_more(at, Draft { body, ..draft });
            }
            7..10 => {
                let body = line::reserialised(&mut self.rng, &draft.body);
                let draft = self.renamed(Draft { body, ..draft });
                self.once_more(at, draft);
            }
            10..12 => {
                let draft = self.altered(at, draft);
                self.once_more(at, draft);
            }
            12..14 => {
                let draft = self.altered(at, draft);
                let draft = self.renamed(draft);
                self.deliver(at, draft);
            }
            14..16 => self.fork(at, draft),
            16..18 => self.same_intent(at, draft),
            _ => self.other_intent(at),
        }
    }

    /// Exactly the same bytes, where such a line was delivered.
    fn repeat(&mut self, at: usize, draft: Draft) {
        let id = draft.event.event_id();
        let same = self.history.steps.iter().rev().find_map(|step| match step {
            Step::Deliver(d) => match &d.meaning {
                Meaning::Event(event) if event.event_id() == id => Some((d.bytes.clone(), event.clone())),
                _ => None,
            },
            _ => None,
        });
        match same {
            Some((bytes, event)) => self.arrive(at, bytes, Meaning::Event(event)),
            None => self.deliver(at, draft),
        }
    }

    /// Delivers a variant without making it a model for more.
    fn once_more(&mut self, at: usize, draft: Draft) {
        let (bytes, event) = line::write(&mut self.rng, &draft);
        self.arrive(at, bytes, Meaning::Event(Box::new(event)));
    }

    fn renamed(&mut self, mut draft: Draft) -> Draft {
        draft.event.id = self.new_id();
        if self.rng.random_bool(0.2) {
            draft.event.source = "/mirror".to_owned();
        }
        draft
    }

    /// Other content: other data or another type, now and then another version or entity.
    fn altered(&mut self, at: usize, mut draft: Draft) -> Draft {
        let mut life = self.lives[at].clone();
        match self.rng.random_range(0..4) {
            0 => {
                let (kind, body) = life.next(&mut self.rng);
                draft.event.kind = kind;
                draft.body = body;
            }
            1 if draft.event.version.is_some() && self.ordering(&draft.event.machine) == Ordering::Versioned => {
                draft.event.version = Some(life.version + 1);
                draft.event.previous = None;
            }
            _ => {
                let more = self.rng.random_range(0..3);
                draft.body = match draft.body {
                    Body::Json(Value::Object(mut members)) => {
                        members.push(("note".to_owned(), Value::number(more)));
                        Body::Json(Value::Object(members))
                    }
                    _ => Body::Json(Value::object([("note", Value::number(more))])),
                };
            }
        }
        if let Body::Text(_) = draft.body {
            draft.event.content_type = Some("text/plain".to_owned());
        } else if draft.event.content_type.as_deref() == Some("text/plain") {
            draft.event.content_type = None;
        }
        draft
    }

    /// A second writer: another event that follows the same version, or one that was passed long ago.
    fn fork(&mut self, at: usize, draft: Draft) {
        let mut draft = self.renamed(draft);
        if let (Ordering::Versioned, Some(version)) = (self.ordering(&draft.event.machine), draft.event.version) {
            let now = self.oracle.version(&draft.event.entity());
            // Half of them jump: they follow what is there, and pass over what waits.
            let follows = if self.rng.random_bool(0.5) { now } else { draft.event.previous.unwrap_or(version - 1) };
            draft.event.version = Some(follows.max(version) + self.rng.random_range(1..4));
            draft.event.previous = Some(follows);
        }
        self.once_more(at, draft);
    }

    /// The same intent under another id and, where there are versions, the next one: its author's next event.
    fn same_intent(&mut self, at: usize, draft: Draft) {
        let mut next = self.draft(at);
        next.event.kind = draft.event.kind;
        next.event.idempotency_key = draft.event.idempotency_key.or(Some(format!("i{at}")));
        next.body = if self.rng.random_bool(0.7) { draft.body } else { self.lives[at].body_of(&mut self.rng, &next) };
        if let Body::Text(_) = next.body {
            next.event.content_type = Some("text/plain".to_owned());
        } else if next.event.content_type.as_deref() == Some("text/plain") {
            next.event.content_type = None;
        }
        self.pending.push((at, next));
        self.deliver_pending();
    }

    /// Somebody else's intent.
    fn other_intent(&mut self, at: usize) {
        let mut next = self.draft(at);
        let machine = &next.event.machine;
        let keyed: Vec<String> = self
            .sent
            .iter()
            .filter(|(_, d)| d.event.machine == *machine)
            .filter_map(|(_, d)| d.event.idempotency_key.clone())
            .collect();
        if let Some(key) = keyed.choose(&mut self.rng) {
            next.event.idempotency_key = Some(key.clone());
        }
        self.pending.push((at, next));
        self.deliver_pending();
    }
}
