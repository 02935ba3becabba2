//! What a machine's author does: build, look at, draw, test. None of it needs a configuration, unless a digest is named.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use seqgate_decide::ids::Digest;
use seqgate_decide::rules::Description;
use seqgate_scenario as scenario;

use crate::cli::context::{Context, wasm};
use crate::cli::failure::{FAILED, failed, usage};
use crate::cli::output::{self, Object};
use crate::cli::show;
use crate::rules::prepare::{self, MAX_COMPONENT};
use crate::rules::{Allocation, Limits, LoadedRules, graph as draw};

use super::subject::Component;

/// What a graph is drawn for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphFormat {
    /// Graphviz
    #[default]
    Dot,
    /// Mermaid, as Markdown viewers draw it
    Mermaid,
}

pub fn build(ctx: &Context, path: &Path, output: Option<PathBuf>) -> anyhow::Result<()> {
    let prepared = crate::rules::build::build(path)?;
    let file = output.unwrap_or_else(|| {
        let folder = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut name = folder.file_name().unwrap_or("rules".as_ref()).to_owned();
        name.push(".wasm");
        name.into()
    });
    let component = prepared.component();
    std::fs::write(&file, component).with_context(|| format!("cannot write {}", file.display()))?;
    let (digest, size) = (prepare::digest(component), component.len());
    ctx.answer(
        || Object::new().put("digest", digest.to_string()).put("size", size).put("path", file.display().to_string()),
        || format!("{digest}  {size} bytes  {}", file.display()),
    )
}

/// Rules that were found by a file or a digest.
struct Found {
    description: Description,
    digest: Digest,
    size: u64,
    registered: Option<(String, i64)>,
}

async fn find(ctx: &Context, named: &str) -> anyhow::Result<Found> {
    if named.starts_with("sha256:") && !Path::new(named).exists() {
        let digest: Digest = named.parse().map_err(|e| usage("usage", format!("`{named}`: {e}")))?;
        let site = ctx.open().await?;
        let Some((record, _)) = site.store.rules(digest).await? else {
            let list = ctx.command("rules list");
            return Err(failed("no-such-rules", format!("{digest} is not registered; `{list}` shows what is")));
        };
        let description = serde_json::from_str(&record.description).context("the stored description is damaged")?;
        return Ok(Found { description, digest, size: record.size, registered: Some((record.actor, record.at)) });
    }
    let (loaded, size) = load(Path::new(named))?;
    let description = (**loaded.description()).clone();
    Ok(Found { description, digest: loaded.digest(), size, registered: None })
}

/// Compiles a file's component and asks it to describe itself.
fn load(file: &Path) -> anyhow::Result<(std::sync::Arc<LoadedRules>, u64)> {
    let bytes = read(file)?;
    let engine = wasm(Allocation::OnDemand)?;
    let refused = || failed("refused", format!("{} is not accepted", file.display()));
    let prepared = prepare::prepare(&bytes, MAX_COMPONENT).with_context(refused)?;
    let loaded = LoadedRules::load(&engine, &prepared, Limits::default(), None).with_context(refused)?;
    Ok((loaded, bytes.len() as u64))
}

/// Reads a component's file.
pub fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).map_err(|error| {
        let message =
            format!("cannot read {}: {error}; `seqgate rules build FOLDER -o FILE` makes one", file.display());
        failed("no-file", message)
    })
}

pub async fn inspect(ctx: &Context, named: &str) -> anyhow::Result<()> {
    let found = find(ctx, named).await?;
    let Found { description, digest, size, registered } = &found;
    let json = || {
        let registered =
            registered.as_ref().map(|(actor, at)| Object::new().put("actor", actor).put("at", show::time(*at)));
        Object::new()
            .put("digest", digest.to_string())
            .put("size", size)
            .put("machine", &description.name)
            .put("version", &description.version)
            .put("schema", description.schema)
            .put("reads", &description.reads)
            .put("states", &description.states)
            .put("edges", &description.edges)
            .put("registered", registered)
    };
    ctx.answer(json, || format!("{digest}, {size} bytes\n{}", draw::words(description)))
}

pub async fn graph(ctx: &Context, named: &str, format: GraphFormat) -> anyhow::Result<()> {
    let found = find(ctx, named).await?;
    let (name, text) = match format {
        GraphFormat::Dot => ("dot", draw::dot(&found.description)),
        GraphFormat::Mermaid => ("mermaid", draw::mermaid(&found.description)),
    };
    let digest = found.digest.to_string();
    ctx.answer(|| Object::new().put("digest", digest).put("format", name).put("graph", &text), || text.clone())
}

pub fn test(ctx: &Context, path: &Path, component: Option<&Path>) -> anyhow::Result<ExitCode> {
    let stories = scenario::load(&path.join("scenarios"))
        .with_context(|| failed("no-scenarios", format!("{} has no scenarios that can be told", path.display())))?;
    let engine = wasm(Allocation::OnDemand)?;
    let prepared = match component {
        Some(file) => prepare::prepare(&read(file)?, MAX_COMPONENT)?,
        None => crate::rules::build::build(path)?,
    };
    let loaded = LoadedRules::load(&engine, &prepared, Limits::default(), None)?;
    let report = scenario::run(&mut Component::new(&loaded), &stories);
    if ctx.json {
        output::print(json(&report, loaded.digest()))?;
    } else {
        output::print(&report)?;
    }
    Ok(ExitCode::from(if report.is_ok() { 0 } else { FAILED }))
}

/// What came of a machine's scenarios.
pub fn json(report: &scenario::Report, digest: Digest) -> Object {
    let mismatches: Vec<Object> = report
        .mismatches
        .iter()
        .map(|m| {
            Object::new()
                .put("file", m.file.display().to_string())
                .put("title", &m.title)
                .put("step", m.step)
                .put("what", &m.what)
                .put("expected", &m.expected)
                .put("got", &m.got)
        })
        .collect();
    let untaken: Vec<String> = report.untaken.iter().map(ToString::to_string).collect();
    Object::new()
        .put("ok", report.is_ok())
        .put("digest", digest.to_string())
        .put("scenarios", report.stories)
        .put("steps", report.steps)
        .put("mismatches", mismatches)
        .put("untaken", untaken)
}
