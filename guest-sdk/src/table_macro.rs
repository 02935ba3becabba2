//! [`table!`](crate::table), which writes the types that [`Table`](crate::Table) names.

/// Declares a machine: its states, what moves an entity from one to another, and from where to where.
///
/// The table is the machine's whole graph, and the only place where it is written down. What the host is told comes from
/// it, and the rules are asked only about an input that has an edge from where the entity stands; the SDK refuses
/// everything else (`wrong-state`).
///
/// ```
/// # use serde::Deserialize;
/// #[derive(Deserialize)]
/// pub struct Opened { pub by: String }
///
/// seqgate_guest::table! {
///     /// A support ticket.
///     pub machine Tickets "tickets", schema 1;
///
///     states {
///         Open    "open"    within 2 days;
///         Waiting "waiting";
///         Closed  "closed"  terminal;
///     }
///     events {
///         Opened(Opened) "ticket.opened":   absent => Open;
///         Answered       "ticket.answered": Open => Waiting;
///         Reopened       "ticket.reopened": Waiting => Open;
///         Closed         "ticket.closed":   live => Closed;
///     }
///     timers {
///         Silence "silence": Waiting => Closed;
///     }
///     compensations {
///         LateAnswer "ticket.answered": Closed => Closed;
///     }
/// }
/// # fn main() {}
/// ```
///
/// It makes a unit struct of the machine's name, and the enums `State`, `Event`, `Timer` and `Compensation`:
///
/// - A **state** has a variant, a name, and optionally `terminal`, or `within` a number of `seconds`, `minutes`, `hours`
///   or `days` after which an entity that rests there is reported as stuck.
/// - An **event** has a variant, in parentheses the type of its payload (any `Deserialize`), a type, and its edges. A
///   payload is a JSON object; empty data reads as `{}`. Without a payload's type the data is not read.
/// - A **timer** has a variant, a name and edges.
/// - A **compensation** has a variant, the type of the refused event, and edges.
/// - An **edge** is `from => to`, or `from | from => to`, and several have commas between them; `absent` is an entity
///   that does not exist yet, `live` every state that is not terminal.
///
/// `timers` and `compensations` may be left out. After `schema 2` may stand `reads [1]`: older layouts of the entity's
/// data that `migrate` reads.
///
/// A table that contradicts itself does not compile: a state that does not exist, two of the same name, an edge that
/// leaves a terminal state.
///
/// ```compile_fail
/// seqgate_guest::table! {
///     machine Tickets "tickets", schema 1;
///     states { Open "open"; Closed "closed" terminal; }
///     events { Opened "ticket.opened": absent => Open; Reopened "ticket.reopened": Closed => Open; }
/// }
/// fn main() {}
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis machine $machine:ident $name:literal, schema $schema:literal $(reads [$($reads:literal),* $(,)?])?;
        states { $($states:tt)* }
        events { $($events:tt)* }
        $(timers { $($timers:tt)* })?
        $(compensations { $($compensations:tt)* })?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $machine;

        impl $crate::Table for $machine {
            type State = State;
            type Event = Event;
            type Timer = Timer;
            type Compensation = Compensation;
            const NAME: &'static str = $name;
            const VERSION: &'static str = ::core::env!("CARGO_PKG_VERSION");
            const SCHEMA: u32 = $schema;
            const READS: &'static [u32] = &[$($($reads),*)?];
            const STATES: &'static [$crate::StateRow] = State::ROWS;
            const EDGES: &'static [$crate::EdgeRow] =
                &$crate::__concat::<{ Event::EDGES.len() + Timer::EDGES.len() + Compensation::EDGES.len() }>(
                    &[Event::EDGES, Timer::EDGES, Compensation::EDGES],
                );
        }

        const _: () = $crate::__check(
            $name,
            <$machine as $crate::Table>::STATES,
            <$machine as $crate::Table>::EDGES,
        );

        $crate::__table_states! { [$vis] $($states)* }
        $crate::__table_events! { [$vis] $($events)* }
        $crate::__table_names! { [$vis] Timer "timers" $($($timers)*)? }
        $crate::__table_names! { [$vis] Compensation "compensations" $($($compensations)*)? }
    };
}

