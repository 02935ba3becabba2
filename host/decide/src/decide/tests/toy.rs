//! Rules whose answers stand in the payload: words, carried out in their order.

use std::sync::Arc;

use crate::ids::EntityId;
use crate::rules::{
    Dependency, Description, Edge, Effect, EntityView, EventView, Failure, Fault, Message, Migrated, Origin, Reason,
    Rejection, Rules, StateInfo, Transition, Trigger, TriggerView, When,
};

/// `open`, `busy` and the terminal `shut`.
pub struct Toy {
    pub description: Arc<Description>,
    pub migrates: Result<&'static str, &'static str>,
    /// What a timer's rules answer, as a payload would.
    pub on_timer: &'static str,
}

impl Toy {
    pub fn new(name: &str, schema: u32, reads: &[u32]) -> Self {
        let state = |name: &str, terminal| StateInfo { name: name.into(), terminal, expected_within: None };
        let from = |name: &str| Origin::State(name.into());
        let event = |origin, kind: &str, target: &str| Edge {
            origin,
            trigger: Trigger::Event(kind.into()),
            target: target.into(),
        };
        let description = Description {
            name: name.into(),
            version: "1.0.0".into(),
            schema,
            reads: reads.to_vec(),
            states: vec![state("open", false), state("busy", false), state("shut", true)],
            edges: vec![
                event(Origin::Absent, "start", "open"),
                event(from("open"), "work", "busy"),
                event(from("busy"), "work", "busy"),
                event(from("busy"), "rest", "open"),
                event(from("busy"), "special", "busy"),
                event(Origin::AnyLive, "stop", "shut"),
                Edge { origin: Origin::AnyLive, trigger: Trigger::Timer("late".into()), target: "shut".into() },
                Edge { origin: from("busy"), trigger: Trigger::Compensation("work".into()), target: "open".into() },
            ],
        };
        Self { description: Arc::new(description), migrates: Ok("open"), on_timer: "" }
    }

    fn target(&self, from: Option<&str>, trigger: TriggerView<'_>) -> Option<String> {
        let leaves = |edge: &&Edge| match (&edge.origin, from) {
            (Origin::Absent, None) => true,
            (Origin::AnyLive, Some(state)) => state != "shut",
            (Origin::State(origin), Some(state)) => origin == state,
            _ => false,
        };
        let named = |edge: &&Edge| match (&edge.trigger, trigger) {
            (Trigger::Event(a), TriggerView::Event(b)) | (Trigger::Timer(a), TriggerView::Timer(b)) => a == b,
            _ => false,
        };
        self.description.edges.iter().filter(leaves).find(named).map(|edge| edge.target.clone())
    }
}

/// The words that a payload is made of, as the rules carry them out.
fn carry_out(script: &str, met: &[Dependency], to: &mut Transition) -> Result<Result<(), Rejection>, Fault> {
    for word in script.split_whitespace() {
        let (verb, rest) = word.split_once(':').unwrap_or((word, ""));
        match verb {
            "illegal" => return Ok(Err(Rejection::Illegal(Reason::new("no", rest)))),
            "malformed" => return Ok(Err(Rejection::Malformed(Reason::new("what", rest)))),
            "fault" => return Err(Fault::new("trap", rest)),
            "wait" => {
                let names: Vec<_> = rest.split(',').filter(|n| !n.is_empty()).map(dependency).collect();
                if names.is_empty() || names.iter().any(|name| !met.contains(name)) {
                    return Ok(Err(Rejection::Waiting(names)));
                }
            }
            "goto" => to.state = rest.into(),
            "data" => to.data = rest.into(),
            "note" => to.notes.push(rest.into()),
            "send" => to.effects.push(Effect::Send(message(rest))),
            "start" => {
                let (name, wait) = rest.split_once(',').unwrap_or((rest, "1000"));
                let when = When::After(wait.parse().expect("a wait is a number"));
                to.effects.push(Effect::Start { name: name.into(), when });
            }
            "cancel" => to.effects.push(Effect::Cancel(rest.into())),
            _ => {}
        }
    }
    Ok(Ok(()))
}

/// `topic` or `topic,key`.
fn message(text: &str) -> Message {
    let (topic, key) = text.split_once(',').map_or((text, None), |(topic, key)| (topic, Some(key)));
    Message {
        topic: topic.into(),
        kind: format!("{topic}.sent"),
        key: key.map(Into::into),
        content_type: "application/json".into(),
        attributes: vec![],
        data: b"{}".to_vec(),
    }
}

/// `machine/key@version`.
pub fn dependency(text: &str) -> Dependency {
    let (entity, version) = text.rsplit_once('@').expect("a version");
    let (machine, key) = entity.split_once('/').expect("a machine");
    Dependency { entity: EntityId::new(machine, key.as_bytes()), version: version.parse().expect("a number") }
}

impl Rules for Toy {
    fn description(&self) -> &Arc<Description> {
        &self.description
    }

    fn apply(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        let Some(state) = self.target(current.map(|c| c.state), event.trigger) else {
            return Ok(Err(Rejection::Illegal(Reason::new("wrong-state", "not from here"))));
        };
        let data = current.map_or(vec![], |c| c.data.to_vec());
        let mut to = Transition { state, data, ..Transition::default() };
        let script = match event.trigger {
            TriggerView::Timer(_) => self.on_timer,
            _ => std::str::from_utf8(event.data).unwrap_or_default(),
        };
        Ok(carry_out(script, event.met, &mut to)?.map(|()| to))
    }

    fn compensate(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
        _: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        let script = std::str::from_utf8(event.data).unwrap_or_default();
        let Some((_, script)) = script.split_once("compensate") else {
            return Ok(Err(Rejection::Illegal(Reason::new("not-listed", "nothing to compensate"))));
        };
        let state = current.map_or("open", |c| c.state).to_owned();
        let mut to = Transition { state, data: current.map_or(vec![], |c| c.data.to_vec()), ..Transition::default() };
        Ok(carry_out(script, event.met, &mut to)?.map(|()| to))
    }

    fn migrate(&mut self, entity: &EntityView<'_>) -> Result<Result<Migrated, Reason>, Fault> {
        let refused = |message: &str| Reason::new("unreadable", message);
        Ok(self.migrates.map(|state| Migrated { state: state.into(), data: entity.data.to_vec() }).map_err(refused))
    }
}
