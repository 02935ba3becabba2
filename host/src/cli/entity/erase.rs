//! `entity erase`: what an entity held is forgotten, that it was is not.

use clap::Args;
use seqgate_decide::decide::{Action, Erase as Wish, Input};
use seqgate_decide::ids::{EntityId, Position, Ref};
use seqgate_decide::writes::DeadStatus;

use crate::cli::context::{By, Context, Named, Site};
use crate::cli::failure::usage;
use crate::cli::output::Object;
use crate::cli::{decide, show};
use crate::runner::Act;
use crate::store::views::{DeadFilter, OutboxFilter, OutboxStatus, Page};

/// Remove an entity's contents
#[derive(Args, Debug)]
pub struct Erase {
    #[command(flatten)]
    named: Named,
    /// Also while it is in a state that is not terminal
    #[arg(long)]
    live: bool,
    #[command(flatten)]
    by: By,
}

impl Erase {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let by = self.by.actor();
        if by.reason.trim().is_empty() {
            return Err(usage("usage", "what is erased cannot be brought back; say why, with --reason"));
        }
        let site = ctx.open().await?;
        let id = self.named.id()?;
        site.machine(&id.machine)?;
        let envelopes = envelopes(&site, &id).await?;
        let (engine, mut machines) = site.decider(ctx).await?;
        let action = Action::Erase(Wish { entity: id.clone(), live: self.live, envelopes });
        let decision = engine.act(&mut machines, &Input::Person { by, action }, Act::Other).await?;
        let unsent = unsent(&site, &id).await?;
        let skipped = decision.decided.len();
        let json = || {
            Object::new()
                .and(show::entity_members(&id))
                .and(decide::outcome_members(&decision.outcome))
                .put("skipped", skipped)
                .put("unsent", unsent)
        };
        let text = || {
            let mut text = format!("{} is erased; {skipped} events of it were skipped\n", show::entity(&id));
            if unsent > 0 {
                text.push_str(&format!(
                    "{unsent} messages of it are not sent yet and keep their contents: erase it again afterwards\n"
                ));
            }
            text
        };
        ctx.answer(json, text)
    }
}

/// Open malformed envelopes that name the entity.
async fn envelopes(site: &Site, id: &EntityId) -> anyhow::Result<Vec<(Ref, Position)>> {
    let filter = DeadFilter {
        machine: Some(id.machine.clone()),
        status: Some(DeadStatus::Open),
        class: Some(seqgate_decide::verdict::Verdict::Malformed),
    };
    let (mut page, mut found) = (Page::first(1000), Vec::new());
    loop {
        let listing = site.store.dead_letters(&filter, &page).await?;
        let own = listing.items.into_iter().filter(|d| d.entity.as_ref() == Some(id) && d.event.is_none());
        found.extend(own.filter_map(|d| Some((d.id, d.position?))));
        let Some(next) = listing.next else { return Ok(found) };
        page = Page::after(1000, next);
    }
}

/// How many messages of it are still owed.
async fn unsent(site: &Site, id: &EntityId) -> anyhow::Result<usize> {
    let mut count = 0;
    for status in OutboxStatus::ALL.into_iter().filter(|s| *s != OutboxStatus::Sent) {
        let filter = OutboxFilter { machine: Some(id.machine.clone()), status: Some(status) };
        let mut page = Page::first(1000);
        loop {
            let listing = site.store.outbox(&filter, &page).await?;
            count += listing.items.iter().filter(|m| m.row.entity == *id).count();
            let Some(next) = listing.next else { break };
            page = Page::after(1000, next);
        }
    }
    Ok(count)
}
