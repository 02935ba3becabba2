//! The same histories on the real way: lines in files, the jsonl source, components, the runner, SQLite on disk, restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use seqgate::clock::Clock;
use seqgate::config::checked::LimitsConfig;
use seqgate::config::{Config, EmbeddedConfig, JsonlConfig, MachineConfig, SourceConfig};
use seqgate::ingest::Ingest;
use seqgate::rules::{Cache, EngineOptions};
use seqgate::runner::rules::Components;
use seqgate::runner::{Act as Ran, Engine, Mode, Observer, RunError, run};
use seqgate::store::views::{ConflictItem, DeadDetail, DeadFilter, DeferredFilter, EntityFilter, OutboxFilter, Page};
use seqgate::store::{self, Faults, Store};
use seqgate_decide::decide::{Action, DeadTarget, Erase, Input, OpenConflict};
use seqgate_decide::envelope::{Decoded, Limits, Received, decode};
use seqgate_decide::ids::{EntityId, Position};
use seqgate_decide::machine::Machines;
use seqgate_decide::writes::{Actor, DeadStatus};
use seqgate_model as model;
use seqgate_model::{Act, Delivery, History, Meaning, Step};

use super::{memory, names};

/// The components of the three machines, built once.
fn components() -> &'static BTreeMap<&'static str, Vec<u8>> {
    static BUILT: OnceLock<BTreeMap<&str, Vec<u8>>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machines");
        let build = |name| (name, seqgate::rules::build::build(&machines.join(name)).unwrap().component().to_vec());
        ["orders", "subscriptions", "accounts"].map(build).into()
    })
}

/// Compiled once, used by every history.
fn rules_engine() -> &'static (seqgate::rules::Engine, PathBuf) {
    static ENGINE: OnceLock<(seqgate::rules::Engine, PathBuf)> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let cache = tempfile::tempdir().unwrap().keep().join("cache");
        (seqgate::rules::Engine::new(&EngineOptions::default()).unwrap(), cache)
    })
}

/// What a run of a history came to.
pub struct RealRun {
    pub acts: model::Recorded,
    pub observed: model::Observed,
    pub redone: u64,
    pub swept: u64,
}

/// How deliveries come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Lines of files.
    Files,
    /// Through the ingest, into the store's log. The history is one [`seqgate_model::in_logs`].
    Logs,
}

/// Runs a history whose setup uses no markers.
pub async fn run_history(history: &History, way: Way, faults: Faults) -> RealRun {
    assert!(!history.setup.markers, "components know no markers");
    let folder = tempfile::tempdir().unwrap();
    let mut real = Real::open(history, folder.path(), way, faults).await;
    for (i, step) in history.steps.iter().enumerate() {
        real.step(i, step).await;
    }
    real.flush().await;
    let ready = real.engine.store.ready_entities(100).await.unwrap();
    assert_eq!(ready, [], "left ready");
    let observed = real.observed().await;
    real.engine.store.close().await.unwrap();
    if let Some(log) = &real.log {
        log.close().await.unwrap();
    }
    let acts = std::mem::take(&mut *real.acts.lock().unwrap());
    RealRun { acts, observed, redone: real.redone, swept: real.swept }
}

struct Real<'h> {
    history: &'h History,
    faults: Faults,
    folder: PathBuf,
    way: Way,
    /// The store as the ingest has it: beside the engine's, over its restarts, and without faults.
    log: Option<Arc<dyn Store>>,
    config: Config,
    engine: Engine,
    machines: Machines,
    clock: Clock,
    acts: Arc<Mutex<model::Recorded>>,
    /// What an act of the engine is called in the model while a step that is no delivery is carried out.
    current: Arc<Mutex<Option<Act>>>,
    /// Deliveries written to the files and not yet run.
    waiting: usize,
    clock_for_batch: i64,
    redone: u64,
    swept: u64,
}

impl<'h> Real<'h> {
    async fn open(history: &'h History, folder: &Path, way: Way, faults: Faults) -> Self {
        let clock = Clock::manual(0);
        let config = config(history, folder, way);
        let acts: Arc<Mutex<model::Recorded>> = Arc::default();
        let current: Arc<Mutex<Option<Act>>> = Arc::default();
        let observer = observer(history, acts.clone(), current.clone());
        for source in &config.sources {
            if let SourceConfig::Jsonl(jsonl) = source {
                std::fs::write(jsonl.path.as_ref().unwrap(), b"").unwrap();
            }
        }
        let engine = engine(&config, clock.clone(), observer, faults.clone()).await;
        let machines = engine.machines().await.unwrap();
        let log = match way {
            Way::Files => None,
            Way::Logs => Some(store::open(&config.store_url, store::Settings::default()).await.unwrap()),
        };
        Self {
            history,
            faults,
            folder: folder.to_owned(),
            way,
            log,
            config,
            engine,
            machines,
            clock,
            acts,
            current,
            waiting: 0,
            clock_for_batch: 0,
            redone: 0,
            swept: 0,
        }
    }

