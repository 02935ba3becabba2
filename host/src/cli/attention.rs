//! What needs a person, the oldest first, each with the command to type next.

use std::collections::BTreeSet;

use seqgate_decide::writes::{AlarmKind, DeadStatus};

use super::context::Context;
use super::output::{Object, plain};
use super::show;
use crate::config::units::span;
use crate::store::Store;
use crate::store::views::{AlarmItem, ConflictItem, DeadFilter, DeadItem, Gap, Page, Status};

/// How many gaps are looked through for the oldest; their list is by address.
const GAPS: u32 = 1000;

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// `dead-letter`, `conflict`, `gap`, `ghost` or `alarm`.
    pub kind: &'static str,
    /// Since when, in host time.
    pub since: i64,
    /// What it is about.
    pub subject: String,
    /// What happened.
    pub message: String,
    /// What to type next.
    pub command: String,
}

impl Need {
    /// As JSON.
    pub fn json(&self) -> Object {
        Object::new()
            .put("kind", self.kind)
            .put("since", show::time(self.since))
            .put("subject", &self.subject)
            .put("message", &self.message)
            .put("command", &self.command)
    }
}

/// At most so many, and how many there are besides.
pub async fn find(ctx: &Context, store: &dyn Store, status: &Status, most: usize) -> anyhow::Result<(Vec<Need>, u64)> {
    let page = Page::first(u32::try_from(most).unwrap_or(u32::MAX));
    let open = DeadFilter { status: Some(DeadStatus::Open), ..DeadFilter::default() };
    let dead = store.dead_letters(&open, &page).await?.items;
    let conflicts = store.conflicts(None, true, &page).await?.items;
    let gaps = store.gaps(None, &Page::first(GAPS)).await?.items;
    // Dead letters and conflicts say the same themselves.
    let said = [AlarmKind::Parked.name(), AlarmKind::Conflict.name()];
    let alarms = store.alarms(true, &page).await?.items;
    let alarms: Vec<AlarmItem> = alarms.into_iter().filter(|a| !said.contains(&a.kind.as_str())).collect();
    let all = status.dead_letters.count + status.conflicts.count + (gaps.len() + alarms.len()) as u64;
    let mut needs: Vec<Need> = dead.iter().map(|item| dead_letter(ctx, item)).collect();
    needs.extend(conflicts.iter().map(|item| conflict(ctx, item)));
    needs.extend(alarms.iter().map(|item| alarm(ctx, item)));
    let mut ghosts = BTreeSet::new();
    for item in &gaps {
        if item.version == 0 {
            ghosts.insert(item.entity.clone());
        }
        needs.push(gap(ctx, item));
    }
    needs.sort_by(|a, b| (a.since, &a.subject).cmp(&(b.since, &b.subject)));
    needs.truncate(most);
    let more = all.saturating_sub(needs.len() as u64);
    Ok((needs, more))
}

fn dead_letter(ctx: &Context, item: &DeadItem) -> Need {
    let subject = match (&item.entity, &item.position) {
        (Some(entity), _) => show::entity(entity),
        (None, Some(position)) => position.to_string(),
        (None, None) => item.id.to_string(),
    };
    let what = match (&item.event_kind, item.version) {
        (Some(kind), Some(version)) => format!("{kind} at version {version}"),
        (Some(kind), None) => kind.to_string(),
        (None, _) if item.entity.is_none() => "an envelope".to_owned(),
        (None, _) => format!("a {}", item.kind.name()),
    };
    let holds = if item.blocks { "; what comes after it waits" } else { "" };
    let message = format!("{what} was refused as {} ({}): {}{holds}", item.class, item.code, item.message);
    Need {
        kind: "dead-letter",
        since: item.since,
        subject,
        message,
        command: ctx.command(&format!("dead-letter show {}", item.id)),
    }
}

fn conflict(ctx: &Context, item: &ConflictItem) -> Need {
    let message = format!("{} {} conflicts ({}): {}", item.kind, item.key.id, item.code, item.message);
    Need {
        kind: "conflict",
        since: item.since,
        subject: show::entity(&item.entity),
        message,
        command: ctx.command(&format!("conflict show {}", item.id)),
    }
}

fn gap(ctx: &Context, item: &Gap) -> Need {
    let missing = if item.from == item.to {
        format!("version {} never came", item.from)
    } else {
        format!("versions {} to {} never came", item.from, item.to)
    };
    let (kind, stands) = match item.version {
        0 => ("ghost", "it has no event yet".to_owned()),
        version => ("gap", format!("it stands at version {version}")),
    };
    let entity = &item.entity;
    Need {
        kind,
        since: item.since,
        subject: show::entity(entity),
        message: format!("{missing}; {stands}"),
        command: ctx.command(&format!("entity explain {} {}", entity.machine, show::key_argument(&entity.key))),
    }
}

fn alarm(ctx: &Context, item: &AlarmItem) -> Need {
    Need {
        kind: "alarm",
        since: item.since,
        subject: item.subject.clone(),
        message: format!("{}: {}", item.kind, item.message),
        command: ctx.command("alarm list"),
    }
}

/// For people: a paragraph, or that there is nothing.
pub fn text(needs: &[Need], more: u64, now: i64) -> String {
    if needs.is_empty() {
        return "Nothing needs you.\n\n".to_owned();
    }
    let mut text = String::from("Needs you, the oldest first:\n");
    for need in needs {
        let (age, subject, message) = (span(now - need.since), plain(&need.subject), plain(&need.message));
        text.push_str(&format!("  {subject}, for {age}: {message}\n    {}\n", need.command));
    }
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    text.push('\n');
    text
}
