//! The real machines, compiled natively, as the core asks them; with the markers that histories use to make rules fail.

use std::sync::Arc;

use seqgate_decide::ids::EntityId;
use seqgate_decide::rules::{
    Dependency, Description, Edge, Effect, EntityView, EventView, Failure, Fault, Message, Migrated, Origin, Reason,
    Rejection, Rules, StateInfo, Transition, Trigger, TriggerView, When,
};
use seqgate_guest::testing::Native;
use seqgate_guest::testing::scenario as plain;
use seqgate_model::TimerRules;

/// How the rules in force depart from the real ones.
#[derive(Clone, Debug)]
pub struct Manner {
    pub markers: bool,
    pub schema: u32,
    pub reads: Vec<u32>,
    pub refuses: bool,
    pub timers: TimerRules,
}

impl Manner {
    pub fn real(markers: bool) -> Self {
        Self { markers, schema: 1, reads: Vec::new(), refuses: false, timers: TimerRules::Real }
    }
}

/// A machine's rules.
pub struct NativeRules {
    subject: Box<dyn plain::Subject + Send>,
    description: Arc<Description>,
    manner: Manner,
}

impl NativeRules {
    pub fn new(machine: &str, manner: Manner) -> Self {
        let subject: Box<dyn plain::Subject + Send> = match machine {
            "orders" => Box::new(Native::<orders::Orders>::new()),
            "subscriptions" => Box::new(Native::<subscriptions::Subscriptions>::new()),
            "accounts" => Box::new(Native::<accounts::Accounts>::new()),
            other => panic!("no machine `{other}`"),
        };
        let mut description = described(subject.describe());
        (description.schema, description.reads) = (manner.schema, manner.reads.clone());
        Self { subject, description: Arc::new(description), manner }
    }
}

impl Rules for NativeRules {
    fn description(&self) -> &Arc<Description> {
        &self.description
    }

    fn apply(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        if matches!(event.trigger, TriggerView::Timer(_)) {
            match self.manner.timers {
                TimerRules::Real => {}
                TimerRules::Refuse => return Ok(Err(Rejection::Illegal(Reason::new("refused", "all timers are")))),
                TimerRules::Fault => return Err(Fault::new("trap", "all timers trap")),
            }
        }
        if self.manner.markers
            && let Some(answer) = marked(event)
        {
            return answer;
        }
        answer(self.subject.apply(current.map(entity).as_ref(), &event_of(event)))
    }

    fn compensate(
        &mut self,
        current: Option<&EntityView<'_>>,
        event: &EventView<'_>,
        failure: &Failure,
    ) -> Result<Result<Transition, Rejection>, Fault> {
        if self.manner.markers && traps(event) {
            return Err(Fault::new("trap", "marked"));
        }
        let reason = |r: &Reason| plain::Reason { code: r.code.clone(), message: r.message.clone() };
        let failure = match failure {
            Failure::Illegal(r) => plain::Failure::Illegal(reason(r)),
            Failure::Malformed(r) => plain::Failure::Malformed(reason(r)),
            Failure::Fault(f) => plain::Failure::Fault(f.message.clone()),
        };
        answer(self.subject.compensate(current.map(entity).as_ref(), &event_of(event), &failure))
    }

    fn migrate(&mut self, entity: &EntityView<'_>) -> Result<Result<Migrated, Reason>, Fault> {
        if self.manner.refuses {
            return Ok(Err(Reason::new("refused", "no migration")));
        }
        Ok(Ok(Migrated { state: entity.state.to_owned(), data: entity.data.to_vec() }))
    }
}

fn marks(event: &EventView<'_>) -> Option<serde_json::Map<String, serde_json::Value>> {
    serde_json::from_slice(event.data).ok()
}

fn traps(event: &EventView<'_>) -> bool {
    marks(event).is_some_and(|m| m.get("__fault") == Some(&serde_json::Value::Bool(true)))
}

fn marked(event: &EventView<'_>) -> Option<Result<Result<Transition, Rejection>, Fault>> {
    let marks = marks(event)?;
    if traps(event) {
        return Some(Err(Fault::new("trap", "marked")));
    }
    let open = |name: &str| -> Option<Vec<Dependency>> {
        let items = marks.get(name)?.as_array()?;
        let all = items.iter().map(|i| target(i.as_str().unwrap()));
        Some(all.filter(|d| !event.met.contains(d)).collect())
    };
    if let Some(missing) = open("__wait") {
        let all = marks["__wait"].as_array().unwrap();
        if !missing.is_empty() || all.is_empty() {
            return Some(Ok(Err(Rejection::Waiting(missing))));
        }
    }
    if let Some(missing) = open("__each") {
        let none_at_all = marks["__each"].as_array().unwrap().is_empty();
        if !missing.is_empty() || none_at_all {
            return Some(Ok(Err(Rejection::Waiting(missing.into_iter().take(1).collect()))));
        }
    }
    None
}