    async fn step(&mut self, i: usize, step: &'h Step) {
        match step {
            Step::Deliver(d) if d.replay => {
                self.flush().await;
                self.act(Act::Deliver(i), d.received, self.input(d, names::position(d), true)).await;
            }
            Step::Deliver(d) => self.deliver(d).await,
            Step::Cut => self.flush().await,
            Step::Restart => {
                self.flush().await;
                self.engine.store.close().await.unwrap();
                let observer = self.engine.observer.clone().unwrap();
                self.engine = engine(&self.config, self.clock.clone(), observer, self.faults.clone()).await;
                self.machines = self.engine.machines().await.unwrap();
            }
            Step::HandOver { source, partition } => {
                self.flush().await;
                let store = &self.engine.store;
                self.engine.patiently("acquire", || store.acquire(source, *partition, "another")).await.unwrap();
            }
            Step::Repair(d) => {
                self.flush().await;
                let source = format!("repair:{}", machine_of(d));
                let position = Position { source: source.as_str().into(), partition: 0, offset: i as u64 };
                self.act(Act::Repair(i), d.received, self.input(d, position, false)).await;
            }
            Step::Timer { entity, name, now } => {
                self.flush().await;
                let input = Input::Timer { entity: names::entity(entity), name: name.as_str().into() };
                self.act(Act::Timer(i), *now, input).await;
            }
            Step::Person(person) => {
                self.flush().await;
                self.clock.set(person.now);
                match self.person(person).await {
                    Some(input) => self.act(Act::Person(i), person.now, input).await,
                    None => self.acts.lock().unwrap().push(Act::Person(i)),
                }
            }
            Step::Migrate { entity } => {
                self.flush().await;
                self.act(Act::Migrate(i), 0, Input::Migrate(names::entity(entity))).await;
            }
            Step::Import(step) => {
                self.flush().await;
                self.act(Act::Import(i), step.now, names::import(step)).await;
            }
            Step::Deadline { now } => {
                self.flush().await;
                self.deadline(i, *now).await;
            }
            Step::Rules { .. } => panic!("only with markers"),
        }
    }

    /// Appends the line; it is run with those that follow, where nothing depends on the time of its receipt.
    async fn deliver(&mut self, d: &Delivery) {
        if self.waiting > 0 && d.received != self.clock_for_batch && self.by_the_clock(d) {
            self.flush().await;
        }
        if self.waiting == 0 {
            self.clock_for_batch = d.received;
        }
        match self.way {
            Way::Files => self.append_line(d),
            Way::Logs => self.append_entry(d).await,
        }
        self.waiting += 1;
    }

    fn append_line(&self, d: &Delivery) {
        let path = self.folder.join(format!("{}.jsonl", d.source));
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        assert_eq!(file.metadata().unwrap().len(), d.position, "offsets are byte positions");
        file.write_all(&d.bytes).unwrap();
        file.write_all(b"\n").unwrap();
    }

    /// What the ingest does with a line, until it is known to be done.
    async fn append_entry(&self, d: &Delivery) {
        self.clock.set(d.received);
        let embedded = self.config.sources.iter().find_map(|source| match source {
            SourceConfig::Embedded(embedded) if *embedded.name == *d.source => Some(embedded.clone()),
            _ => None,
        });
        let calm = self.log.clone().expect("this way has a log");
        let directory = seqgate::runner::run::directory(&self.engine.setups);
        let (ingest, task) =
            Ingest::start(embedded.unwrap(), calm, self.clock.clone(), directory, Limits::default(), false)
                .await
                .unwrap();
        let (taken, _) = ingest.take_lines(vec![d.bytes.clone()]).await.unwrap();
        assert_eq!((taken[0].partition, taken[0].offset), (d.partition, d.position));
        drop(ingest);
        task.await.unwrap();
    }