/// The `states` block of [`table!`](crate::table).
#[doc(hidden)]
#[macro_export]
macro_rules! __table_states {
    ([$vis:vis] $($(#[$meta:meta])* $variant:ident $name:literal $($kind:ident $($count:literal $unit:ident)?)?;)+) => {
        /// The machine's states.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum State {
            $($(#[$meta])* #[doc = ::core::concat!("`", $name, "`")] $variant,)+
        }

        impl $crate::Named for State {
            const ALL: &'static [Self] = &[$(Self::$variant),+];

            fn name(self) -> &'static str {
                self.name()
            }
        }

        impl State {
            /// The name, as the contract writes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            const ROWS: &'static [$crate::StateRow] =
                &[$($crate::__table_state!($name $($kind $($count $unit)?)?)),+];
        }
    };
}

/// A row of the `states` block.
#[doc(hidden)]
#[macro_export]
macro_rules! __table_state {
    ($name:literal) => {
        $crate::StateRow { name: $name, terminal: false, expected_within: None }
    };
    ($name:literal terminal) => {
        $crate::StateRow { name: $name, terminal: true, expected_within: None }
    };
    ($name:literal within $count:literal $unit:ident) => {
        $crate::StateRow {
            name: $name,
            terminal: false,
            expected_within: Some($crate::$unit($count).as_millis() as u64),
        }
    };
}

/// The `events` block of [`table!`](crate::table).
#[doc(hidden)]
#[macro_export]
macro_rules! __table_events {
    ([$vis:vis] $(
        $(#[$meta:meta])*
        $variant:ident $(($payload:ty))? $name:literal: $($($from:ident)|+ => $to:ident),+;
    )+) => {
        /// The machine's events, with their payloads.
        $vis enum Event {
            $($(#[$meta])* #[doc = ::core::concat!("`", $name, "`")] $variant $(($payload))?,)+
        }

        impl $crate::Decode for Event {
            fn decode(kind: &str, data: &[u8]) -> Option<Result<Self, $crate::Refusal>> {
                let _ = data;
                match kind {
                    $($name => Some($crate::__table_decode!(data, Self::$variant $(, $payload)?)),)+
                    _ => None,
                }
            }
        }

        impl Event {
            const EDGES: &'static [$crate::EdgeRow] = &[$($($($crate::EdgeRow {
                origin: $crate::__table_origin!($from),
                trigger: $crate::TriggerRow::Event($name),
                target: State::$to.name(),
            },)+)+)+];
        }
    };
}

/// How a row of the `events` block reads its payload.
#[doc(hidden)]
#[macro_export]
macro_rules! __table_decode {
    ($data:ident, $make:expr) => {
        Ok($make)
    };
    ($data:ident, $make:expr, $payload:ty) => {
        $crate::payload::<$payload>($data).map($make)
    };
}

/// The `timers` and `compensations` blocks of [`table!`](crate::table).
#[doc(hidden)]
#[macro_export]
macro_rules! __table_names {
    ([$vis:vis] $enum:ident $what:literal
        $($(#[$meta:meta])* $variant:ident $name:literal: $($($from:ident)|+ => $to:ident),+;)*
    ) => {
        #[doc = ::core::concat!("The machine's ", $what, ".")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $enum {
            $($(#[$meta])* #[doc = ::core::concat!("`", $name, "`")] $variant,)*
        }

        impl $crate::Named for $enum {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn name(self) -> &'static str {
                self.name()
            }
        }

        impl $enum {
            /// The name, as the contract writes it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            const EDGES: &'static [$crate::EdgeRow] = &[$($($($crate::EdgeRow {
                origin: $crate::__table_origin!($from),
                trigger: $crate::TriggerRow::$enum($name),
                target: State::$to.name(),
            },)+)+)*];
        }
    };
}

/// Where an edge starts.
#[doc(hidden)]
#[macro_export]
macro_rules! __table_origin {
    (absent) => {
        $crate::OriginRow::Absent
    };
    (live) => {
        $crate::OriginRow::AnyLive
    };
    ($state:ident) => {
        $crate::OriginRow::State(State::$state.name())
    };
}
