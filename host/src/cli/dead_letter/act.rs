//! What a person decides about a dead letter (R5).

use std::path::Path;

use seqgate_decide::decide::{Action, DeadTarget};
use seqgate_decide::ids::Ref;
use seqgate_decide::world::DeadKind;
use seqgate_decide::writes::DeadStatus;

use crate::cli::context::{Context, Site};
use crate::cli::decide::{event_in, person, redecode};
use crate::cli::failure::failed;
use crate::store::views::DeadDetail;

use super::{Meant, find};

pub async fn redrive(ctx: &Context, site: &Site, meant: &Meant) -> anyhow::Result<()> {
    let target = target(ctx, site, meant.id).await?;
    person(ctx, site, &meant.by, &meant.id.to_string(), Action::Redrive(target)).await
}

pub async fn skip(ctx: &Context, site: &Site, meant: &Meant) -> anyhow::Result<()> {
    let target = target(ctx, site, meant.id).await?;
    person(ctx, site, &meant.by, &meant.id.to_string(), Action::Skip(target)).await
}

pub async fn compensate(ctx: &Context, site: &Site, meant: &Meant) -> anyhow::Result<()> {
    let target = target(ctx, site, meant.id).await?;
    person(ctx, site, &meant.by, &meant.id.to_string(), Action::Compensate(target)).await
}

pub async fn replace(ctx: &Context, site: &Site, meant: &Meant, with: &Path) -> anyhow::Result<()> {
    let target = target(ctx, site, meant.id).await?;
    let Some(entity) = &target.entity else {
        let message = "a malformed envelope holds no place: send the corrected event to its source, then skip this one";
        return Err(failed("no-entity", message));
    };
    let event = event_in(ctx, site, with, &entity.machine)?;
    person(ctx, site, &meant.by, &meant.id.to_string(), Action::Replace(target, event)).await
}

/// The dead letter as the core wants it named; only an open one.
async fn target(ctx: &Context, site: &Site, id: Ref) -> anyhow::Result<DeadTarget> {
    let detail = find(ctx, site, id).await?;
    if detail.row.status != DeadStatus::Open {
        let status = detail.row.status.name();
        let open = ctx.command("dead-letter list --status open");
        return Err(failed(
            "not-open",
            format!("the dead letter {id} is {status}, and stays so; `{open}` shows open ones"),
        ));
    }
    Ok(of(site, &detail))
}

fn of(site: &Site, detail: &DeadDetail) -> DeadTarget {
    let row = &detail.row;
    let envelope = match (&row.raw, &row.position, &row.event) {
        (Some(raw), Some(position), None) if row.kind == DeadKind::Event => {
            Some((position.clone(), redecode(site, &position.source, raw, row.since)))
        }
        _ => None,
    };
    DeadTarget { id: detail.id, entity: row.entity.clone(), envelope }
}
