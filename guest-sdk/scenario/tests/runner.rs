//! What the runner finds, and how it says so.

use std::path::Path;

use seqgate_scenario::{
    Dependency, Description, Edge, Effect, Entity, Event, Failure, Fault, Message, Origin, Reason, Rejection,
    StateInfo, Subject, Transition, Trigger, When, load, parse, run,
};

/// A door: `open` and `shut`, terminal `gone`. An event's payload says what the rules answer, so that a test can have
/// them do anything.
struct Door;

impl Subject for Door {
    fn describe(&self) -> Description {
        let state = |name: &str| StateInfo { name: name.into(), terminal: name == "gone", expected_within: None };
        let edge = |origin, trigger, target: &str| Edge { origin, trigger, target: target.into() };
        let event = |name: &str| Trigger::Event(name.into());
        Description {
            name: "doors".into(),
            version: "1.0.0".into(),
            schema: 1,
            reads: vec![],
            states: ["open", "shut", "gone"].map(state).into(),
            edges: vec![
                edge(Origin::Absent, event("built"), "open"),
                edge(Origin::State("open".into()), event("pushed"), "shut"),
                edge(Origin::AnyLive, event("broken"), "gone"),
                edge(Origin::AnyLive, Trigger::Timer("draught".into()), "shut"),
                edge(Origin::State("gone".into()), Trigger::Compensation("pushed".into()), "open"),
            ],
        }
    }

    fn apply(&mut self, _: Option<&Entity>, event: &Event) -> Result<Result<Transition, Rejection>, Fault> {
        let reason = |code: &str| Reason { code: code.into(), message: "so it is".into() };
        let to = |state: &str, effects| Transition {
            state: state.into(),
            data: br#"{"width":18446744073709551617,"by":"me"}"#.to_vec(),
            effects,
            notes: vec!["creak, loudly".into()],
        };
        if let Trigger::Timer(_) = event.trigger {
            return Ok(Ok(to("shut", vec![])));
        }
        let after = |name: &str| Effect::Start { name: name.into(), when: When::After(60_000) };
        let message = Message {
            topic: "news".into(),
            kind: "door.moved".into(),
            key: Some(b"street".to_vec()),
            content_type: "application/json".into(),
            attributes: vec![("lane".into(), "1".into())],
            data: br#"{"n":1}"#.to_vec(),
        };
        Ok(match event.data.as_slice() {
            b"illegal" => Err(Rejection::Illegal(reason("stuck"))),
            b"malformed" => Err(Rejection::Malformed(reason("odd"))),
            b"fault" => return Err(Fault("broke".into())),
            b"waiting" => {
                Err(Rejection::Waiting(vec![Dependency { machine: "keys".into(), key: b"k/1".to_vec(), version: 2 }]))
            }
            b"timer" => Ok(to("open", vec![after("draught")])),
            b"unknown timer" => Ok(to("open", vec![after("storm")])),
            b"message" => Ok(to("open", vec![Effect::Send(message)])),
            state => Ok(to(&String::from_utf8_lossy(state), vec![])),
        })
    }

    fn compensate(
        &mut self,
        current: Option<&Entity>,
        event: &Event,
        failure: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        assert_eq!(event.trigger, Trigger::Compensation("pushed".into()));
        assert!(matches!(failure, Failure::Illegal(_) | Failure::Malformed(_)));
        let stays = current.map_or("open", |entity| &entity.state).to_owned();
        let state = if matches!(failure, Failure::Illegal(_)) { "open".to_owned() } else { stays };
        Ok(Ok(Transition { state, ..Transition::default() }))
    }
}