    fn by_the_clock(&self, d: &Delivery) -> bool {
        match &d.meaning {
            Meaning::Event(event) => event.time.is_none() || self.history.setup.machines[&event.machine].on_early_wait,
            Meaning::Malformed { .. } => false,
        }
    }

    async fn flush(&mut self) {
        if std::mem::take(&mut self.waiting) == 0 {
            return;
        }
        self.clock.set(self.clock_for_batch);
        let (_stop, stopped) = tokio::sync::watch::channel(false);
        let mode = Mode::UntilIdle { timers: false };
        // Deadlines of early events come by their own step.
        let report = run(&self.engine, &self.config, "test", mode, stopped).await.unwrap();
        self.redone += report.redone;
        self.swept += report.swept;
    }

    async fn act(&mut self, act: Act, now: i64, input: Input) {
        self.clock.set(now);
        *self.current.lock().unwrap() = Some(act.clone());
        match self.engine.act(&mut self.machines, &input, Ran::Other).await {
            Ok(_) => {}
            Err(RunError::Refused(_)) => self.acts.lock().unwrap().push(act),
            Err(error) => panic!("{act:?}: {error}"),
        }
        *self.current.lock().unwrap() = None;
    }

    async fn deadline(&mut self, i: usize, now: i64) {
        self.clock.set(now);
        let overdue = self.engine.store.overdue_early(now, 1000).await.unwrap();
        let entities: BTreeSet<EntityId> = overdue.into_iter().map(|e| e.entity).collect();
        self.acts.lock().unwrap().push(Act::Deadline(i, None));
        for entity in entities {
            self.engine.act(&mut self.machines, &Input::Deadline(entity), Ran::Other).await.unwrap();
        }
    }

    fn decode(&self, bytes: &[u8], received_at: i64) -> Decoded {
        let received = Received { bytes, key: None, record_time: None, received_at, machine: None };
        decode(&received, &*seqgate::runner::run::directory(&self.engine.setups), &Limits::default())
    }

    fn input(&self, d: &Delivery, position: Position, redelivered: bool) -> Input {
        match self.decode(&d.bytes, d.received) {
            Decoded::Event(event) => Input::Event { event, position, redelivered },
            Decoded::Malformed(malformed) => {
                Input::Malformed { malformed, raw: d.bytes.as_slice().into(), position, redelivered }
            }
        }
    }

    async fn person(&self, step: &model::PersonStep) -> Option<Input> {
        let action = match &step.decision {
            model::Decision::Redrive(id) => Action::Redrive(self.letter(id).await?),
            model::Decision::Skip(id) => Action::Skip(self.letter(id).await?),
            model::Decision::Compensate(id) => Action::Compensate(self.letter(id).await?),
            model::Decision::Replace(id, bytes, _) => match self.decode(bytes, step.now) {
                Decoded::Event(event) => Action::Replace(self.letter(id).await?, event),
                Decoded::Malformed(m) => panic!("a correction is readable: {m:?}"),
            },
            model::Decision::Erase(id, live) => {
                Action::Erase(Erase { entity: names::entity(id), live: *live, envelopes: Vec::new() })
            }
            model::Decision::DismissDeferred(id) => {
                let key = names::event(id);
                let waiting = self.waiting_events().await.into_iter().find(|w| w.event.key == key)?;
                Action::DismissWaiting(waiting.event.entity.clone(), waiting.id())
            }
            model::Decision::DismissConflict(id) => {
                let (_, item) = self.conflicts().await.into_iter().find(|(name, _)| name == id)?;
                if item.dismissed.is_some() {
                    return None;
                }
                let detail = self.engine.store.conflict(item.id).await.unwrap().unwrap();
                Action::DismissConflict(OpenConflict { id: item.id, event: detail.event, position: item.position })
            }
        };
        Some(Input::Person { by: Actor { name: step.actor.clone(), reason: step.reason.clone() }, action })
    }

    async fn letter(&self, id: &model::LetterId) -> Option<DeadTarget> {
        let (_, detail) = self.letters().await.into_iter().find(|(name, _)| name == id)?;
        let row = detail.row;
        if row.status != DeadStatus::Open {
            return None;
        }
        let envelope = row.raw.as_ref().map(|raw| (row.position.clone().unwrap(), self.decode(raw, row.since)));
        Some(DeadTarget { id: detail.id, entity: row.entity.clone(), envelope })
    }

    async fn waiting_events(&self) -> Vec<seqgate_decide::world::Waiting> {
        self.engine.store.deferred(&DeferredFilter::default(), &all()).await.unwrap().items
    }

