//! The trait that a machine's rules are.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::refusal::{Reason, Refusal};
use crate::step::Step;
use crate::table::Table;

/// The answer to an input: a step, or why not.
pub type Answer<M> = Result<Step<M>, Refusal>;

/// A machine's rules: what its table of states and edges ([`table!`](crate::table)) leaves open.
///
/// An event is checked in this order, and the rules come last:
/// 1. a type that the table does not name: illegal, `unknown-type`;
/// 2. a payload that cannot be read: malformed, `bad-data`;
/// 3. no edge for it from where the entity stands: illegal, [`wrong_state`](Self::wrong_state);
/// 4. the rules decide. What they answer must follow one of the edges; the host checks that.
///
/// Rules are pure functions. Inside a component there is no clock (an event brings its time; `SystemTime::now` panics),
/// no randomness ([`Context::derive_id`] makes ids), no file, no network and no other entity. Use `BTreeMap` where a map
/// is wanted: the order of a `HashMap` is an accident, natively of the process, in Wasm of what ran before. Floats are
/// lawful, and every NaN is the same one; money is an [`Amount`](crate::Amount).
///
/// A panic costs the event: the host parks it as a `fault`, with the panic's text and the name of the function. So refuse
/// what can be foreseen, and let panics mean that the rules are wrong.
pub trait Machine: Table + Sized + 'static {
    /// What the machine keeps about an entity, stored as JSON. Its layout has the table's `schema` number.
    type Data: Serialize + DeserializeOwned;

    /// Decides an event. `current` is `None` where the entity does not exist yet.
    fn apply(current: Option<Self::Data>, event: Self::Event, cx: &Context<Self>) -> Answer<Self>;

    /// Decides a timer that is due.
    ///
    /// By default it is refused, which the host records; a machine that declares timers decides them.
    fn fire(current: Self::Data, timer: Self::Timer, cx: &Context<Self>) -> Answer<Self> {
        let _ = (current, timer);
        Err(cx.wrong_state())
    }

    /// Decides what a refused event leaves behind, where the table has a compensation for its type from this state; all
    /// others are refused before this is asked. Its payload has not been read, and may be what was refused.
    ///
    /// By default it is refused, and the event is parked.
    fn compensate(
        current: Option<Self::Data>,
        compensation: Self::Compensation,
        failure: &Failure,
        cx: &Context<Self>,
    ) -> Answer<Self> {
        let _ = (current, compensation, failure);
        Err(not_compensated(cx))
    }

    /// Rewrites an entity whose data has an older layout, one of those that the table `reads`.
    ///
    /// By default there is none.
    fn migrate(old: &Old<'_>) -> Result<(Self::State, Self::Data), Reason> {
        Err(Reason::new("unknown-schema", format_args!("these rules do not read schema {}", old.schema)))
    }

    /// The refusal of an event that has no edge from where the entity stands. By default illegal, `wrong-state`; a
    /// machine that wants a more telling code in some state gives it here.
    fn wrong_state(event: &Self::Event, cx: &Context<Self>) -> Refusal {
        let _ = event;
        cx.wrong_state()
    }
}

pub(crate) fn not_compensated<M: Machine>(cx: &Context<M>) -> Refusal {
    let state = cx.state().map_or("absent", crate::Named::name);
    Refusal::illegal("not-compensated", format_args!("no compensation of {} in state {state}", cx.event_type()))
}

/// Why an event was refused before it came to [`Machine::compensate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The rules found it illegal.
    Illegal(Reason),
    /// Its data cannot be understood.
    Malformed(Reason),
    /// The rules gave no answer.
    Fault(String),
}

/// An entity whose data has an older layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old<'a> {
    /// The layout.
    pub schema: u32,
    /// The state, by its name in the older rules.
    pub state: &'a str,
    /// The data, as the older rules wrote it.
    pub data: &'a [u8],
}
