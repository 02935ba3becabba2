//! `rules dev`: builds, tells the scenarios, and does so again whenever a file changes.
//!
//! Files are looked at ten times a second. Notices of the system would save that, and do not come from folders that
//! are shared over a network or with a container. What is built is what is shipped: the same profile, the component itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use seqgate_scenario as scenario;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::context::{Context, wasm};
use crate::cli::failure::{FAILED, Shown};
use crate::cli::output;
use crate::rules::build::build_from;
use crate::rules::{Allocation, Engine, Limits, LoadedRules};

use super::author;
use super::subject::Component;

/// How often files are looked at; also how long they must rest before a build, as an editor writes several.
const LOOK: Duration = Duration::from_millis(100);
const REST: Duration = Duration::from_millis(30);

/// Builds and tells until it is stopped; or once.
pub async fn run(ctx: &Context, folder: &Path, once: bool) -> anyhow::Result<ExitCode> {
    let engine = wasm(Allocation::OnDemand)?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let watched = async {
        let mut sources = Vec::new();
        loop {
            // Taken before the build: what changes meanwhile is built again.
            let mut seen = look(folder, &sources);
            let holds = round(ctx, &engine, folder, &mut sources).await?;
            if once {
                return Ok(ExitCode::from(if holds { 0 } else { FAILED }));
            }
            // Other crates' sources are known by name only now.
            for (file, stamp) in look(folder, &sources) {
                if sources.contains(&file) {
                    seen.entry(file).or_insert(stamp);
                }
            }
            eprintln!("waiting for a change in {}; Ctrl-C ends it", folder.display());
            change(folder, &sources, &seen).await;
        }
    };
    // Cargo is in the terminal's foreground too, and stops by the same Ctrl-C.
    tokio::select! {
        ended = watched => ended,
        _ = terminate.recv() => Ok(ExitCode::SUCCESS),
        _ = interrupt.recv() => Ok(ExitCode::SUCCESS),
    }
}

/// Builds and tells once, and says what came of it. Whether all is well.
async fn round(ctx: &Context, engine: &Engine, folder: &Path, sources: &mut Vec<PathBuf>) -> anyhow::Result<bool> {
    let started = Instant::now();
    let (engine, path) = (engine.clone(), folder.to_owned());
    let told = tokio::task::spawn_blocking(move || tell(&engine, &path)).await?;
    let took = started.elapsed();
    let told = match told {
        Ok((told, from)) => {
            *sources = from;
            told
        }
        Err(error) => {
            let shown = Shown::of(&error);
            if ctx.json {
                output::print(shown.json().put("ms", millis(took)))?;
            } else {
                // Cargo's own message is above, on the same stream.
                eprintln!("error: {}", shown.message);
            }
            return Ok(false);
        }
    };
    let Told { report, digest, bytes } = &told;
    if ctx.json {
        output::print(author::json(report, *digest).put("size", bytes).put("ms", millis(took)))?;
    } else {
        output::print(report)?;
        output::print(format!("{digest}  {bytes} bytes  {:.1} s", took.as_secs_f64()))?;
    }
    Ok(report.is_ok())
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

struct Told {
    report: scenario::Report,
    digest: seqgate_decide::ids::Digest,
    bytes: usize,
}

fn tell(engine: &Engine, folder: &Path) -> anyhow::Result<(Told, Vec<PathBuf>)> {
    let (prepared, sources) = build_from(folder)?;
    let loaded = LoadedRules::load(engine, &prepared, Limits::default(), None)?;
    let stories = scenario::load(&folder.join("scenarios"))?;
    let report = scenario::run(&mut Component::new(&loaded), &stories);
    Ok((Told { report, digest: loaded.digest(), bytes: prepared.component().len() }, sources))
}

/// Files with what tells one content from another.
type Seen = BTreeMap<PathBuf, Option<(SystemTime, u64)>>;

/// Returns once something is not as it was and has come to rest.
async fn change(folder: &Path, sources: &[PathBuf], seen: &Seen) {
    while look(folder, sources) == *seen {
        tokio::time::sleep(LOOK).await;
    }
    loop {
        let before = look(folder, sources);
        tokio::time::sleep(REST).await;
        if look(folder, sources) == before {
            return;
        }
    }
}

/// The machine's folder, the manifests above it, and what else its component is made from.
fn look(folder: &Path, sources: &[PathBuf]) -> Seen {
    let mut seen = Seen::new();
    // Absolute, as cargo names its sources.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    enter(&folder, &mut seen);
    let above = folder.ancestors().skip(1).take(4).flat_map(|f| [f.join("Cargo.toml"), f.join("Cargo.lock")]);
    for file in above.chain(sources.iter().cloned()) {
        let stamp = stamp(&file);
        seen.insert(file, stamp);
    }
    seen
}

/// A file that goes while we look is one that is not there.
fn enter(folder: &Path, seen: &mut Seen) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let hidden = name.to_string_lossy().starts_with('.');
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && !hidden && name != "target" => enter(&path, seen),
            Ok(kind) if kind.is_file() && !hidden => drop(seen.insert(path.clone(), stamp(&path))),
            _ => {}
        }
    }
}

fn stamp(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
