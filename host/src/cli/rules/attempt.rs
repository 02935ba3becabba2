//! `rules try`: one question to rules, as the host would ask it, and their answer. Nothing is stored.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use seqgate_decide::decide::held_against;
use seqgate_decide::envelope::{Decoded, Directory, Limits as EnvelopeLimits, Received, decode};
use seqgate_decide::event::Event;
use seqgate_decide::graph::Graph;
use seqgate_decide::rules::{
    Effect, EntityView, EventView, Fault, Message, Reason, Rejection, Rules as _, Transition, TriggerView, When,
};
use seqgate_decide::setup::Ordering;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::context::{Context, wasm};
use crate::cli::decide::read;
use crate::cli::failure::{FAILED, failed, usage};
use crate::cli::output::{Object, plain};
use crate::cli::show;
use crate::rules::prepare::{self, MAX_COMPONENT};
use crate::rules::{Allocation, Limits, LoadedRules, Session};

use super::author;

/// Ask rules about one event, without a store: the transition, its effects, the fuel
#[derive(clap::Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub struct Try {
    /// A machine's folder, which is built first, or a component's file
    #[arg(default_value = ".")]
    path: PathBuf,
    /// How the entity stands, as `entity show --json` prints it (default: it does not exist yet)
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// A CloudEvent in JSON; `-` reads standard input
    #[arg(long, value_name = "FILE", group = "what")]
    event: Option<PathBuf>,
    /// A timer of this name comes due
    #[arg(long, value_name = "NAME", group = "what", requires = "state")]
    timer: Option<String>,
}

/// The parts of `entity show --json` that rules see. Others are passed over.
#[derive(Debug, Deserialize)]
struct StateFile {
    state: Option<String>,
    data: Option<Box<RawValue>>,
    #[serde(default)]
    data_encoding: Option<String>,
    key: Option<String>,
    #[serde(default)]
    version: u64,
    revision: Option<u64>,
    entered: Option<String>,
    schema: Option<u32>,
    #[serde(default)]
    timers: Vec<TimerFile>,
}

#[derive(Debug, Deserialize)]
struct TimerFile {
    name: String,
    due: String,
}

/// An entity as the rules are shown it.
struct Entity {
    key: Vec<u8>,
    version: u64,
    revision: u64,
    state: String,
    entered: Option<i64>,
    schema: u32,
    data: Vec<u8>,
    timers: Vec<(String, i64)>,
}

impl Entity {
    fn view(&self, entered: i64) -> EntityView<'_> {
        let entered = self.entered.unwrap_or(entered);
        let Self { key, version, revision, state, schema, data, timers, .. } = self;
        EntityView { key, version: *version, revision: *revision, state, entered, schema: *schema, data, timers }
    }
}

impl Try {
    /// Runs the command. An answer of the rules is exit 0, whatever it is; none is exit 1.
    pub fn run(&self, ctx: &Context) -> anyhow::Result<ExitCode> {
        let prepared = if self.path.is_file() {
            prepare::prepare(&author::read(&self.path)?, MAX_COMPONENT)?
        } else {
            crate::rules::build::build(&self.path)?
        };
        let rules = LoadedRules::load(&wasm(Allocation::OnDemand)?, &prepared, Limits::default(), None)?;
        let mut session = rules.open();
        let mut entity = match &self.state {
            Some(file) => entity(file, rules.description().schema)?,
            None => None,
        };
        let migrated = match &mut entity {
            Some(entity) => migrate(&mut session, entity)?,
            None => false,
        };
        let answer = match (&self.event, &self.timer) {
            (Some(file), _) => {
                let event = event(ctx, file, &rules.description().name)?;
                ask_event(&mut session, entity.as_ref(), &event)
            }
            (None, Some(name)) => ask_timer(&mut session, entity.as_ref(), name)?,
            (None, None) => return Err(usage("usage", "name an --event or a --timer")),
        };
        let shown = Shown {
            rules: &rules,
            from: entity.as_ref().map(|e| &*e.state),
            migrated,
            fuel: session.fuel_used(),
            answer,
        };
        ctx.answer(|| shown.json(), || shown.text())?;
        Ok(ExitCode::from(if shown.answer.1.is_err() { FAILED } else { 0 }))
    }
}

type Answer = Result<Result<Transition, Rejection>, Fault>;

/// At which time, and what.
type Answered = (i64, Answer);

fn ask_event(session: &mut Session, entity: Option<&Entity>, event: &Event) -> Answered {
    let view = EventView {
        id: &event.key.id,
        source: &event.key.source,
        trigger: TriggerView::Event(&event.kind),
        key: &event.entity.key,
        version: event.version,
        time: event.time,
        idempotency_key: event.idempotency_key.as_deref(),
        correlation_id: event.attribute("correlationid"),
        content_type: event.content_type.as_deref(),
        attributes: &event.attributes,
        met: &[],
        data: &event.data,
    };
    (event.time, ask(session, entity, &view))
}

