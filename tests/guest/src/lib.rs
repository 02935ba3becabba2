//! Writes guests: a core module in the text format around a description and answers that are laid out in its memory,
//! as the canonical ABI wants them, with the contract's metadata as `wit-bindgen` would embed it. What no honest author
//! would build is a few words in the text format away.

#![allow(clippy::unwrap_used, reason = "a test's tool may stop where the test is wrong")]

use std::fmt::Write;

use seqgate_decide::rules::{
    Description, Edge, Effect, Origin, Reason, Rejection, StateInfo, Transition, Trigger, When,
};
use wit_component::{StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Where constants start; the first bytes are left for answers that are made up as the guest runs.
const DATA: usize = 4096;
/// Where the length of the event's data stands among the arguments of `apply`.
pub const DATA_LENGTH: usize = 192;
/// Where the kind of trigger stands: 0 event, 1 timer, 2 compensation.
pub const TRIGGER: usize = 88;
const PAGE: usize = 1 << 16;
/// Where arguments are put, unless the constants reach further.
const HEAP: usize = 1 << 16;

/// The contract as the SDK has it.
pub const CONTRACT: &str = include_str!("../../../guest-sdk/wit/machine.wit");

/// A guest. `apply` and the others are bodies in the text format; the answer of each is the address of its result.
pub struct Guest {
    /// Constants.
    pub memory: Memory,
    /// `describe`: from the start, the description that was given.
    pub describe: String,
    /// `apply`: local 0 is the address of its arguments.
    pub apply: String,
    /// `compensate`: local 0 is the address of its arguments.
    pub compensate: String,
    /// `migrate`: traps, from the start.
    pub migrate: String,
    /// What `cabi_realloc` does first; local 3 is the size that is asked for.
    pub realloc: String,
    /// Further fields of the module.
    pub fields: String,
    /// The contract that it says it follows.
    pub contract: String,
    /// Pages of memory at the start, where the constants do not need more.
    pub pages: u32,
}

impl Default for Guest {
    fn default() -> Self {
        Self::new()
    }
}

impl Guest {
    /// An honest guest with [`description`], which answers `open` with the data `{}` to everything.
    pub fn new() -> Self {
        Self::describing(&description())
    }

    /// An honest guest with another description.
    pub fn describing(description: &Description) -> Self {
        let mut memory = Memory(Vec::new());
        let at = memory.description(description);
        let yes =
            memory.answer(&Ok(Transition { state: "open".into(), data: b"{}".to_vec(), ..Transition::default() }));
        Self {
            memory,
            describe: format!("(i32.const {at})"),
            apply: format!("(i32.const {yes})"),
            compensate: format!("(i32.const {yes})"),
            migrate: "(unreachable)".into(),
            realloc: String::new(),
            fields: String::new(),
            contract: CONTRACT.into(),
            pages: 4,
        }
    }

    /// A guest whose `apply` is this.
    pub fn applying(body: &str) -> Self {
        Self { apply: body.into(), ..Self::new() }
    }

    /// A guest whose `apply` gives this answer.
    pub fn answering(answer: &Result<Transition, Rejection>) -> Self {
        let mut guest = Self::new();
        let at = guest.memory.answer(answer);
        guest.apply = format!("(i32.const {at})");
        guest
    }

    /// Has `apply` do `body` with events that carry more data than `{}`, and answer all others as before. `body` leaves the
    /// address of an answer, or does not end.
    pub fn hostile(mut self, body: &str) -> Self {
        self.apply = format!(
            "(if (i32.gt_u (i32.load offset={DATA_LENGTH} (local.get 0)) (i32.const 2)) \
             (then (return (block (result i32) {body})))) {}",
            self.apply
        );
        self
    }

    /// Has `apply` give this answer to events that carry more data than `{}`.
    pub fn lying(mut self, answer: &Result<Transition, Rejection>) -> Self {
        let at = self.memory.answer(answer);
        self.hostile(&format!("(i32.const {at})"))
    }

    /// The module in the text format.
    pub fn text(&self) -> String {
        let Self { memory, describe, apply, compensate, migrate, realloc, fields, pages, .. } = self;
        let heap = HEAP.max((DATA + memory.0.len()).next_multiple_of(8));
        let pages = (*pages).max(u32::try_from(heap / PAGE + 2).unwrap());
        let mut data = String::new();
        memory.0.iter().for_each(|byte| write!(data, "\\{byte:02x}").unwrap());
        format!(
            r#"(module
  (memory (export "memory") {pages})
  (global $top (mut i32) (i32.const {heap}))
  (data (i32.const {DATA}) "{data}")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) {realloc}
    (global.set $top (i32.and (i32.add (global.get $top) (i32.const 7)) (i32.const -8)))
    (global.get $top)
    (global.set $top (i32.add (global.get $top) (local.get 3))))
  (func $describe (export "seqgate:machine/rules@0.1.0#describe") (result i32) {describe})
  (func $apply (export "seqgate:machine/rules@0.1.0#apply") (param i32) (result i32) {apply})
  (func $compensate (export "seqgate:machine/rules@0.1.0#compensate") (param i32) (result i32) {compensate})
  (func $migrate (export "seqgate:machine/rules@0.1.0#migrate")
    (param i32 i32 i64 i64 i32 i32 i64 i32 i32 i32 i32 i32) (result i32) {migrate})
  {fields})"#
        )
    }

    /// The module, as a compiler would have made it.
    pub fn module(&self) -> Vec<u8> {
        with_metadata(&self.text(), &self.contract)
    }
}

