//! Seeded histories.
//!
//! Authors (`life`, `author`) write each entity's own stream; a clumsy world (this file) loses, swaps, repeats and spoils what they
//! wrote; people, timers and new rules (`outside`) come in between. The oracle runs along, so that decisions and timers
//! find targets that exist. `line` writes the bytes and so knows what they mean.

mod author;
mod copies;
mod life;
mod line;
mod malformed;
mod outside;
mod people;
mod setup;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};

use crate::replay::serially;
use crate::{Delivery, EntityId, History, MachineSetup, Meaning, Oracle, Ordering, Recorded, Step};
use life::Life;
use line::Draft;

/// 2026-11-30T10:00:00Z.
const BEGIN: i64 = 1_796_032_800_000;

impl History {
    /// The history of this seed with about `size` deliveries (10 to 60 are useful sizes).
    pub fn generate(seed: u64, size: usize) -> History {
        History::generate_recorded(seed, size).0
    }

    /// The same, with the plainest order of its acts.
    pub fn generate_recorded(seed: u64, size: usize) -> (History, Recorded) {
        let mut world = World::new(seed);
        while world.deliveries < size {
            world.tick();
        }
        world.finish();
        (world.history, world.recorded)
    }
}

/// The world while it is generated.
struct World {
    rng: StdRng,
    history: History,
    recorded: Recorded,
    oracle: Oracle,
    clock: i64,
    deliveries: usize,
    lives: Vec<Life>,
    /// Written by authors, on its way: with the index of its life.
    pending: Vec<(usize, Draft)>,
    /// Lost on its way.
    lost: Vec<(usize, Draft)>,
    /// Delivered at least once.
    sent: Vec<(usize, Draft)>,
    /// By source: where its next line begins.
    ends: Vec<u64>,
    ids: u64,
    /// How often things go wrong: 1 is often, 0.3 seldom.
    trouble: f64,
    /// Machines whose rules cannot read what older rules wrote.
    broken: Vec<String>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = StdRng::seed_from_u64(seed);
        let setup = setup::setup(&mut rng);
        let trouble = *[0.2, 0.5, 1.0].choose(&mut rng).unwrap_or(&1.0);
        let lives = lives(&mut rng, &setup, trouble);
        World {
            oracle: Oracle::new(&setup),
            ends: vec![0; setup.sources.len()],
            history: History { seed, setup, steps: vec![] },
            recorded: vec![],
            clock: BEGIN,
            deliveries: 0,
            lives,
            pending: vec![],
            lost: vec![],
            sent: vec![],
            ids: 0,
            trouble,
            broken: vec![],
            rng,
        }
    }

    fn tick(&mut self) {
        self.clock += self.rng.random_range(1..20_000);
        match self.rng.random_range(0..100) {
            0..30 => self.author(),
            30..60 => self.deliver_pending(),
            60..70 => self.deliver_copy(),
            70..73 => self.deliver_malformed(),
            73..78 => self.repair(),
            78..93 => self.outside(),
            _ => self.upheaval(),
        }
    }

    /// What is still on its way arrives, mostly; what broke is mended.
    fn finish(&mut self) {
        while !self.pending.is_empty() {
            self.clock += 1000;
            self.deliver_pending();
        }
        self.mend();
        for _ in 0..self.rng.random_range(0..4) {
            self.repair();
            self.outside();
        }
    }

    fn push(&mut self, step: Step) {
        self.history.steps.push(step);
        let acts = serially(&mut self.oracle, &self.history, self.history.steps.len() - 1);
        self.recorded.extend(acts);
    }

    fn machine(&self, name: &str) -> &MachineSetup {
        &self.history.setup.machines[name]
    }

    fn ordering(&self, name: &str) -> Ordering {
        self.machine(name).ordering
    }

    fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("e{}", self.ids)
    }

    /// The next event on its way arrives, or another one overtakes it, or it is lost.
    fn deliver_pending(&mut self) {
        if self.pending.is_empty() {
            return self.author();
        }
        let ahead =
            if self.rng.random_bool(0.25 * self.trouble) { self.rng.random_range(0..self.pending.len()) } else { 0 };
        let (at, draft) = self.pending.remove(ahead);
        if self.rng.random_bool(0.05 * self.trouble) {
            self.lost.push((at, draft));
            return;
        }
        self.deliver(at, draft);
    }

    fn deliver(&mut self, at: usize, draft: Draft) {
        let (bytes, event) = line::write(&mut self.rng, &draft);
        self.sent.push((at, draft));
        self.arrive(at, bytes, Meaning::Event(Box::new(event)));
    }

    /// A line arrives in the source and partition of that life.
    fn arrive(&mut self, at: usize, bytes: Vec<u8>, meaning: Meaning) {
        let sources = &self.history.setup.sources;
        let source = self.lives[at].source.unwrap_or_else(|| self.rng.random_range(0..sources.len()));
        let entity = match &meaning {
            Meaning::Event(event) => Some(event.entity()),
            Meaning::Malformed { entity, .. } => entity.clone(),
        };
        let partition = entity.map_or(0, |e| partition(&e, sources[source].partitions));
        let position = self.ends[source];
        self.ends[source] += bytes.len() as u64 + 1;
        let source = sources[source].name.clone();
        self.deliveries += 1;
        let (received, replay) = (self.clock, false);
        self.push(Step::Deliver(Delivery { source, partition, position, received, bytes, meaning, replay }));
    }

    fn deliver_malformed(&mut self) {
        let Some((at, draft)) = self.sent.choose(&mut self.rng).cloned() else {
            return;
        };
        let ordering = self.ordering(&draft.event.machine);
        let (bytes, entity, why) = malformed::malformed(&mut self.rng, &draft, ordering);
        self.arrive(at, bytes, Meaning::Malformed { entity, why });
    }

    /// A lost event of a versioned machine is fetched, or one that came anyway; elsewhere it comes late.
    fn repair(&mut self) {
        let fetched = if self.lost.is_empty() || self.rng.random_bool(0.1) {
            self.sent.choose(&mut self.rng).cloned()
        } else {
            let lost = self.rng.random_range(0..self.lost.len());
            Some(self.lost.remove(lost))
        };
        let Some((at, draft)) = fetched else { return };
        if self.ordering(&draft.event.machine) != Ordering::Versioned {
            return self.deliver(at, draft);
        }
        let (bytes, event) = line::write(&mut self.rng, &draft);
        self.sent.push((at, draft));
        let (source, received, position) = (format!("repair:{}", event.machine), self.clock, 0);
        let meaning = Meaning::Event(Box::new(event));
        let (partition, replay) = (0, false);
        self.push(Step::Repair(Delivery { source, partition, position, received, bytes, meaning, replay }));
    }
}