fn ask_timer(session: &mut Session, entity: Option<&Entity>, name: &str) -> anyhow::Result<Answered> {
    let pending = entity.into_iter().flat_map(|e| &e.timers);
    let Some((entity, (_, due))) = entity.zip(pending.into_iter().find(|(n, _)| n == name)) else {
        let message = format!("the timer `{name}` is not pending in --state; its `timers` must have {{name, due}}");
        return Err(failed("not-found", message));
    };
    let view = EventView {
        id: &format!("timer:{name}:{}", entity.revision),
        source: "seqgate",
        trigger: TriggerView::Timer(name),
        key: &entity.key,
        version: None,
        time: *due,
        idempotency_key: None,
        correlation_id: None,
        content_type: None,
        attributes: &[],
        met: &[],
        data: &[],
    };
    Ok((*due, ask(session, Some(entity), &view)))
}

/// The rules' answer, held against what they declare as the host does.
fn ask(session: &mut Session, entity: Option<&Entity>, event: &EventView<'_>) -> Answer {
    let graph = Graph::new(session.description().clone());
    let view = entity.map(|entity| entity.view(event.time));
    let transition = match session.apply(view.as_ref(), event)? {
        Ok(transition) => transition,
        Err(rejection) => return Ok(Err(rejection)),
    };
    held_against(&graph, entity.map(|e| &*e.state), event.trigger, transition).map(Ok)
}

/// Data of an older layout is rewritten before rules see it.
fn migrate(session: &mut Session, entity: &mut Entity) -> anyhow::Result<bool> {
    let description = session.description().clone();
    if entity.schema == description.schema {
        return Ok(false);
    }
    if !description.reads.contains(&entity.schema) {
        let message = format!("the data has schema {}, which these rules do not read: blocked (schema)", entity.schema);
        return Err(failed("schema", message));
    }
    let answer = session.migrate(&entity.view(0)).map_err(|f| failed("fault", format!("{}: {}", f.code, f.message)))?;
    let migrated = answer.map_err(|r| failed("migration", format!("migrate refused: {}: {}", r.code, r.message)))?;
    (entity.state, entity.data, entity.schema) = (migrated.state, migrated.data, description.schema);
    Ok(true)
}

fn entity(file: &Path, schema: u32) -> anyhow::Result<Option<Entity>> {
    let wrong = || format!("{} is no entity as `entity show --json` prints it", file.display());
    let bytes = read(file)?;
    let found: StateFile = serde_json::from_slice(&bytes).with_context(|| failed("state", wrong()))?;
    let Some(state) = found.state else { return Ok(None) };
    let time = |text: &str| {
        show::parse_time(text).ok_or_else(|| failed("state", format!("{}: `{text}` is no RFC 3339 time", wrong())))
    };
    let entered = found.entered.as_deref().map(time).transpose()?;
    let timers = found.timers.into_iter().map(|t| Ok((t.name, time(&t.due)?))).collect::<anyhow::Result<_>>()?;
    let data = match (found.data, found.data_encoding.as_deref()) {
        (Some(data), None | Some("json")) => data.get().as_bytes().to_vec(),
        (Some(data), Some("text")) => serde_json::from_str::<String>(data.get())?.into_bytes(),
        (None, None | Some("empty" | "json")) => Vec::new(),
        (_, other) => return Err(failed("state", format!("data_encoding {other:?} is not read; write JSON or text"))),
    };
    Ok(Some(Entity {
        key: found.key.unwrap_or_else(|| "try".to_owned()).into_bytes(),
        version: found.version,
        revision: found.revision.unwrap_or(found.version),
        state,
        entered,
        schema: found.schema.unwrap_or(schema),
        data,
        timers,
    }))
}

/// Every machine has this ordering.
struct All(Ordering);

impl Directory for All {
    fn ordering(&self, _: &str) -> Option<Ordering> {
        Some(self.0)
    }
}

/// The event in a file, with a version or without.
fn event(ctx: &Context, file: &Path, machine: &str) -> anyhow::Result<Arc<Event>> {
    let bytes = read(file)?;
    let bytes = bytes.trim_ascii();
    let decoded = |ordering| {
        let received =
            Received { bytes, key: None, record_time: None, received_at: ctx.clock.now(), machine: Some(machine) };
        match decode(&received, &All(ordering), &EnvelopeLimits::default()) {
            Decoded::Event(event) => Ok(event),
            Decoded::Malformed(malformed) => Err(malformed.reason),
        }
    };
    let event = decoded(Ordering::Versioned).or_else(|first| decoded(Ordering::Arrival).map_err(|_| first));
    let event = event.map_err(|reason| {
        failed("malformed", format!("{} holds no readable CloudEvent: {}", file.display(), reason.message))
    })?;
    if *event.entity.machine != *machine {
        let message = format!("the event is for the machine `{}`, and the rules are `{machine}`", event.entity.machine);
        return Err(failed("other-machine", message));
    }
    Ok(event)
}