/// `machine/key@version`, the key percent-encoded.
fn target(text: &str) -> Dependency {
    use seqgate_decide::envelope::depends::{DependsOn, parse};
    match parse(text).unwrap().remove(0) {
        DependsOn::Entity(dependency) => dependency,
        DependsOn::Type(other) => panic!("{other} is no target"),
    }
}

fn answer(
    answer: Result<Result<plain::Transition, plain::Rejection>, plain::Fault>,
) -> Result<Result<Transition, Rejection>, Fault> {
    let reason = |r: plain::Reason| Reason::new(r.code, r.message);
    match answer {
        Err(plain::Fault(message)) => Err(Fault::new("trap", message)),
        Ok(Ok(t)) => Ok(Ok(Transition {
            state: t.state,
            data: t.data,
            effects: t.effects.into_iter().map(effect).collect(),
            notes: t.notes,
        })),
        Ok(Err(plain::Rejection::Illegal(r))) => Ok(Err(Rejection::Illegal(reason(r)))),
        Ok(Err(plain::Rejection::Malformed(r))) => Ok(Err(Rejection::Malformed(reason(r)))),
        Ok(Err(plain::Rejection::Waiting(names))) => {
            let names = names
                .into_iter()
                .map(|d| Dependency { entity: EntityId::new(d.machine.as_str(), d.key), version: d.version });
            Ok(Err(Rejection::Waiting(names.collect())))
        }
    }
}

fn effect(effect: plain::Effect) -> Effect {
    match effect {
        plain::Effect::Send(m) => Effect::Send(Message {
            topic: m.topic,
            kind: m.kind,
            key: m.key,
            content_type: m.content_type,
            attributes: m.attributes,
            data: m.data,
        }),
        plain::Effect::Start { name, when: plain::When::At(at) } => Effect::Start { name, when: When::At(at) },
        plain::Effect::Start { name, when: plain::When::After(after) } => {
            Effect::Start { name, when: When::After(after) }
        }
        plain::Effect::Cancel(name) => Effect::Cancel(name),
    }
}

fn entity(view: &EntityView<'_>) -> plain::Entity {
    plain::Entity {
        key: view.key.to_vec(),
        version: view.version,
        revision: view.revision,
        state: view.state.to_owned(),
        entered: view.entered,
        schema: 1,
        data: view.data.to_vec(),
        timers: view.timers.iter().map(|(name, due)| plain::PendingTimer { name: name.clone(), due: *due }).collect(),
    }
}

fn event_of(view: &EventView<'_>) -> plain::Event {
    let trigger = match view.trigger {
        TriggerView::Event(name) => plain::Trigger::Event(name.into()),
        TriggerView::Timer(name) => plain::Trigger::Timer(name.into()),
        TriggerView::Compensation(name) => plain::Trigger::Compensation(name.into()),
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    plain::Event {
        id: view.id.to_owned(),
        source: view.source.to_owned(),
        trigger,
        key: view.key.to_vec(),
        version: view.version,
        time: view.time,
        idempotency_key: owned(view.idempotency_key),
        correlation_id: owned(view.correlation_id),
        content_type: owned(view.content_type),
        attributes: view.attributes.to_vec(),
        met: Vec::new(),
        data: view.data.to_vec(),
    }
}

fn described(d: plain::Description) -> Description {
    let origin = |o: plain::Origin| match o {
        plain::Origin::Absent => Origin::Absent,
        plain::Origin::AnyLive => Origin::AnyLive,
        plain::Origin::State(s) => Origin::State(s),
    };
    let trigger = |t: plain::Trigger| match t {
        plain::Trigger::Event(n) => Trigger::Event(n),
        plain::Trigger::Timer(n) => Trigger::Timer(n),
        plain::Trigger::Compensation(n) => Trigger::Compensation(n),
    };
    let state =
        |s: plain::StateInfo| StateInfo { name: s.name, terminal: s.terminal, expected_within: s.expected_within };
    Description {
        name: d.name,
        version: d.version,
        schema: d.schema,
        reads: d.reads,
        states: d.states.into_iter().map(state).collect(),
        edges: d
            .edges
            .into_iter()
            .map(|e| Edge { origin: origin(e.origin), trigger: trigger(e.trigger), target: e.target })
            .collect(),
    }
}
