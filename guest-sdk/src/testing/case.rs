//! Unit tests in code: given, when, then.

use seqgate_scenario::{Entity, Expect, Input, Outcome, World, check};
use serde_json::value::RawValue;

use crate::machine::Machine;
use crate::table::Named;
use crate::testing::Native;
use crate::timestamp::Timestamp;

/// An entity in a test, and what came of the last thing that happened to it. Every `then` panics where it does not hold.
pub struct Case<M: Machine> {
    rules: Native<M>,
    world: World,
    clock: i64,
    count: u32,
    last: Outcome,
}

/// An entity to which one event has happened, which must be applied.
#[track_caller]
pub fn given<M: Machine>(kind: &str, data: &str) -> Case<M> {
    absent().given(kind, data)
}

/// An entity that does not exist yet, on 2026-01-01 at midnight (UTC).
pub fn absent<M: Machine>() -> Case<M> {
    let rules = Native::<M>::new();
    let world = World::new(seqgate_scenario::Subject::describe(&rules), "case");
    let last = Outcome::Broken("nothing has happened yet".to_owned());
    Case { rules, world, clock: 1_767_225_600_000, count: 0, last }
}

impl<M: Machine> Case<M> {
    /// The clock stands at an RFC 3339 time from now on.
    ///
    /// # Panics
    /// Where it is none.
    #[track_caller]
    pub fn at(mut self, time: &str) -> Self {
        match time.parse::<Timestamp>() {
            Ok(time) => self.clock = time.millis(),
            Err(error) => panic!("{error}, not {time}"),
        }
        self
    }

    /// An event that must be applied.
    #[track_caller]
    pub fn given(self, kind: &str, data: &str) -> Self {
        self.when(kind, data).expect(&Expect::default())
    }

    /// An event, with the bytes of its payload.
    pub fn when(mut self, kind: &str, data: &str) -> Self {
        let input = self.input(kind, data);
        self.last = self.world.event(&mut self.rules, input);
        self
    }

    /// A pending timer comes due.
    pub fn when_due(mut self, timer: M::Timer) -> Self {
        self.last = self.world.timer(&mut self.rules, timer.name());
        self
    }

    /// An event that must be refused, and is compensated.
    pub fn when_compensated(mut self, kind: &str, data: &str) -> Self {
        let input = self.input(kind, data);
        self.last = self.world.compensate(&mut self.rules, input).1;
        self
    }

    /// It was applied, and the entity is in this state.
    #[track_caller]
    pub fn then(self, state: M::State) -> Self {
        self.expect(&Expect { state: Some(state.name().to_owned()), ..Expect::default() })
    }

    /// The entity's data contains this JSON, digit by digit.
    #[track_caller]
    pub fn then_data(self, json: &str) -> Self {
        match RawValue::from_string(json.to_owned()) {
            Ok(data) => self.expect(&Expect { data: Some(data), ..Expect::default() }),
            Err(error) => panic!("{error} in {json}"),
        }
    }

    /// Messages of these types were sent, in this order, and no others.
    #[track_caller]
    pub fn then_sends(self, kinds: &[&str]) -> Self {
        let Outcome::Applied { messages, .. } = &self.last else { panic!("not applied: {:?}", self.last) };
        assert!(messages.iter().map(|message| &message.kind).eq(kinds), "sent {messages:?}, not {kinds:?}");
        self
    }

    /// It was illegal, with this code.
    #[track_caller]
    pub fn then_illegal(self, code: &str) -> Self {
        self.expect(&Expect { illegal: Some(code.to_owned()), ..Expect::default() })
    }

    /// It was malformed, with this code.
    #[track_caller]
    pub fn then_malformed(self, code: &str) -> Self {
        self.expect(&Expect { malformed: Some(code.to_owned()), ..Expect::default() })
    }

    /// The rules panicked.
    #[track_caller]
    pub fn then_fault(self) -> Self {
        self.expect(&Expect { fault: true, ..Expect::default() })
    }

    /// Whatever a scenario can expect.
    #[track_caller]
    pub fn expect(self, expect: &Expect) -> Self {
        if let Err(differs) = check(expect, &self.world, &self.last) {
            panic!("{differs}");
        }
        self
    }

    /// The entity, once it exists.
    pub fn entity(&self) -> Option<&Entity> {
        self.world.entity()
    }

    /// What came of the last thing that happened.
    pub fn outcome(&self) -> &Outcome {
        &self.last
    }

    fn input(&mut self, kind: &str, data: &str) -> Input {
        self.count += 1;
        Input {
            kind: kind.to_owned(),
            id: format!("event-{}", self.count),
            time: self.clock,
            data: data.as_bytes().to_vec(),
            ..Input::default()
        }
    }
}
