//! The built program as people run it: its file, the components of the machines, a folder with a configuration of its own,
//! and commands with deadlines. Nothing here sleeps in place of a condition: [`until`] asks again until its time is over.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// What a command may take. Generous, as the machine is shared by all tests; what hangs is found all the same.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Compiled code, beside the database.
const CACHE: &str = "seqgate.db.rules-cache";

/// Asks until there is an answer, and fails when it takes longer than [`DEADLINE`].
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The program, built once by the profile of this test, into the same target folder.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let _alone = Alone::lock();
        let folder = profile_folder();
        let profile = match folder.file_name().and_then(OsStr::to_str).unwrap() {
            "debug" => "dev",
            other => other,
        };
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["build", "--package", "seqgate", "--bin", "seqgate", "--locked", "--profile", profile]);
        finish(cargo.arg("--target-dir").arg(target()).current_dir(root()));
        folder.join("seqgate")
    })
}

/// The component of a machine in `machines/`, built once.
pub fn component(machine: &str) -> PathBuf {
    build(machine, machine, &root().join("machines").join(machine))
}

/// A machine's rules with their source changed: what a domain team ships next.
pub fn changed(name: &str, machine: &str, from: &str, to: &str) -> PathBuf {
    let folder = target().join("tmp").join("machines").join(name);
    let original = root().join("machines").join(machine);
    {
        let _alone = Alone::lock();
        let text = fs::read_to_string(original.join("src/lib.rs")).unwrap();
        assert!(text.contains(from), "the rules of {machine} do not say `{from}`");
        let text =
            text.replace(from, to).replace("seqgate_guest::scenario_tests!", "// seqgate_guest::scenario_tests!");
        let sdk = root().join("guest-sdk");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.2.0\"\nedition = \"2024\"\n\n[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n\n\
             [dependencies]\nseqgate-guest = {{ path = {:?} }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\n[workspace]\n",
            sdk.display()
        );
        fs::create_dir_all(folder.join("src")).unwrap();
        // Unchanged files keep their times, so that cargo has nothing to do.
        put(&folder.join("src/lib.rs"), text.as_bytes());
        put(&folder.join("Cargo.toml"), manifest.as_bytes());
        if !folder.join("Cargo.lock").exists() {
            fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        }
    }
    build(name, machine, &folder)
}

/// The same rules under another digest: a component may carry sections that mean nothing.
pub fn renamed(component: &Path, name: &str) -> Vec<u8> {
    let mut bytes = fs::read(component).unwrap();
    let content = [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
    bytes.extend([0, u8::try_from(content.len()).unwrap()]);
    bytes.extend(content);
    bytes
}

/// A component that was built, and its compiled code.
struct Built {
    name: String,
    component: PathBuf,
    compiled: PathBuf,
}

static BUILT: Mutex<Vec<Built>> = Mutex::new(Vec::new());

fn build(name: &str, machine: &str, folder: &Path) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = built.iter().find(|b| b.name == name) {
        return known.component.clone();
    }
    let program = binary();
    let _alone = Alone::lock();
    let component = target().join("tmp").join(format!("{name}.wasm"));
    let new = component.with_extension("new");
    let mut command = Command::new(program);
    command.args(["rules", "build"]).arg(folder).arg("-o").arg(&new);
    finish(command.current_dir(root()).env("CARGO_TARGET_DIR", target()));
    // Other test processes may be reading the old one.
    fs::rename(&new, &component).unwrap();
    let compiled = compile(machine, &component);
    built.push(Built { name: name.to_owned(), component: component.clone(), compiled });
    component
}

/// Compiles a component in a site of its own, so that no other site has to. In a debug build that is the slowest part.
fn compile(machine: &str, component: &Path) -> PathBuf {
    let site = Site { folder: tempfile::tempdir().unwrap() };
    site.configure(&machine_with(machine, component, ""));
    site.seqgate(&["run", "--until-idle"]).exits(0);
    let made = fs::read_dir(site.path(CACHE)).unwrap().next().expect("compiled code is kept").unwrap();
    let folder = target().join("tmp").join("compiled");
    fs::create_dir_all(&folder).unwrap();
    let kept = folder.join(made.file_name());
    fs::copy(made.path(), &kept).unwrap();
    kept
}

/// Runs a build to its end, and shows what it said when it fails.
fn finish(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = || [output.stdout.as_slice(), &output.stderr].map(String::from_utf8_lossy).concat();
    assert!(output.status.success(), "{command:?} failed, {}:\n{}", output.status, said());
}

fn put(path: &Path, bytes: &[u8]) {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::write(path, bytes).unwrap();
    }
}

/// `target/debug`, or what else this test was built into.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().to_owned()
}

fn target() -> PathBuf {
    profile_folder().parent().unwrap().to_owned()
}