struct Shown<'a> {
    rules: &'a LoadedRules,
    from: Option<&'a str>,
    migrated: bool,
    fuel: u64,
    answer: Answered,
}

impl Shown<'_> {
    fn verdict(&self) -> (&'static str, Option<Reason>) {
        match &self.answer.1 {
            Ok(Ok(_)) => ("applied", None),
            Ok(Err(Rejection::Illegal(reason))) => ("illegal", Some(reason.clone())),
            Ok(Err(Rejection::Malformed(reason))) => ("malformed", Some(reason.clone())),
            Ok(Err(Rejection::Waiting(_))) => ("deferred", Some(Reason::new("waiting", self.waits()))),
            Err(fault) => ("fault", Some(fault.clone().into())),
        }
    }

    fn waits(&self) -> String {
        let Ok(Err(Rejection::Waiting(on))) = &self.answer.1 else { return String::new() };
        let on: Vec<String> = on.iter().map(|d| format!("{}@{}", show::entity(&d.entity), d.version)).collect();
        format!("until {}", on.join(", "))
    }

    fn transition(&self) -> Option<&Transition> {
        self.answer.1.as_ref().ok()?.as_ref().ok()
    }

    fn due(&self, when: When) -> String {
        show::time(match when {
            When::At(at) => at,
            When::After(wait) => self.answer.0.saturating_add_unsigned(wait),
        })
    }

    fn json(&self) -> Object {
        let (verdict, reason) = self.verdict();
        let transition = self.transition().map(|t| {
            let effects: Vec<Object> = t.effects.iter().map(|effect| self.effect(effect)).collect();
            Object::new()
                .put("state", &t.state)
                .and(show::data_members(&t.data))
                .put("effects", effects)
                .put("notes", &t.notes)
        });
        Object::new()
            .put("verdict", verdict)
            .put("code", reason.as_ref().map(|r| &r.code))
            .put("message", reason.as_ref().map(|r| &r.message))
            .put("previous_state", self.from)
            .put("migrated", self.migrated)
            .put("transition", transition)
            .put("fuel", self.fuel)
            .put("fuel_limit", self.rules.limits().fuel)
            .put("rules", self.rules.digest().to_string())
    }

    fn effect(&self, effect: &Effect) -> Object {
        match effect {
            Effect::Send(Message { topic, kind, key, content_type, attributes, data }) => {
                let attributes: std::collections::BTreeMap<_, _> = attributes.iter().cloned().collect();
                Object::new()
                    .put("effect", "send")
                    .put("topic", topic)
                    .put("type", kind)
                    .put("key", key.as_deref().map(show::key))
                    .put("content_type", content_type)
                    .put("attributes", attributes)
                    .and(show::data_members(data))
            }
            Effect::Start { name, when } => {
                Object::new().put("effect", "start").put("timer", name).put("due", self.due(*when))
            }
            Effect::Cancel(name) => Object::new().put("effect", "cancel").put("timer", name),
        }
    }

    fn text(&self) -> String {
        let (verdict, reason) = self.verdict();
        let mut lines = vec![match (&reason, self.transition()) {
            (Some(reason), _) => format!("{verdict} ({}): {}", reason.code, reason.message),
            (None, transition) => {
                let to = transition.map_or("", |t| &t.state);
                format!("{verdict}: {} → {to}", self.from.unwrap_or("(new)"))
            }
        }];
        let mut line = |name: &str, value: String| lines.push(format!("  {name:<8} {value}"));
        if self.migrated {
            line("data", "was migrated to the rules' schema first".to_owned());
        }
        if let Some(transition) = self.transition() {
            line("data", show::data(&transition.data));
            for effect in &transition.effects {
                match effect {
                    Effect::Send(m) => line("send", format!("{} on {}: {}", m.kind, m.topic, show::data(&m.data))),
                    Effect::Start { name, when } => line("start", format!("{name}, due {}", self.due(*when))),
                    Effect::Cancel(name) => line("cancel", name.clone()),
                }
            }
            transition.notes.iter().for_each(|note| line("note", note.clone()));
        }
        line("fuel", format!("{} of {}", self.fuel, self.rules.limits().fuel));
        line("rules", self.rules.digest().to_string());
        lines.iter().map(|line| format!("{}\n", plain(line))).collect()
    }
}