    /// Dead letters by the model's names: of one subject in the order in which they were written.
    async fn letters(&self) -> Vec<(model::LetterId, DeadDetail)> {
        let mut items = self.engine.store.dead_letters(&DeadFilter::default(), &all()).await.unwrap().items;
        // A letter that is closed came before one of the same event that is not.
        items.sort_by_key(|i| (i.since, i.status == DeadStatus::Open));
        let mut seen: BTreeMap<model::LetterSubject, u32> = BTreeMap::new();
        let mut letters = Vec::new();
        for item in items {
            let detail = self.engine.store.dead_letter(item.id).await.unwrap().unwrap();
            let subject = memory::subject(&detail.row);
            let nth = seen.entry(subject.clone()).or_default();
            letters.push((model::LetterId { subject, nth: *nth }, detail));
            *nth += 1;
        }
        letters
    }

    async fn conflicts(&self) -> Vec<(model::ConflictId, ConflictItem)> {
        let mut items = self.engine.store.conflicts(None, false, &all()).await.unwrap().items;
        items.sort_by_key(|i| (i.since, i.position.clone()));
        let mut seen: BTreeMap<model::EventId, u32> = BTreeMap::new();
        let named = items.into_iter().map(|item| {
            let event = names::model_event(&item.key);
            let nth = seen.entry(event.clone()).or_default();
            let id = model::ConflictId { event, nth: *nth };
            *nth += 1;
            (id, item)
        });
        named.collect()
    }

    /// What the lists say, in the model's words.
    async fn observed(&self) -> model::Observed {
        let store = &self.engine.store;
        let mut out = model::Observed::default();
        for item in store.entities(&EntityFilter::default(), &all()).await.unwrap().items {
            if item.revision == 0 {
                continue;
            }
            let detail = store.entity(&item.id).await.unwrap().unwrap();
            let view = model::EntityView {
                state: item.state.as_deref().map(str::to_owned),
                version: item.version,
                revision: item.revision,
                seen: detail.seen.iter().map(|s| s.to_string()).collect(),
                data: model::facts(&item.id.machine, &detail.data),
                timers: detail.timers.iter().map(|(n, due)| (n.to_string(), *due)).collect(),
            };
            out.entities.insert(names::model_entity(&item.id), view);
            let rows = store.history(&item.id, &all()).await.unwrap().items;
            let revisions: BTreeSet<u64> = rows.iter().map(|r| r.revision).collect();
            assert!(revisions.into_iter().eq(1..=item.revision), "{} has gaps in its history", item.id);
        }
        for w in self.waiting_events().await {
            let view =
                model::WaitingView { entity: names::model_entity(&w.event.entity), reason: names::reason(w.reason) };
            out.waiting.insert(names::model_event(&w.event.key), view);
        }
        for (id, detail) in self.letters().await {
            out.letters.insert(id, memory::letter_view(&detail.row));
        }
        for (id, item) in self.conflicts().await {
            out.conflicts.insert(id, conflict_view(&item));
        }
        let mut messages = store.outbox(&OutboxFilter::default(), &all()).await.unwrap().items;
        messages.sort_by_key(|m| m.id);
        for item in messages {
            let row = item.row;
            let view = model::MessageView { revision: row.revision, index: row.index, topic: None, kind: row.kind };
            out.outbox.entry(names::model_entity(&row.entity)).or_default().push(view);
        }
        for id in self.ids() {
            for item in store.events(&id).await.unwrap() {
                let view = model::InboxView { verdict: names::verdict(item.verdict), deliveries: item.deliveries };
                out.inbox.insert(names::model_event(&item.key), view);
            }
        }
        for partition in store.partitions().await.unwrap() {
            for (verdict, n) in partition.verdicts.iter().filter(|(_, n)| **n > 0) {
                let key = (partition.source.to_string(), partition.partition, names::verdict(*verdict));
                out.counters.insert(key, *n);
            }
        }
        out
    }

    /// Every id that the history speaks of.
    fn ids(&self) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for step in &self.history.steps {
            match step {
                Step::Deliver(d) | Step::Repair(d) => {
                    if let Meaning::Event(event) = &d.meaning {
                        ids.insert(event.id.clone());
                    }
                }
                Step::Person(model::PersonStep { decision: model::Decision::Replace(_, _, event), .. }) => {
                    ids.insert(event.id.clone());
                }
                _ => {}
            }
        }
        ids
    }
}

fn all() -> Page {
    Page::first(100_000)
}

