//! Builds the machines of `machines/` for Wasm, so that `seqgate demo` carries them in its own binary.
//!
//! The core modules are embedded as the compiler made them; the host turns them into components when it loads them.
//! And embeds the SDK's sources, for `seqgate new`.

#[path = "build/sdk.rs"]
mod sdk;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

const MACHINES: [&str; 4] = ["orders", "subscriptions", "accounts", "sensors"];
const TARGET: &str = "wasm32-unknown-unknown";

/// A stack of 128 KiB instead of 1 MiB, as `seqgate rules build` has it: it is wiped after every decision.
const LINKER: &str = "target.wasm32-unknown-unknown.rustflags=[\"-Clink-arg=-zstack-size=131072\"]";

/// What an outer cargo, clippy or a CI's flags mean for the host, and not for the guests. (Flags in the environment would
/// also replace those of [`LINKER`].)
const NOT_FOR_GUESTS: [&str; 3] = ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER"];

fn main() -> ExitCode {
    let (Some(out), Some(host)) = (path("OUT_DIR"), path("CARGO_MANIFEST_DIR")) else {
        return failed("cargo has set neither OUT_DIR nor CARGO_MANIFEST_DIR");
    };
    let Some(root) = host.parent() else { return failed("the host's folder has no parent") };
    watch(root);
    sdk::watch(root);
    let cargo = PathBuf::from(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let built = if is_clippy() { placeholders(&out) } else { guests(root, &out) };
    match built.and_then(|()| sdk::embed(root, &out, (!is_clippy()).then_some(&*cargo))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => failed(&message),
    }
}

fn failed(message: &str) -> ExitCode {
    println!("cargo::error={}", message.replace('\n', " "));
    ExitCode::FAILURE
}

fn path(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from)
}

/// What guests are made of, and nothing else: an unchanged tree runs nothing.
fn watch(root: &Path) {
    let mut parts = vec!["guest-sdk/src".into(), "guest-sdk/wit".into(), "guest-sdk/Cargo.toml".into()];
    for machine in MACHINES {
        parts.push(format!("machines/{machine}/src"));
        parts.push(format!("machines/{machine}/Cargo.toml"));
    }
    parts.extend(["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "host/build.rs"].map(String::from));
    for part in parts {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    println!("cargo::rerun-if-env-changed=RUSTC_WORKSPACE_WRAPPER");
}

/// Clippy reads code and runs none: it needs files that are there, not what is in them.
fn is_clippy() -> bool {
    let clippy = |name: &OsStr| name.to_string_lossy().contains("clippy");
    env::var_os("RUSTC_WORKSPACE_WRAPPER").is_some_and(|wrapper| clippy(&wrapper))
}

fn placeholders(out: &Path) -> Result<(), String> {
    MACHINES.iter().try_for_each(|machine| write(out, machine, &[]))
}

fn guests(root: &Path, out: &Path) -> Result<(), String> {
    let folder = out.join("guests");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.current_dir(root).stdin(Stdio::null());
    command.args(["build", "--locked", "--lib", "--profile=guest", "--target", TARGET, "--config", LINKER]);
    command.arg("--target-dir").arg(&folder);
    command.args(MACHINES.iter().flat_map(|machine| ["--package", machine]));
    for name in NOT_FOR_GUESTS {
        command.env_remove(name);
    }
    if env::var("RUSTC_WRAPPER").is_ok_and(|wrapper| wrapper.contains("clippy")) {
        command.env_remove("RUSTC_WRAPPER");
    }
    let output = command.output().map_err(|error| format!("cannot run {}: {error}", cargo.to_string_lossy()))?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return Err(if has_target(root) {
            format!("the machines could not be built for {TARGET} ({}); cargo's message is below", output.status)
        } else {
            format!("the compiler cannot build for {TARGET}; run `rustup target add {TARGET}`, then try again")
        });
    }
    for machine in MACHINES {
        let module = folder.join(TARGET).join("guest").join(format!("{machine}.wasm"));
        let bytes = fs::read(&module).map_err(|error| format!("cannot read {}: {error}", module.display()))?;
        write(out, machine, &bytes)?;
    }
    Ok(())
}

fn write(out: &Path, machine: &str, bytes: &[u8]) -> Result<(), String> {
    let path = out.join(format!("{machine}.wasm"));
    fs::write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Asked only after a failure: rustup may bring the target by itself while cargo runs.
fn has_target(root: &Path) -> bool {
    let mut command = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    command.args(["--print=target-libdir", "--target", TARGET]).current_dir(root).stderr(Stdio::null());
    let Ok(output) = command.output() else { return true };
    Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
}