/// One build at a time, whoever runs these tests.
struct Alone {
    _locked: File,
}

impl Alone {
    fn lock() -> Self {
        let folder = target().join("tmp");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("seqgate-tests.lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
        file.lock().unwrap();
        Self { _locked: file }
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Done {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Its exit code; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails unless it ended so.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}\n{}", self.out, self.err);
        self
    }

    /// Fails unless its messages say so.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text) || self.out.contains(text), "no `{text}` in:\n{}\n{}", self.out, self.err);
        self
    }

    /// Its answer.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}:\n{}\n{}", self.out, self.err))
    }
}

/// A command under way. It does not outlive its test.
pub struct Running {
    child: Child,
    out: Gathered,
    err: Gathered,
}

impl Running {
    fn start(command: &mut Command, stdin: Stdio) -> Self {
        let piped = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, out: Gathered::new(out), err: Gathered::new(err) }
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has told people so far.
    pub fn told(&self) -> String {
        self.err.text()
    }

    /// Its standard input, once.
    pub fn stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal by its name: `TERM`, `INT`.
    pub fn signal(&self, name: &str) {
        finish(Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()));
    }

    /// SIGKILL, and the end of it.
    pub fn kill(mut self) -> Done {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Its end, which has to come.
    #[track_caller]
    pub fn wait(mut self) -> Done {
        drop(self.child.stdin.take());
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > DEADLINE => panic!("it did not end within {DEADLINE:?}: {}", self.told()),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        Done { status, out: self.out.end(), err: self.err.end() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream that is read as it comes, so that its writer never waits.
struct Gathered {
    bytes: Arc<Mutex<Vec<u8>>>,
    task: Option<JoinHandle<()>>,
}

impl Gathered {
    fn new(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = bytes.clone();
        let task = std::thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut part) {
                into.lock().unwrap().extend_from_slice(&part[..n]);
            }
        });
        Self { bytes, task: Some(task) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn end(&mut self) -> String {
        self.task.take().unwrap().join().unwrap();
        self.text()
    }
}

/// A folder with a configuration, a file of events and a database of its own.
pub struct Site {
    folder: TempDir,
}

impl Site {
    /// A site with this configuration, behind its `[store]`.
    pub fn new(config: &str) -> Self {
        let site = Self { folder: tempfile::Builder::new().prefix("seqgate-").tempdir().unwrap() };
        site.configure(config);
        site.write(&[]);
        DirBuilder::new().mode(0o700).create(site.path(CACHE)).unwrap();
        for built in BUILT.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let name = built.compiled.file_name().unwrap();
            fs::copy(&built.compiled, site.path(CACHE).join(name)).unwrap();
        }
        site
    }

    /// Writes another configuration.
    pub fn configure(&self, config: &str) {
        let text = format!("[store]\nurl = \"sqlite:{}\"\n\n{config}", self.path("seqgate.db").display());
        fs::write(self.path("seqgate.toml"), text).unwrap();
    }

    /// A file of this site.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces the content of the file of events.
    pub fn write(&self, lines: &[String]) {
        fs::write(self.path("events.jsonl"), text(lines)).unwrap();
    }

    /// Appends whole lines to it.
    pub fn append(&self, lines: &[String]) {
        self.append_bytes(text(lines).as_bytes());
    }

    /// Appends to it as it is.
    pub fn append_bytes(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(self.path("events.jsonl")).unwrap();
        file.write_all(bytes).unwrap();
    }

    /// Another file beside it.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.path(name).display().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).arg("--config").arg(self.path("seqgate.toml")).current_dir(self.folder.path());
        command
    }

    /// Starts a command.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args), Stdio::null())
    }

    /// Starts a command whose standard input is ours.
    pub fn start_with_stdin(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args), Stdio::piped())
    }

    /// Runs a command to its end.
    #[track_caller]
    pub fn seqgate(&self, args: &[&str]) -> Done {
        self.start(args).wait()
    }

    /// Runs a command that has to succeed, and gives its answer in JSON.
    #[track_caller]
    pub fn ask(&self, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        self.seqgate(&args).exits(0).json()
    }

    /// Runs a command that has to fail, and gives its error in JSON.
    #[track_caller]
    pub fn refused(&self, code: i32, args: &[&str]) -> Value {
        let args = [args, &["--json"]].concat();
        let done = self.seqgate(&args).exits(code);
        assert_eq!(done.out, "", "a failure answers nothing");
        let last = done.err.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|e| panic!("{e}:\n{}", done.err))
    }

    /// `run --until-idle`, and what it says about itself.
    #[track_caller]
    pub fn run(&self) -> Value {
        self.ask(&["run", "--until-idle"])
    }

    /// The items of a list.
    #[track_caller]
    pub fn list(&self, args: &[&str]) -> Vec<Value> {
        let answer = self.ask(args);
        assert!(answer.get("next").is_some(), "a list has a `next`: {answer}");
        answer["items"].as_array().expect("a list has items").clone()
    }

    /// The verdicts that were given, without zeros.
    #[track_caller]
    pub fn verdicts(&self) -> Value {
        let mut verdicts = self.ask(&["status"])["verdicts"].take();
        verdicts.as_object_mut().unwrap().retain(|_, n| n != 0);
        verdicts
    }

    /// What an entity shows.
    #[track_caller]
    pub fn entity(&self, machine: &str, key: &str) -> Value {
        self.ask(&["entity", "show", machine, key])
    }

    /// Its state, version and revision.
    #[track_caller]
    pub fn stands(&self, machine: &str, key: &str) -> (String, u64, u64) {
        let entity = self.entity(machine, key);
        let state = entity["state"].as_str().unwrap_or("-").to_owned();
        (state, entity["version"].as_u64().unwrap(), entity["revision"].as_u64().unwrap())
    }
}

