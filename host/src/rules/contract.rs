//! The types of `machine.wit` for wasmtime, by hand: arguments borrow, so that the host copies an event's bytes once,
//! into the guest; answers own. (`bindgen!` cannot generate borrowing types for this contract: its `Error` impl for the
//! borrowed `reason` lacks a lifetime.) That they are the contract's is checked against every component that is loaded.

use wasmtime::component::{Component, ComponentExportIndex};

use super::error::Refused;

/// The interface that rules export, with its version.
pub(super) const CONTRACT: &str = "seqgate:machine/rules@0.1.0";
/// The same without the version.
pub(super) const INTERFACE: &str = "seqgate:machine/rules";

/// Where the contract's functions are in a component, looked up once when it is loaded.
pub(super) struct Exports {
    pub(super) describe: ComponentExportIndex,
    pub(super) apply: ComponentExportIndex,
    pub(super) migrate: ComponentExportIndex,
    pub(super) compensate: ComponentExportIndex,
}

impl Exports {
    pub(super) fn of(component: &Component) -> Result<Self, Refused> {
        let rules = component.get_export_index(None, CONTRACT).ok_or(Refused::World { exports: Vec::new() })?;
        let find = |function: &'static str| {
            component
                .get_export_index(Some(&rules), function)
                .ok_or_else(|| Refused::Shape { function, detail: "it is not exported".into() })
        };
        Ok(Self {
            describe: find("describe")?,
            apply: find("apply")?,
            migrate: find("migrate")?,
            compensate: find("compensate")?,
        })
    }
}

/// What the host passes in.
pub(super) mod argument {
    use wasmtime::component::{ComponentType, Lower};

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(record)]
    pub struct PendingTimer<'a> {
        pub name: &'a str,
        pub due: i64,
    }

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(record)]
    pub struct Entity<'a> {
        pub key: &'a [u8],
        pub version: u64,
        pub revision: u64,
        pub state: &'a str,
        pub entered: i64,
        pub schema: u32,
        pub data: &'a [u8],
        pub timers: &'a [PendingTimer<'a>],
    }

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(variant)]
    pub enum Trigger<'a> {
        #[component(name = "event")]
        Event(&'a str),
        #[component(name = "timer")]
        Timer(&'a str),
        #[component(name = "compensation")]
        Compensation(&'a str),
    }

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(record)]
    pub struct Dependency<'a> {
        pub machine: &'a str,
        pub key: &'a [u8],
        pub version: u64,
    }

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(record)]
    pub struct Event<'a> {
        pub id: &'a str,
        pub source: &'a str,
        pub trigger: Trigger<'a>,
        pub key: &'a [u8],
        pub version: Option<u64>,
        pub time: i64,
        #[component(name = "idempotency-key")]
        pub idempotency_key: Option<&'a str>,
        #[component(name = "correlation-id")]
        pub correlation_id: Option<&'a str>,
        #[component(name = "content-type")]
        pub content_type: Option<&'a str>,
        pub attributes: &'a [(&'a str, &'a str)],
        pub met: &'a [Dependency<'a>],
        pub data: &'a [u8],
    }

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(record)]
    pub struct Reason<'a> {
        pub code: &'a str,
        pub message: &'a str,
    }

    #[derive(Clone, Copy, ComponentType, Lower)]
    #[component(variant)]
    pub enum Failure<'a> {
        #[component(name = "illegal")]
        Illegal(Reason<'a>),
        #[component(name = "malformed")]
        Malformed(Reason<'a>),
        #[component(name = "fault")]
        Fault(&'a str),
    }
}

/// What the guest answers.
pub(super) mod answer {
    use wasmtime::component::{ComponentType, Lift};

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct StateInfo {
        pub name: String,
        pub terminal: bool,
        #[component(name = "expected-within")]
        pub expected_within: Option<u64>,
    }

    #[derive(ComponentType, Lift)]
    #[component(variant)]
    pub enum Origin {
        #[component(name = "absent")]
        Absent,
        #[component(name = "any-live")]
        AnyLive,
        #[component(name = "state")]
        State(String),
    }

    #[derive(ComponentType, Lift)]
    #[component(variant)]
    pub enum Trigger {
        #[component(name = "event")]
        Event(String),
        #[component(name = "timer")]
        Timer(String),
        #[component(name = "compensation")]
        Compensation(String),
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Edge {
        pub origin: Origin,
        pub trigger: Trigger,
        pub target: String,
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Description {
        pub name: String,
        pub version: String,
        pub schema: u32,
        pub reads: Vec<u32>,
        pub states: Vec<StateInfo>,
        pub edges: Vec<Edge>,
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Dependency {
        pub machine: String,
        pub key: Vec<u8>,
        pub version: u64,
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Message {
        pub topic: String,
        pub kind: String,
        pub key: Option<Vec<u8>>,
        #[component(name = "content-type")]
        pub content_type: String,
        pub attributes: Vec<(String, String)>,
        pub data: Vec<u8>,
    }

    #[derive(ComponentType, Lift)]
    #[component(variant)]
    pub enum When {
        #[component(name = "at")]
        At(i64),
        #[component(name = "after")]
        After(u64),
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct StartTimer {
        pub name: String,
        pub when: When,
    }

    #[derive(ComponentType, Lift)]
    #[component(variant)]
    pub enum Effect {
        #[component(name = "send")]
        Send(Message),
        #[component(name = "start")]
        Start(StartTimer),
        #[component(name = "cancel")]
        Cancel(String),
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Transition {
        pub state: String,
        pub data: Vec<u8>,
        pub effects: Vec<Effect>,
        pub notes: Vec<String>,
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Reason {
        pub code: String,
        pub message: String,
    }

    #[derive(ComponentType, Lift)]
    #[component(variant)]
    pub enum Rejection {
        #[component(name = "illegal")]
        Illegal(Reason),
        #[component(name = "malformed")]
        Malformed(Reason),
        #[component(name = "waiting")]
        Waiting(Vec<Dependency>),
    }

    #[derive(ComponentType, Lift)]
    #[component(record)]
    pub struct Migrated {
        pub state: String,
        pub data: Vec<u8>,
    }
}