fn machine_of(d: &Delivery) -> String {
    match &d.meaning {
        Meaning::Event(event) => event.machine.clone(),
        Meaning::Malformed { .. } => panic!("repair brings readable events"),
    }
}

fn conflict_view(item: &ConflictItem) -> model::ConflictView {
    model::ConflictView {
        entity: names::model_entity(&item.entity),
        version: item.version,
        reason: names::conflict(&item.code),
        copies: item.copies,
        status: match item.dismissed {
            Some(_) => model::ConflictStatus::Dismissed,
            None => model::ConflictStatus::Open,
        },
    }
}

fn config(history: &History, folder: &Path, way: Way) -> Config {
    let machine = |(name, setup): (&String, &model::MachineSetup)| MachineConfig {
        setup: Arc::new(names::setup(name, setup)),
        rules: None,
        limits: LimitsConfig { time: Duration::from_millis(500), ..LimitsConfig::default() },
        many_sources: true,
        retention: seqgate::config::RetentionConfig::default(),
    };
    let source = |s: &model::SourceSetup| match way {
        Way::Files => SourceConfig::Jsonl(JsonlConfig {
            name: s.name.as_str().into(),
            path: Some(folder.join(format!("{}.jsonl", s.name))),
            machine: None,
            partitions: s.partitions,
        }),
        Way::Logs => SourceConfig::Embedded(EmbeddedConfig {
            name: s.name.as_str().into(),
            machine: None,
            partitions: s.partitions,
            retention: Duration::ZERO,
            max_size: 1 << 30,
        }),
    };
    Config {
        store_url: format!("sqlite:{}", folder.join("seqgate.db").display()),
        machines: history.setup.machines.iter().map(machine).collect(),
        sources: history.setup.sources.iter().map(source).collect(),
        // Cuts anywhere: small batches in most histories, large ones in some.
        batch: [1, 2, 3, 5, 8, 512][(history.seed % 6) as usize],
        stop_within: Duration::from_secs(10),
        data_limit: 1 << 20,
        http: None,
    }
}

async fn engine(config: &Config, clock: Clock, observer: Arc<Observer>, faults: Faults) -> Engine {
    // Shipping rules is not what breaks here.
    let calm = store::open(&config.store_url, store::Settings::default()).await.unwrap();
    let rules = provider(&calm, config);
    for machine in &config.machines {
        let name = &machine.setup.name;
        if calm.active(name).await.unwrap().is_none() {
            let loaded = rules.register(name, &components()[&**name], "test", 0).await.unwrap();
            calm.activate(name, loaded.digest(), "test", "first", 0).await.unwrap();
        }
    }
    calm.close().await.unwrap();
    let settings = store::Settings { faults, ..store::Settings::default() };
    let store = store::open(&config.store_url, settings).await.unwrap();
    let rules = Arc::new(provider(&store, config));
    let setups = Arc::new(config.machines.iter().map(|m| m.setup.clone()).collect());
    Engine { store, clock, rules, setups, observer: Some(observer) }
}

fn provider(store: &Arc<dyn Store>, config: &Config) -> Components {
    let (engine, cache) = rules_engine();
    Components::new(store.clone(), engine.clone(), Some(Cache::open(cache.clone()).unwrap()), &config.machines)
}

fn observer(history: &History, acts: Arc<Mutex<model::Recorded>>, current: Arc<Mutex<Option<Act>>>) -> Arc<Observer> {
    let mut deliveries: BTreeMap<(String, u32, u64), usize> = BTreeMap::new();
    for (i, step) in history.steps.iter().enumerate() {
        if let Step::Deliver(d) = step
            && !d.replay
        {
            deliveries.insert((d.source.clone(), d.partition, d.position), i);
        }
    }
    Arc::new(Observer::in_order(move |ran: &[Ran]| {
        for act in ran {
            let act = match act {
                Ran::Delivered(p) => {
                    let at = (p.source.to_string(), p.partition, p.offset);
                    Act::Deliver(*deliveries.get(&at).unwrap_or_else(|| panic!("{p} is no delivery")))
                }
                Ran::Released(entity) => Act::Ready(names::model_entity(entity)),
                Ran::Fired(..) | Ran::Overdue(_) => panic!("{act:?} happened by itself"),
                Ran::Other => match current.lock().unwrap().take() {
                    Some(act) => act,
                    // A deadline's entities: the act itself is on record.
                    None => continue,
                },
            };
            acts.lock().unwrap().push(act);
        }
    }))
}
