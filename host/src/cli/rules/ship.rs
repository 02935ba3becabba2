//! What goes into the store: components, and which of them decides (R8).

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use seqgate_decide::ids::Digest;
use seqgate_decide::rules::Description;

use crate::cli::context::{By, Context, Paging, Site, wasm};
use crate::cli::failure::failed;
use crate::cli::output::Object;
use crate::cli::show;
use crate::rules::prepare::{self, MAX_COMPONENT};
use crate::rules::{Allocation, Limits, LoadedRules};
use crate::store::registry::RulesRecord;

use super::author::read;

/// One sentence for each machine whose configured file is not what decides, with the command that ships it.
pub async fn differences(ctx: &Context, site: &Site) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for machine in &site.config.machines {
        let name = &machine.setup.name;
        let (Some(path), Some((number, active))) = (&machine.rules, site.store.active(name).await?) else { continue };
        // Without a file there is nothing to ship; what decides is in the store.
        let Ok(bytes) = std::fs::read(path) else { continue };
        let digest = prepare::digest(&bytes);
        if digest == active {
            continue;
        }
        let next = match site.store.rules(digest).await? {
            Some(_) => ctx.command(&format!("rules activate {digest}")),
            None => ctx.command(&format!("rules register {}", show::quoted(&path.display().to_string()))),
        };
        found.push(format!(
            "machine {name}: {} is not what decides (that is {active}, activation {number}); to ship it: {next}",
            path.display()
        ));
    }
    Ok(found)
}

pub async fn register(ctx: &Context, file: &Path, by: &By) -> anyhow::Result<()> {
    let config = ctx.load()?;
    let bytes = read(file)?;
    let refused = || failed("refused", format!("{} is not registered", file.display()));
    let machine: Arc<str> = {
        let engine = wasm(Allocation::OnDemand)?;
        let prepared = prepare::prepare(&bytes, MAX_COMPONENT).with_context(refused)?;
        let loaded = LoadedRules::load(&engine, &prepared, Limits::default(), None).with_context(refused)?;
        loaded.description().name.as_str().into()
    };
    let site = ctx.open_or_make(config).await?;
    let (components, actor) = (site.components(Allocation::OnDemand)?, by.actor());
    let known = site.store.rules(prepare::digest(&bytes)).await?.is_some();
    let loaded = components.register(&machine, &bytes, &actor.name, ctx.clock.now()).await.with_context(refused)?;
    let (digest, version) = (loaded.digest(), loaded.description().version.clone());
    if !known {
        let subject = format!("{digest} of {machine}");
        site.audit(ctx, actor, "rules register", subject, format!("version {version}")).await?;
    }
    let next = ctx.command(&format!("rules activate {digest}"));
    ctx.answer(
        || {
            Object::new()
                .put("digest", digest.to_string())
                .put("machine", &*machine)
                .put("version", &version)
                .put("new", !known)
        },
        || {
            let what = if known { "was registered before" } else { "registered; events are decided as before" };
            format!("{machine} {version}, {digest}: {what}\nNext: {next}")
        },
    )
}

pub async fn list(ctx: &Context, machine: Option<&str>, paging: &Paging) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    let listing = site.store.list_rules(machine, &ctx.page(paging)).await?;
    let mut active = std::collections::BTreeMap::new();
    for record in &listing.items {
        if !active.contains_key(&record.machine) {
            active.insert(record.machine.clone(), site.store.active(&record.machine).await?);
        }
    }
    let number = |record: &RulesRecord| {
        active.get(&record.machine).copied().flatten().filter(|(_, d)| *d == record.digest).map(|(n, _)| n)
    };
    let version = |record: &RulesRecord| {
        serde_json::from_str::<Description>(&record.description).map(|d| d.version).unwrap_or_default()
    };
    let now = ctx.clock.now();
    let row = |r: &RulesRecord| {
        let active = number(r).map_or_else(|| "-".to_owned(), |n| format!("activation {n}"));
        let (size, at) = (r.size.to_string(), show::since(r.at, now));
        vec![r.machine.to_string(), version(r), active, r.digest.to_string(), size, at, r.actor.clone()]
    };
    let json = |r: &RulesRecord| {
        Object::new()
            .put("digest", r.digest.to_string())
            .put("machine", &*r.machine)
            .put("version", version(r))
            .put("size", r.size)
            .put("active", number(r).is_some())
            .put("activation", number(r))
            .put("actor", &r.actor)
            .put("at", show::time(r.at))
    };
    ctx.list(&listing, &["MACHINE", "VERSION", "IN FORCE", "DIGEST", "BYTES", "REGISTERED", "BY"], row, json)
}

