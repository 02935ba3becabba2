//! What the SDK decides around a machine's rules, seen through the test kit.

use seqgate_guest::prelude::*;
use seqgate_guest::testing::scenario::{self, DependencyText, Expect, Input, Outcome, Subject, World};
use seqgate_guest::testing::{Native, absent, given};

seqgate_guest::table! {
    /// A parcel that travels with a container.
    machine Parcels "parcels", schema 2 reads [1];

    states {
        Waiting "waiting" within 90 minutes;
        Loaded  "loaded";
        Done    "done"    terminal;
    }
    events {
        /// Data and time together.
        Packed(Packed) "parcel.packed": absent => Waiting;
        Loaded(Load)   "parcel.loaded": Waiting => Loaded;
        Shaken         "parcel.shaken": Waiting | Loaded => Waiting, Loaded => Loaded;
        Done           "parcel.done":   live => Done;
    }
    timers {
        Late "late": Waiting => Waiting;
        Lost "lost": Loaded => Done;
    }
    compensations {
        Reload "parcel.loaded": Done => Waiting, absent => Waiting;
    }
}

seqgate_guest::export!(Parcels);

#[derive(Serialize, Deserialize, Default)]
struct Parcel {
    shaken: u32,
}

#[derive(Deserialize)]
struct Packed {
    pickup: Timestamp,
}

#[derive(Deserialize)]
struct Load {
    container: String,
    version: u64,
}

impl Machine for Parcels {
    type Data = Parcel;

    fn apply(parcel: Option<Parcel>, event: Event, cx: &Context<Self>) -> Answer<Self> {
        match (parcel, event) {
            (None, Event::Packed(Packed { pickup })) => {
                note!(cx, "pickup {pickup}, {} first", cx.attribute("carrier").unwrap_or("nobody"));
                Ok(cx.to(State::Waiting, Parcel::default()).start(Timer::Late, at(pickup)))
            }
            (Some(parcel), Event::Loaded(Load { container, version })) => {
                let on = Dependency { machine: "containers".into(), key: container.into(), version };
                if !cx.met(&on) {
                    return Err(Refusal::Waiting(vec![on]));
                }
                let note = Message::bytes("yard", "parcel.left", "text/plain", b"bye".to_vec());
                let note = note.key(on.key).attribute("lane", "7");
                Ok(cx.to(State::Loaded, parcel).send(note).start(Timer::Lost, after(hours(1))).cancel(Timer::Late))
            }
            (Some(parcel), Event::Shaken) => {
                let parcel = Parcel { shaken: parcel.shaken + 1 };
                match cx.state() {
                    // Declared nowhere: the first shake throws the parcel out of the yard.
                    Some(State::Waiting) if parcel.shaken > 1 => Ok(cx.to(State::Loaded, parcel)),
                    Some(state) => Ok(cx.to(state, parcel)),
                    None => Err(cx.wrong_state()),
                }
            }
            (Some(parcel), Event::Done) => Ok(cx.to(State::Done, parcel)),
            _ => Err(cx.wrong_state()),
        }
    }

    fn fire(parcel: Parcel, timer: Timer, cx: &Context<Self>) -> Answer<Self> {
        match timer {
            Timer::Late => Ok(cx.to(State::Waiting, parcel).start(Timer::Late, after(minutes(10)))),
            Timer::Lost => panic!("nobody knows"),
        }
    }

    fn compensate(_: Option<Parcel>, _: Compensation, why: &Failure, cx: &Context<Self>) -> Answer<Self> {
        note!(cx, "{why:?}");
        Ok(cx.to(State::Waiting, Parcel::default()))
    }

    fn migrate(old: &Old<'_>) -> Result<(State, Parcel), Reason> {
        match old.schema {
            1 => Ok((State::Waiting, Parcel { shaken: old.data.len() as u32 })),
            _ => Err(Reason::new("unknown-schema", old.schema)),
        }
    }
}

const PACKED: &str = r#"{"pickup": "2026-01-01T02:00:00+01:00"}"#;
const LOAD: &str = r#"{"container": "c1", "version": 3}"#;

#[test]
fn the_description_is_the_table() {
    use scenario::{Edge, Origin, StateInfo, Trigger};
    let told = Native::<Parcels>::new().describe();
    assert_eq!((told.name.as_str(), told.version.as_str()), ("parcels", env!("CARGO_PKG_VERSION")));
    assert_eq!((told.schema, told.reads), (2, vec![1]));
    let state = |name: &str, terminal, expected_within| StateInfo { name: name.into(), terminal, expected_within };
    let states = [state("waiting", false, Some(5_400_000)), state("loaded", false, None), state("done", true, None)];
    assert_eq!(told.states, states);
    let from = |name: &str| Origin::State(name.to_owned());
    let event = |name: &str| Trigger::Event(name.to_owned());
    let timer = |name: &str| Trigger::Timer(name.to_owned());
    let undo = Trigger::Compensation("parcel.loaded".to_owned());
    let edges = [
        (Origin::Absent, event("parcel.packed"), "waiting"),
        (from("waiting"), event("parcel.loaded"), "loaded"),
        (from("waiting"), event("parcel.shaken"), "waiting"),
        (from("loaded"), event("parcel.shaken"), "waiting"),
        (from("loaded"), event("parcel.shaken"), "loaded"),
        (Origin::AnyLive, event("parcel.done"), "done"),
        (from("waiting"), timer("late"), "waiting"),
        (from("loaded"), timer("lost"), "done"),
        (from("done"), undo.clone(), "waiting"),
        (Origin::Absent, undo, "waiting"),
    ];
    let edges = edges.map(|(origin, trigger, target)| Edge { origin, trigger, target: target.into() });
    assert_eq!(told.edges, edges);
}

