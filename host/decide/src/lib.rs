//! The pure decision core of Seqgate: bytes, a snapshot and a time in; one decision out.
//!
//! The crate says what becomes of an event, by the exact rules that `docs/concepts/rules.md` numbers (R1 to R12) and the
//! guarantees in `docs/concepts/guarantees.md` (G1 to G11). Whatever is here is cited by those numbers.
//!
//! # What is absent
//!
//! No I/O, no async, no clock, no randomness, no database, no Wasm: nothing of that kind is in `Cargo.toml`. The time is
//! an argument, rules are a trait, rows are values. So the same code decides in production, in simulated histories and in
//! a doc test, and the same input gives the same decision.
//!
//! # The way through
//!
//! 1. [`envelope::decode`] makes an [`event::Event`] of bytes, or says why it cannot (R1). Both digests of its content are
//!    taken there ([`digest`], [`canonical`], R2).
//! 2. The caller fills a [`world::World`] with the rows that the event touches. A world is partial: what is not in it is
//!    unknown, not absent.
//! 3. [`decide::decide`] walks the steps of R3 and R4. Where a row is missing it answers
//!    [`Undecided::Need`](decide::Undecided::Need); the caller loads the row and asks again, which is free, because
//!    nothing was changed.
//! 4. Where it is the rules' turn, the machine's [`rules::Rules`] are asked, and their answer is held against what they
//!    declared ([`graph::Graph`]).
//! 5. Out comes a [`decide::Decision`]: the verdict, and every row to write ([`writes::Writes`]). The world
//!    [absorbs](world::World::absorb) it, so that the next event of a batch is decided after it.
//!
//! The caller commits the rows of a whole batch in one transaction, together with the guards of all entities in the world
//! (R7). What to do about lost races, fences and new rules is its business; it never decides.
//!
//! # An example
//!
//! A machine with one edge, asked about one event.
//!
//! ```
//! use std::sync::Arc;
//!
//! use seqgate_decide::decide::{Input, Undecided, decide};
//! use seqgate_decide::envelope::{Decoded, Limits, Received, decode};
//! use seqgate_decide::ids::{Digest, Position};
//! use seqgate_decide::machine::{Machine, Machines};
//! use seqgate_decide::rules::*;
//! use seqgate_decide::setup::Setup;
//! use seqgate_decide::verdict::Verdict;
//! use seqgate_decide::world::{Entity, Need, World};
//! use seqgate_decide::writes::RulesRef;
//!
//! struct Lamp(Arc<Description>);
//!
//! impl Rules for Lamp {
//!     fn description(&self) -> &Arc<Description> {
//!         &self.0
//!     }
//!     fn apply(&mut self, _: Option<&EntityView<'_>>, _: &EventView<'_>) -> Result<Result<Transition, Rejection>, Fault> {
//!         Ok(Ok(Transition { state: "lit".into(), ..Transition::default() }))
//!     }
//!     fn compensate(
//!         &mut self,
//!         _: Option<&EntityView<'_>>,
//!         _: &EventView<'_>,
//!         _: &Failure,
//!     ) -> Result<Result<Transition, Rejection>, Fault> {
//!         Ok(Err(Rejection::Illegal(Reason::new("none", "nothing is compensated"))))
//!     }
//!     fn migrate(&mut self, _: &EntityView<'_>) -> Result<Result<Migrated, Reason>, Fault> {
//!         Ok(Err(Reason::new("none", "there is one layout")))
//!     }
//! }
//!
//! let lamp = Lamp(Arc::new(Description {
//!     name: "lamps".into(),
//!     version: "1.0.0".into(),
//!     schema: 1,
//!     reads: vec![],
//!     states: vec![StateInfo { name: "lit".into(), terminal: false, expected_within: None }],
//!     edges: vec![Edge {
//!         origin: Origin::Absent,
//!         trigger: Trigger::Event("lamp.lit".into()),
//!         target: "lit".into(),
//!     }],
//! }));
//! let in_force = RulesRef { activation: 1, digest: Digest([0; 32]) };
//! let mut machines = Machines::default();
//! machines.insert(Machine::new(Arc::new(Setup::new("lamps")), Box::new(lamp), in_force));
//!
//! let line = br#"{"specversion":"1.0","id":"1","source":"/doc","type":"lamp.lit","subject":"hall","entityversion":1}"#;
//! let received =
//!     Received { bytes: line, key: None, record_time: None, received_at: 1_000, machine: Some("lamps") };
//! let Decoded::Event(event) = decode(&received, &machines, &Limits::default()) else { panic!("it is readable") };
//!
//! let position = Position { source: "lines".into(), partition: 0, offset: 0 };
//! let input = Input::Event { event, position, redelivered: false };
//! let mut world = World::new();
//! let mut decision = loop {
//!     match decide(&world, &mut machines, &input, 1_000) {
//!         Ok(decision) => break decision,
//!         // A store would look; here nothing is stored yet.
//!         Err(Undecided::Need(need)) => match need {
//!             Need::Entity(id) => world.put_entity(Entity::absent(id)),
//!             Need::Inbox(key) => world.put_inbox(key, None),
//!             Need::History(id, version) => world.put_history(id, version, None),
//!             Need::Intent(machine, key) => world.put_intent(machine, key, None),
//!             Need::Instance(why) => panic!("no memory for the rules: {why}"),
//!         },
//!         Err(Undecided::Refused(reason)) => panic!("{}", reason.message),
//!     }
//! };
//! assert_eq!(decision.outcome.verdict, Verdict::Applied);
//! world.absorb(&mut decision);
//!
//! // The same line again: its id is known.
//! let again = decide(&world, &mut machines, &input, 2_000).unwrap();
//! assert_eq!(again.outcome.verdict, Verdict::Duplicate);
//! ```

pub mod canonical;
pub mod decide;
pub mod digest;
pub mod effects;
pub mod envelope;
pub mod event;
pub mod graph;
pub mod ids;
pub mod machine;
pub mod rules;
pub mod setup;
pub mod verdict;
pub mod world;
pub mod writes;