/// The partition of an entity (R10).
pub(crate) fn partition(entity: &EntityId, partitions: u32) -> u32 {
    let mut hash = Sha256::new();
    hash.update(entity.machine.as_bytes());
    hash.update([0]);
    hash.update(entity.key.as_bytes());
    let first = hash.finalize().iter().take(8).fold(0u64, |n, b| (n << 8) | u64::from(*b));
    u32::try_from(first % u64::from(partitions)).unwrap_or(0)
}

fn lives(rng: &mut StdRng, setup: &crate::Setup, trouble: f64) -> Vec<Life> {
    let names: Vec<&String> = setup.machines.keys().collect();
    let odd = ["café/1", "cafe\u{301}/1", "100% @home,2", "k'\"x\\y"];
    (0..rng.random_range(2..9))
        .map(|i| {
            let machine = (*names.choose(rng).unwrap_or(&names[0])).clone();
            let key = if rng.random_bool(0.1) {
                (*odd.choose(rng).unwrap_or(&odd[0])).to_owned() + &i.to_string()
            } else {
                format!("k{i}")
            };
            let ordering = setup.machines[&machine].ordering;
            // More than one source may feed an entity only where versions order it (R4).
            let apart = matches!(ordering, Ordering::Versioned | Ordering::Snapshot) && rng.random_bool(0.5);
            let source = if apart { None } else { Some(0) };
            Life::new(EntityId { machine, key }, rng.random_bool(0.3), source, trouble)
        })
        .collect()
}