#[test]
fn type_then_payload_then_state() {
    absent::<Parcels>()
        .when("parcel.flown", "{")
        .then_illegal("unknown-type")
        .when("late", "")
        .then_illegal("unknown-type")
        .when("parcel.loaded", "{}")
        .then_malformed("bad-data")
        .when("parcel.loaded", LOAD)
        .then_illegal("wrong-state")
        .when("parcel.shaken", "not read")
        .then_illegal("wrong-state")
        .given("parcel.packed", PACKED)
        .when("parcel.packed", "{}")
        .then_malformed("bad-data")
        .given("parcel.done", "not read")
        .when("parcel.done", "")
        .then_illegal("wrong-state");
}

#[test]
fn an_undeclared_edge_is_no_transition() {
    let case = given::<Parcels>("parcel.packed", PACKED).given("parcel.shaken", "").when("parcel.shaken", "");
    assert!(matches!(case.outcome(), Outcome::Broken(how) if how.contains("`waiting` to `loaded`")));
    assert_eq!(case.entity().map(|parcel| parcel.revision), Some(2));
}

#[test]
fn timers_start_replace_and_cancel() {
    let timers = |all: &[(&str, &str)]| {
        let all = all.iter().map(|(name, due)| ((*name).to_owned(), (*due).to_owned()));
        Expect { timers: Some(scenario::Timers::Due(all.collect())), ..Expect::default() }
    };
    given::<Parcels>("parcel.packed", PACKED)
        .expect(&timers(&[("late", "2026-01-01T01:00:00Z")]))
        .when_due(Timer::Late)
        .expect(&timers(&[("late", "2026-01-01T01:10:00Z")]))
        .when_due(Timer::Late)
        .expect(&timers(&[("late", "2026-01-01T01:20:00Z")]))
        .when("parcel.done", "")
        .expect(&timers(&[]));
}

#[test]
fn waiting_is_asked_again_when_it_is_met() {
    let mut rules = Native::<Parcels>::new();
    let mut world = World::new(rules.describe(), "p1");
    let attributes = vec![("carrier".to_owned(), "DHL".to_owned())];
    let packed = Input { kind: "parcel.packed".into(), data: PACKED.into(), attributes, ..Input::default() };
    let Outcome::Applied { notes, .. } = world.event(&mut rules, packed) else { panic!("not packed") };
    assert_eq!(notes, ["pickup 2026-01-01T01:00:00Z, DHL first"]);

    let on = |version: u64| DependencyText::try_from(format!("containers/c1@{version}")).expect("a dependency").0;
    let load = |met| Input { kind: "parcel.loaded".into(), data: LOAD.into(), time: 5_000, met, ..Input::default() };
    let waits = Outcome::Rejected(scenario::Rejection::Waiting(vec![on(3)]));
    assert_eq!(world.event(&mut rules, load(vec![])), waits);
    assert_eq!(world.event(&mut rules, load(vec![on(2)])), waits);
    let Outcome::Applied { messages, .. } = world.event(&mut rules, load(vec![on(4)])) else { panic!("still waits") };
    assert_eq!(messages[0].key.as_deref(), Some(&b"c1"[..]));
    assert_eq!(messages[0].attributes, [("lane".to_owned(), "7".to_owned())]);
    assert_eq!((messages[0].content_type.as_str(), &messages[0].data[..]), ("text/plain", &b"bye"[..]));
    assert_eq!(world.timers().iter().collect::<Vec<_>>(), [(&"lost".to_owned(), &3_605_000)]);

    let fault = Outcome::Fault(scenario::Fault("nobody knows".to_owned()));
    assert_eq!(world.timer(&mut rules, "lost"), fault);
}

#[test]
fn only_listed_compensations_are_asked() {
    absent::<Parcels>()
        .when_compensated("parcel.done", "")
        .then_illegal("not-compensated")
        .when_compensated("parcel.loaded", "{}")
        .then(State::Waiting)
        .when_compensated("parcel.loaded", "{}")
        .then_illegal("not-compensated")
        .given("parcel.done", "")
        .when_compensated("parcel.loaded", LOAD)
        .then(State::Waiting);
}

#[test]
fn data_that_these_rules_did_not_write_is_a_fault_and_no_refusal() {
    let case = given::<Parcels>("parcel.packed", PACKED);
    let mut rules = Native::<Parcels>::new();
    let event = scenario::Event {
        id: "e".into(),
        source: "s".into(),
        trigger: scenario::Trigger::Event("parcel.shaken".into()),
        key: b"k".to_vec(),
        version: None,
        time: 0,
        idempotency_key: None,
        correlation_id: None,
        content_type: None,
        attributes: vec![],
        met: vec![],
        data: vec![],
    };
    let parcel = case.entity().expect("a parcel");
    for strange in [
        scenario::Entity { data: b"[]?".to_vec(), ..parcel.clone() },
        scenario::Entity { state: "flying".into(), ..parcel.clone() },
    ] {
        assert!(rules.apply(Some(&strange), &event).is_err(), "{strange:?}");
    }
}

#[test]
fn migrations_are_called_as_they_are() {
    let old = |schema| Old { schema, state: "waiting", data: b"xyz" };
    assert!(matches!(Parcels::migrate(&old(1)), Ok((State::Waiting, Parcel { shaken: 3 }))));
    assert!(Parcels::migrate(&old(0)).is_err());
}
