//! Authors write: envelopes around what a life does next.

use rand::RngExt;
use rand::rngs::StdRng;

use super::World;
use super::life::Life;
use super::line::{self, Body, Draft};
use crate::{Dependency, Event, Ordering, Target, Value};

impl World {
    /// An author writes one or a few events.
    pub(super) fn author(&mut self) {
        let at = self.rng.random_range(0..self.lives.len());
        if self.lives[at].is_over() && self.rng.random_bool(0.6) {
            self.lives[at] = self.lives[at].reborn();
        }
        for _ in 0..self.rng.random_range(1..4) {
            let draft = self.draft(at);
            self.pending.push((at, draft));
        }
    }

    pub(super) fn draft(&mut self, at: usize) -> Draft {
        let id = self.new_id();
        let rng = &mut self.rng;
        let life = &mut self.lives[at];
        let before = life.last.clone();
        let (kind, mut body) = life.next(rng);
        let ordering = self.history.setup.machines[&life.entity.machine].ordering;
        let (version, previous) = numbers(rng, life, ordering);
        let idempotency_key = rng.random_bool(0.12).then(|| {
            let many = rng.random_range(0..2);
            format!("{}:{kind}:{many}", life.entity.key)
        });
        let logical_time = (ordering == Ordering::Causal && rng.random_bool(0.3)).then(|| rng.random_range(0..5));
        let entity = life.entity.clone();
        let mut depends_on = Vec::new();
        let by_name = if matches!(ordering, Ordering::Causal | Ordering::Arrival) { 0.3 } else { 0.08 };
        if rng.random_bool(by_name) {
            let never = || "order.exploded".to_owned();
            depends_on.push(Dependency::Type(before.unwrap_or_else(never)));
        }
        if self.rng.random_bool(0.12) {
            depends_on.push(Dependency::Version(self.target()));
        }
        if self.history.setup.markers {
            self.mark(&mut body);
        }
        let content_type = match &body {
            Body::Text(_) => Some("text/plain".to_owned()),
            _ if self.rng.random_bool(0.2) => None,
            _ if self.rng.random_bool(0.1) => Some("application/vnd.shop+json".to_owned()),
            _ => Some("application/json".to_owned()),
        };
        let time = self.rng.random_bool(0.85).then_some(self.clock);
        let event = Event {
            machine: entity.machine,
            source: "/authors".to_owned(),
            id,
            kind,
            key: entity.key,
            version,
            previous,
            time,
            idempotency_key,
            depends_on,
            logical_time,
            content_type,
            data: vec![],
            value: None,
        };
        Draft { event, body }
    }

    /// A version that some entity has, or will have, or never has.
    pub(super) fn target(&mut self) -> Target {
        let at = self.rng.random_range(0..self.lives.len());
        let life = &self.lives[at];
        let entity = life.entity.clone();
        let now = self.oracle.version(&entity).max(life.version);
        let ahead = if self.rng.random_bool(0.15 + 0.4 * self.trouble) { 4 } else { 2 };
        let version = now.saturating_sub(1) + self.rng.random_range(0..ahead);
        Target { entity, version: version.max(1) }
    }

    /// Markers for test rules; see [`Event`].
    pub(super) fn mark(&mut self, body: &mut Body) {
        let (Body::Json(Value::Object(_)) | Body::Base64(Value::Object(_))) = body else {
            return;
        };
        let marker = match self.rng.random_range(0..20) {
            0 => ("__fault", Value::Bool(true)),
            n @ 1..4 => {
                let few = if self.rng.random_bool(0.08) { 17 } else { self.rng.random_range(0..3) };
                let mut items: Vec<Value> = Vec::new();
                for i in 0..few {
                    let mut target = self.target();
                    target.version += u64::from(few == 17) * i;
                    let item = Value::Text(line::item(&Dependency::Version(target)));
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                (["__wait", "__wait", "__each"][n - 1], Value::List(items))
            }
            _ => return,
        };
        if let Body::Json(Value::Object(members)) | Body::Base64(Value::Object(members)) = body {
            members.push((marker.0.to_owned(), marker.1));
        }
    }
}

fn numbers(rng: &mut StdRng, life: &mut Life, ordering: Ordering) -> (Option<u64>, Option<u64>) {
    let last = life.version;
    let jumps = life.filtered && rng.random_bool(0.5) && ordering != Ordering::Arrival;
    life.version += if jumps { rng.random_range(1..5) } else { 1 };
    match ordering {
        Ordering::Versioned if life.filtered => (Some(life.version), Some(last)),
        Ordering::Versioned | Ordering::Snapshot => (Some(life.version), None),
        // A version that the ordering does not use is ignored.
        Ordering::Causal | Ordering::Arrival => (rng.random_bool(0.1).then_some(life.version), None),
    }
}