fn tell(steps: &str) -> seqgate_scenario::Report {
    let text = format!(r#"{{"title": "a door", "steps": [{steps}]}}"#);
    let story = parse(Path::new("door.json"), text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    run(&mut Door, &[story])
}

#[track_caller]
fn holds(steps: &str) {
    let report = tell(steps);
    assert!(report.is_ok(), "{report}");
}

#[track_caller]
fn differs(steps: &str, step: usize, expected: &str, got: &str) {
    let report = tell(steps);
    let [found] = report.mismatches.as_slice() else { panic!("it holds") };
    assert_eq!((found.step, found.expected.as_str(), found.got.as_str()), (step, expected, got));
}

const BUILT: &str = r#"{"event": "built", "text": "open"}"#;

#[test]
fn what_holds() {
    holds(
        r#"
        {"event": "built", "text": "malformed", "expect": {"malformed": "odd"}},
        {"event": "built", "text": "fault", "expect": {"fault": true}},
        {"event": "built", "text": "waiting", "expect": {"waiting": ["keys/k/1@2"]}},
        {"event": "built", "text": "timer", "at": "2026-11-30T10:00:00Z",
         "expect": {"state": "open", "timers": {"draught": "2026-11-30T10:01:00Z"}, "notes": ["loud"],
                    "data": {"width": 18446744073709551617}, "messages": []}},
        {"event": "pushed", "text": "illegal", "after": "10s",
         "expect": {"illegal": "stuck", "state": "open", "timers": ["draught"]}},
        {"timer": "draught", "expect": {"state": "shut", "timers": []}},
        {"compensate": "pushed", "text": "malformed", "expect": {"refused": "odd", "state": "shut"}},
        {"event": "broken", "text": "gone", "expect": {"state": "gone", "timers": {}}},
        {"compensate": "pushed", "text": "illegal", "expect": {"refused": "stuck", "state": "open"}}"#,
    );
    holds(
        r#"{"event": "built", "text": "message", "expect": {"messages": [
            {"topic": "news", "type": "door.moved", "key": "street", "attributes": {"lane": "1"}, "data": {"n": 1}}]}}"#,
    );
}