/// Compiles the text and says that it follows the contract.
pub fn with_metadata(text: &str, contract: &str) -> Vec<u8> {
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    let package = resolve.push_str("machine.wit", contract).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

/// A description that has nothing wrong with it.
pub fn description() -> Description {
    let state = |name: &str, terminal| StateInfo { name: name.into(), terminal, expected_within: None };
    Description {
        name: "things".into(),
        version: "1.0.0".into(),
        schema: 2,
        reads: vec![1],
        states: vec![StateInfo { expected_within: Some(60_000), ..state("open", false) }, state("shut", true)],
        edges: vec![
            edge(Origin::Absent, Trigger::Event("thing.opened".into()), "open"),
            edge(Origin::State("open".into()), Trigger::Event("thing.opened".into()), "open"),
            edge(Origin::AnyLive, Trigger::Timer("late".into()), "shut"),
            edge(Origin::State("shut".into()), Trigger::Compensation("thing.opened".into()), "shut"),
        ],
    }
}

/// An edge.
pub fn edge(origin: Origin, trigger: Trigger, target: &str) -> Edge {
    Edge { origin, trigger, target: target.into() }
}

/// A guest's constants, from `DATA` on.
pub struct Memory(Vec<u8>);

impl Memory {
    /// Puts bytes, aligned for anything, and gives their address.
    pub fn put(&mut self, bytes: &[u8]) -> u32 {
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        let at = DATA + self.0.len();
        self.0.extend(bytes);
        u32::try_from(at).unwrap()
    }

    fn list<T>(&mut self, items: &[T], mut element: impl FnMut(&mut Self, &T) -> Vec<u8>) -> Vec<u8> {
        let bytes: Vec<u8> = items.iter().flat_map(|item| element(self, item)).collect();
        let at = self.put(&bytes);
        [at, u32::try_from(items.len()).unwrap()].map(u32::to_le_bytes).concat()
    }

    /// Puts bytes, and gives what a record holds of them: their address and length.
    pub fn bytes(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.list(bytes, |_, byte| vec![*byte])
    }

    fn text(&mut self, text: &str) -> Vec<u8> {
        self.bytes(text.as_bytes())
    }

    fn reason(&mut self, reason: &Reason) -> Vec<u8> {
        [self.text(&reason.code), self.text(&reason.message)].concat()
    }

    /// Puts a description, and gives its address.
    pub fn description(&mut self, description: &Description) -> u32 {
        let Description { name, version, schema, reads, states, edges } = description;
        let record = [
            self.text(name),
            self.text(version),
            schema.to_le_bytes().to_vec(),
            self.list(reads, |_, read| read.to_le_bytes().to_vec()),
            self.list(states, Self::state),
            self.list(edges, Self::edge),
        ];
        self.put(&record.concat())
    }

    fn state(&mut self, state: &StateInfo) -> Vec<u8> {
        let within = [u64::from(state.expected_within.is_some()), state.expected_within.unwrap_or(0)];
        let terminal = u64::from(state.terminal).to_le_bytes();
        [self.text(&state.name), terminal.to_vec(), within.map(u64::to_le_bytes).concat()].concat()
    }

    fn edge(&mut self, edge: &Edge) -> Vec<u8> {
        let origin = match &edge.origin {
            Origin::Absent => [vec![0; 4], vec![0; 8]],
            Origin::AnyLive => [vec![1, 0, 0, 0], vec![0; 8]],
            Origin::State(name) => [vec![2, 0, 0, 0], self.text(name)],
        };
        let trigger = match &edge.trigger {
            Trigger::Event(name) => [vec![0; 4], self.text(name)],
            Trigger::Timer(name) => [vec![1, 0, 0, 0], self.text(name)],
            Trigger::Compensation(name) => [vec![2, 0, 0, 0], self.text(name)],
        };
        [origin.concat(), trigger.concat(), self.text(&edge.target)].concat()
    }

    /// Puts an answer of `apply`, and gives its address.
    pub fn answer(&mut self, answer: &Result<Transition, Rejection>) -> u32 {
        let record = match answer {
            Ok(transition) => [
                vec![0; 4],
                self.text(&transition.state),
                self.bytes(&transition.data),
                self.list(&transition.effects, Self::effect),
                self.list(&transition.notes, |memory, note| memory.text(note)),
            ]
            .concat(),
            Err(Rejection::Illegal(reason)) => [vec![1, 0, 0, 0, 0, 0, 0, 0], self.reason(reason)].concat(),
            Err(Rejection::Malformed(reason)) => [vec![1, 0, 0, 0, 1, 0, 0, 0], self.reason(reason)].concat(),
            Err(Rejection::Waiting(list)) => {
                let list = self.list(list, |memory, met| {
                    let entity = [memory.text(&met.entity.machine), memory.bytes(&met.entity.key)].concat();
                    [entity, met.version.to_le_bytes().to_vec()].concat()
                });
                [vec![1, 0, 0, 0, 2, 0, 0, 0], list].concat()
            }
        };
        let mut record = record;
        record.resize(36, 0);
        self.put(&record)
    }

    /// A tag, then the largest case; 8-aligned because `start` holds 64-bit numbers.
    fn effect(&mut self, effect: &Effect) -> Vec<u8> {
        let (tag, body) = match effect {
            Effect::Send(message) => {
                let key = message.key.as_ref().map_or(vec![0; 8], |key| self.bytes(key));
                let attributes = self.list(&message.attributes, |memory, (name, value)| {
                    [memory.text(name), memory.text(value)].concat()
                });
                let body = [
                    self.text(&message.topic),
                    self.text(&message.kind),
                    u32::from(message.key.is_some()).to_le_bytes().to_vec(),
                    key,
                    self.text(&message.content_type),
                    attributes,
                    self.bytes(&message.data),
                ];
                (0_u64, body.concat())
            }
            Effect::Start { name, when } => {
                let (tag, time) = match when {
                    When::At(time) => (0_u64, time.to_le_bytes()),
                    When::After(time) => (1, time.to_le_bytes()),
                };
                (1, [self.text(name), tag.to_le_bytes().to_vec(), time.to_vec()].concat())
            }
            Effect::Cancel(name) => (2, self.text(name)),
        };
        let mut bytes = [tag.to_le_bytes().to_vec(), body].concat();
        bytes.resize(EFFECT, 0);
        bytes
    }
}

/// `send` is 52 bytes, rounded up to the alignment of 8, after a tag of 8.
const EFFECT: usize = 64;