fn text(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A `[[machine]]` of `machines/`, with further settings.
pub fn machine(name: &str, settings: &str) -> String {
    machine_with(name, &component(name), settings)
}

/// A `[[machine]]` with rules from a file.
pub fn machine_with(name: &str, rules: &Path, settings: &str) -> String {
    format!("[[machine]]\nname = \"{name}\"\nrules = {:?}\n{settings}\n\n", rules.display().to_string())
}

/// The `[[source]]` that reads the site's file.
pub fn events(partitions: u32) -> String {
    source("events", "events.jsonl", partitions)
}

/// A `[[source]]` that reads a file.
pub fn source(name: &str, path: &str, partitions: u32) -> String {
    format!("[[source]]\nname = \"{name}\"\nkind = \"jsonl\"\npath = \"{path}\"\npartitions = {partitions}\n\n")
}

/// A `[[source]]` that `seqgate ingest` fills.
pub fn embedded(partitions: u32) -> String {
    format!("[[source]]\nname = \"events\"\nkind = \"embedded\"\npartitions = {partitions}\n\n")
}

/// A `[run]` with a batch of this size.
pub fn batch(size: u32) -> String {
    format!("[run]\nbatch = {size}\n\n")
}

/// When events happen: so late that no timer of theirs is due while these tests run.
pub const TIME: &str = "2126-11-30T10:00:00Z";

/// An event, built by what is not usual about it.
#[derive(Clone)]
pub struct Ev {
    members: Vec<(String, String)>,
    data: String,
}

/// An event of this type about this entity: the type's noun names the machine, key and version name the event.
pub fn ev(kind: &str, key: &str) -> Ev {
    let machine = format!("{}s", kind.split('.').next().unwrap());
    let event = Ev { members: Vec::new(), data: "{}".to_owned() };
    let event = event.set("specversion", "1.0").set("id", key).set("source", "/tests").set("type", kind);
    event.set("subject", key).set("machine", &machine).set("time", TIME)
}

impl Ev {
    /// An attribute that is a text.
    pub fn set(self, name: &str, value: &str) -> Self {
        let text = Value::from(value).to_string();
        self.raw(name, &text)
    }

    /// An attribute in JSON.
    pub fn raw(mut self, name: &str, json: &str) -> Self {
        self.members.retain(|(n, _)| n != name);
        self.members.push((name.to_owned(), json.to_owned()));
        self
    }

    /// Its version, which names it too.
    pub fn v(self, version: u64) -> Self {
        let key = self.members.iter().find(|(n, _)| n == "subject").map(|(_, key)| key.trim_matches('"').to_owned());
        self.set("id", &format!("{}-{version}", key.unwrap())).raw("entityversion", &version.to_string())
    }

    /// Another id.
    pub fn id(self, id: &str) -> Self {
        self.set("id", id)
    }

    /// Its payload in JSON.
    pub fn data(mut self, json: &str) -> Self {
        json.clone_into(&mut self.data);
        self
    }

    /// The line of a file.
    pub fn line(&self) -> String {
        let members = self.members.iter().map(|(name, json)| format!("\"{name}\":{json},"));
        format!("{{{}\"data\":{}}}", members.collect::<String>(), self.data)
    }
}

/// `order.created` over 19.99.
pub fn created(key: &str) -> Ev {
    ev("order.created", key).data(r#"{"total":1999,"currency":"EUR"}"#)
}

/// `order.paid` of 19.99.
pub fn paid(key: &str) -> Ev {
    ev("order.paid", key).data(r#"{"amount":1999,"currency":"EUR"}"#)
}

/// The lines of some events.
pub fn lines<'a>(events: impl IntoIterator<Item = &'a Ev>) -> Vec<String> {
    events.into_iter().map(Ev::line).collect()
}
