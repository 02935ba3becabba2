//! A machine's folder in, its component out: what `rules build` and `rules dev` do.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use super::error::Refused;
use super::prepare::{self, Prepared};

/// What rules are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// The settings of the `guest` profile, for projects that have none of their own: small, and nothing unwinds. Function
/// names stay, so that a fault can say where it happened.
const PROFILE: [&str; 7] = [
    "profile.guest.inherits=\"release\"",
    "profile.guest.opt-level=\"s\"",
    "profile.guest.lto=true",
    "profile.guest.codegen-units=1",
    "profile.guest.panic=\"abort\"",
    "profile.guest.strip=\"debuginfo\"",
    "profile.guest.debug=false",
];

/// A stack of 128 KiB instead of 1 MiB: it is wiped after every decision, and that would cost more than the decision.
/// It holds what is too large for registers; a call that runs past it traps.
const LINKER: &str = "target.wasm32-unknown-unknown.rustflags=[\"-Clink-arg=-zstack-size=131072\"]";

/// The rules were not built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No Cargo.toml, or one without a package.
    #[error(
        "{path} is no machine's folder: it has no Cargo.toml with a [package]; name the folder of a machine's crate, such as machines/orders"
    )]
    NoPackage {
        /// The folder.
        path: PathBuf,
    },
    /// The package builds no Wasm module.
    #[error(
        "the package {package} builds no Wasm module: add `crate-type = [\"cdylib\", \"rlib\"]` under [lib] of its Cargo.toml"
    )]
    NoCdylib {
        /// The package.
        package: String,
    },
    /// Cargo could not be started.
    #[error("cannot run {program}; install Rust from https://rustup.rs")]
    NoCargo {
        /// What was run.
        program: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The compiler has no standard library for Wasm.
    #[error("the compiler cannot build for {TARGET}: run `rustup target add {TARGET}`")]
    NoTarget,
    /// Cargo failed, and has said why on standard error.
    #[error("cargo could not build {package} (exit {code}); its own message is above")]
    Cargo {
        /// The package, or its folder.
        package: String,
        /// Cargo's exit code, or "by a signal".
        code: String,
    },
    /// The module was built and cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The module.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It was built and is not acceptable.
    #[error("{package} was built, but {refused}")]
    Refused {
        /// The package.
        package: String,
        /// Why.
        #[source]
        refused: Refused,
    },
}

/// Builds the machine in a folder, alone or a member of a workspace, with its `guest` profile (or the default one), and
/// checks the result as registration does, short of running it. The component's digest is that of
/// [`Prepared::component`], the bytes to be written out. Cargo's progress and messages go to this process's standard
/// error; its target directory is the project's own.
///
/// # Errors
/// [`BuildError`]; its text says what to do.
pub fn build(folder: &Path) -> Result<Prepared, BuildError> {
    build_from(folder).map(|(component, _)| component)
}

/// As [`build`]; names the files too that the component was made from, those of other local crates included.
///
/// # Errors
/// [`BuildError`]; its text says what to do.
pub fn build_from(folder: &Path) -> Result<(Prepared, Vec<PathBuf>), BuildError> {
    let package = Package::find(folder)?;
    let module = package.compile()?;
    let sources = sources(&module);
    let bytes = std::fs::read(&module).map_err(|source| BuildError::Read { path: module, source })?;
    let refused = |refused| BuildError::Refused { package: package.name.clone(), refused };
    let component = prepare::prepare(&bytes, usize::MAX).map_err(refused)?;
    let component = prepare::prepare(component.component(), prepare::MAX_COMPONENT).map_err(refused)?;
    Ok((component, sources))
}

/// What cargo notes beside a module: `MODULE: FILE FILE …`, blanks in names escaped. Without it nothing is known.
fn sources(module: &Path) -> Vec<PathBuf> {
    let notes = std::fs::read_to_string(module.with_extension("d")).unwrap_or_default();
    let files = notes.split_once(": ").map(|(_, files)| files.replace("\\ ", "\0")).unwrap_or_default();
    files.split_whitespace().map(|file| PathBuf::from(file.replace('\0', " "))).collect()
}

struct Package {
    name: String,
    id: String,
    folder: PathBuf,
    workspace: PathBuf,
}

impl Package {
    fn find(folder: &Path) -> Result<Self, BuildError> {
        let none = || BuildError::NoPackage { path: folder.to_owned() };
        let manifest = folder.join("Cargo.toml").canonicalize().map_err(|_| none())?;
        let mut command = cargo(folder);
        command.args(["metadata", "--no-deps", "--format-version=1", "--manifest-path"]).arg(&manifest);
        let metadata: Value = serde_json::from_slice(&run(&mut command, folder)?.stdout).map_err(|_| none())?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let ours = |package: &&Value| package["manifest_path"].as_str().map(Path::new) == Some(&manifest);
        let package = packages.into_iter().find(ours).ok_or_else(none)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&package["name"]);
        let cdylib = |target: &Value| target["kind"].as_array().into_iter().flatten().any(|kind| kind == "cdylib");
        if !package["targets"].as_array().into_iter().flatten().any(cdylib) {
            return Err(BuildError::NoCdylib { package: name });
        }
        let workspace = PathBuf::from(text(&metadata["workspace_root"]));
        Ok(Self { name, id: text(&package["id"]), folder: folder.to_owned(), workspace })
    }

    /// Runs cargo, and gives the path of the module that it names.
    fn compile(&self) -> Result<PathBuf, BuildError> {
        let mut command = cargo(&self.folder);
        command.args(["build", "--lib", "--profile=guest", "--target", TARGET]);
        command.args(["--message-format=json-render-diagnostics", "--package", &self.id]);
        command.args(["--config", LINKER]);
        if !self.has_profile() {
            command.args(PROFILE.iter().flat_map(|setting| ["--config", setting]));
        }
        let output = run(&mut command, Path::new(&self.name)).map_err(|error| match error {
            BuildError::Cargo { .. } if !self.has_target() => BuildError::NoTarget,
            error => error,
        })?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        let messages = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages
            .filter(|message| message["reason"] == "compiler-artifact" && message["package_id"] == self.id.as_str())
            .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
            .filter_map(|file| file.as_str().map(PathBuf::from))
            .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
            .ok_or_else(|| BuildError::NoCdylib { package: self.name.clone() })
    }

    /// Cargo reads profiles from the workspace's root alone.
    fn has_profile(&self) -> bool {
        let manifest = std::fs::read_to_string(self.workspace.join("Cargo.toml")).unwrap_or_default();
        let manifest: toml::Table = manifest.parse().unwrap_or_default();
        manifest.get("profile").and_then(|profiles| profiles.get("guest")).is_some()
    }

    /// Whether the folder's compiler has a standard library for the target. Asked only after a failure: rustup may
    /// bring the target by itself while cargo runs.
    fn has_target(&self) -> bool {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        command.args(["--print=target-libdir", "--target", TARGET]).current_dir(&self.folder).stderr(Stdio::null());
        let Ok(output) = command.output() else { return true };
        Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    }
}

/// The cargo that runs us, or the one in the path, without what an outer cargo or clippy meant for another build.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(program());
    command
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    command
}

fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn run(command: &mut Command, package: &Path) -> Result<Output, BuildError> {
    let program = || program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| BuildError::NoCargo { program: program(), source })?;
    if output.status.success() {
        return Ok(output);
    }
    let code = output.status.code().map_or("by a signal".into(), |code| code.to_string());
    Err(BuildError::Cargo { package: package.display().to_string(), code })
}