#[test]
fn verdicts_differ() {
    differs(r#"{"event": "built", "text": "illegal"}"#, 1, "applied", "illegal stuck: so it is");
    differs(
        r#"{"event": "built", "text": "illegal", "expect": {"malformed": "stuck"}}"#,
        1,
        "malformed stuck",
        "illegal stuck: so it is",
    );
    differs(
        &format!(r#"{BUILT}, {{"event": "pushed", "text": "shut", "expect": {{"illegal": "stuck"}}}}"#),
        2,
        "illegal stuck",
        "applied",
    );
    differs(r#"{"event": "built", "text": "fault"}"#, 1, "applied", "fault: broke");
    differs(
        r#"{"event": "built", "text": "waiting", "expect": {"waiting": ["keys/k/1@3"]}}"#,
        1,
        "waiting for keys/k/1@3",
        "waiting for keys/k/1@2",
    );
}

#[test]
fn the_declaration_is_kept() {
    let undeclared = "no edge is declared from `absent` to `shut`";
    differs(r#"{"event": "built", "text": "shut"}"#, 1, "applied", undeclared);
    // Not even a story that expects a fault hides it.
    differs(r#"{"event": "built", "text": "shut", "expect": {"fault": true}}"#, 1, "fault", undeclared);
    differs(r#"{"event": "built", "text": "unknown timer"}"#, 1, "applied", "no edge is declared for timer `storm`");
    // `any-live` is no terminal state, and a compensation's edge is not an event's.
    let gone = r#"{"event": "broken", "text": "gone"}"#;
    differs(&format!("{BUILT}, {gone}, {gone}"), 3, "applied", "no edge is declared from `gone` to `gone`");
    differs(
        &format!(r#"{BUILT}, {gone}, {{"event": "pushed", "text": "open"}}"#),
        3,
        "applied",
        "no edge is declared from `gone` to `open`",
    );
    differs(
        &format!(r#"{BUILT}, {{"event": "pushed", "text": "shut"}}, {{"compensate": "pushed", "text": "illegal"}}"#),
        3,
        "applied",
        "no edge is declared from `shut` to `open`",
    );
}

#[test]
fn a_terminal_state_drops_timers_and_a_fired_one_is_gone() {
    let late = "timer `draught` is not pending; pending: none";
    let timer = r#"{"event": "built", "text": "timer"}, "#;
    differs(&format!(r#"{timer} {{"event": "broken", "text": "gone"}}, {{"timer": "draught"}}"#), 3, "applied", late);
    differs(&format!(r#"{timer} {{"timer": "draught"}}, {{"timer": "draught"}}"#), 3, "applied", late);
}

#[test]
fn effects_and_data_differ() {
    let built = |expect: &str| format!(r#"{{"event": "built", "text": "message", "expect": {{{expect}}}}}"#);
    differs(&built(r#""state": "shut""#), 1, "state shut", "state open");
    differs(
        &built(r#""data": {"width": 18446744073709551616}"#),
        1,
        "data.width 18446744073709551616",
        r#"data.width 18446744073709551617, in {"width":18446744073709551617,"by":"me"}"#,
    );
    differs(&built(r#""messages": []"#), 1, "messages none", "messages door.moved on news");
    differs(
        &built(r#""messages": [{"topic": "news", "type": "door.moved", "data": {"n": 2}}]"#),
        1,
        "door.moved data.n 2",
        r#"door.moved data.n 1, in {"n":1}"#,
    );
    differs(
        &built(r#""messages": [{"topic": "news", "type": "door.moved", "key": "road"}]"#),
        1,
        "door.moved key road",
        "door.moved key street",
    );
    differs(&built(r#""timers": ["draught"]"#), 1, "timers draught", "timers none");
    differs(&built(r#""notes": ["silence"]"#), 1, r#"notes ["silence"]"#, r#"notes ["creak, loudly"]"#);
    differs(
        &format!(r#"{BUILT}, {{"compensate": "pushed", "text": "illegal", "expect": {{"refused": "odd"}}}}"#),
        2,
        "refused as odd",
        "refused as stuck: so it is",
    );
    differs(
        &format!(r#"{BUILT}, {{"compensate": "pushed", "text": "shut"}}"#),
        2,
        "applied",
        "the event is taken, to state `shut`; nothing to undo",
    );
}

#[test]
fn a_report_names_file_step_and_what_no_story_takes() {
    let report = tell(r#"{"event": "built", "text": "illegal"}, {"event": "built", "text": "open"}"#);
    let text = report.to_string();
    for part in [
        "door.json: a door\n  step 1: event built\n    expected  applied\n    got       illegal stuck: so it is\n",
        "0 of 1 scenarios hold (0 steps)",
        "no scenario takes open → shut by event pushed",
        "no scenario takes any live state → shut by timer draught",
        "no scenario takes gone → open by compensation of pushed",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn a_file_that_is_no_story_is_named_with_the_line() {
    for (text, wrong) in [
        (r#"{"title": "t", "steps": [{"evnt": "built"}]}"#, "unknown field `evnt`"),
        (r#"{"title": "t", "steps": [{}]}"#, "exactly one of `event`, `timer` and `compensate`"),
        (r#"{"title": "t", "steps": [{"event": "a", "timer": "b"}]}"#, "exactly one of"),
        (r#"{"title": "t", "steps": [{"event": "a", "data": 1, "text": "b"}]}"#, "not both"),
        (r#"{"title": "t", "steps": [{"event": "a", "after": "soon"}]}"#, "no length of time"),
        (r#"{"title": "t", "start": "soon", "steps": []}"#, "no RFC 3339 time"),
        (r#"{"title": "t", "steps": [{"timer": "a", "data": {}}]}"#, "a timer has no payload"),
        (r#"{"title": "t", "steps": [{"event": "a", "expect": {"illegal": "a", "fault": true}}]}"#, "at most one"),
        (r#"{"title": "t", "steps": [{"event": "a", "expect": {"refused": "a"}}]}"#, "belongs to a `compensate`"),
        (r#"{"title": "t", "steps": [{"event": "a", "expect": {"timers": {"b": "30m"}}}]}"#, "no RFC 3339 time"),
    ] {
        let error = parse(Path::new("story.json"), text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with("story.json: ") && error.contains(wrong), "{error}");
        assert!(error.contains("line 1"), "{error}");
    }
}

#[test]
fn a_folder_without_stories_is_an_error() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let error = load(&folder.join("src")).expect_err("no stories").to_string();
    assert!(error.contains("no scenario (*.json) in"), "{error}");
    assert!(load(&folder.join("nowhere")).is_err());
}

#[test]
fn a_story_may_begin_in_the_middle() {
    let text = br#"{ "title": "t", "key": "d1", "start": "2026-11-30T10:00:00Z",
        "given": { "state": "open", "data": {"width":1}, "version": 7, "timers": { "draught": "2026-11-30T11:00:00Z" } },
        "steps": [ { "timer": "draught", "expect": { "state": "shut", "timers": [] } } ] }"#;
    let story = parse(Path::new("given.json"), text).expect("a story");
    let report = run(&mut Door, &[story]);
    assert!(report.is_ok(), "{report}");
    assert!(!report.untaken.iter().any(|edge| edge.trigger == Trigger::Timer("draught".into())));
    let elsewhere = br#"{ "title": "t", "given": { "state": "gone", "data": {} },
        "steps": [ { "event": "pushed", "data": {"to":"shut"}, "expect": { "state": "shut" } } ] }"#;
    let story = parse(Path::new("given.json"), elsewhere).expect("a story");
    assert!(!run(&mut Door, &[story]).is_ok(), "no edge leads from where it stands");
}