pub async fn activate(ctx: &Context, digest: Digest, by: &By) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    put_in_force(ctx, &site, digest, None, by, "rules activate").await
}

pub async fn rollback(ctx: &Context, machine: &str, to: Option<Digest>, by: &By) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    let name = site.machine(machine)?.setup.name.clone();
    let activations = site.store.activations(&name).await?;
    let Some(current) = activations.first() else {
        let message = format!("no rules of {name} were ever in force; `{}` does that", ctx.command("run"));
        return Err(failed("no-rules", message));
    };
    let before = || activations.iter().map(|a| a.digest).find(|d| *d != current.digest);
    let Some(digest) = to.or_else(before) else {
        let message = format!("{name} has no rules before {}; `{}`", current.digest, ctx.command("rules list"));
        return Err(failed("no-earlier-rules", message));
    };
    put_in_force(ctx, &site, digest, Some(&name), by, "rules rollback").await
}

/// Activates what is registered, can be loaded here, and is of a configured machine (R8).
async fn put_in_force(
    ctx: &Context,
    site: &Site,
    digest: Digest,
    machine: Option<&Arc<str>>,
    by: &By,
    action: &str,
) -> anyhow::Result<()> {
    let Some((record, bytes)) = site.store.rules(digest).await? else {
        let next = ctx.command("rules register FILE");
        return Err(failed("no-such-rules", format!("{digest} is not registered; `{next}` does that")));
    };
    let name = machine.unwrap_or(&record.machine);
    if *name != record.machine {
        let message = format!("{digest} is of machine {}, not of {name}", record.machine);
        return Err(failed("other-machine", message));
    }
    site.machine(name).with_context(|| failed("no-such-machine", format!("{digest} is not activated")))?;
    let before = site.store.active(name).await?;
    let components = site.components(Allocation::OnDemand)?;
    let prepared = prepare::prepare(&bytes, MAX_COMPONENT).context("the stored component is not accepted any more")?;
    // Whoever cannot load it here would pause the machine everywhere.
    components.load(name, &prepared)?;
    let (actor, at) = (by.actor(), ctx.clock.now());
    let number = match before {
        Some((number, active)) if active == digest => number,
        _ => {
            let number = site.store.activate(name, digest, &actor.name, &actor.reason, at).await?;
            let subject = format!("{digest} of {name}");
            site.audit(ctx, actor, action, subject, format!("activation {number}")).await?;
            number
        }
    };
    let previous = before.map(|(_, digest)| digest);
    ctx.answer(
        || {
            Object::new()
                .put("machine", &**name)
                .put("activation", number)
                .put("digest", digest.to_string())
                .put("previous", previous.map(|d| d.to_string()))
        },
        || match previous {
            Some(previous) if previous == digest => {
                format!("{name}: {digest} is in force already (activation {number})")
            }
            Some(previous) => {
                let back = ctx.command(&format!("rules rollback {name}"));
                format!(
                    "{name}: {digest} decides from now on (activation {number}), instead of {previous}\nBack: {back}"
                )
            }
            None => format!("{name}: {digest} decides from now on (activation {number})"),
        },
    )
}
