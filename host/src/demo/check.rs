//! What came out, held against what was meant to.

use std::collections::BTreeMap;

use seqgate_decide::verdict::Verdict;
use serde_json::value::RawValue;

use super::stream::truth::{End, Truth};
use crate::store::views::{BlockedBy, EntityFilter, EntitySummary, OutboxFilter, Page, Status};
use crate::store::{Result, Store};

/// Items that one read brings.
const PAGE: u32 = 1_000;

/// What the store holds after the run.
#[derive(Debug)]
pub struct Found {
    /// The sums.
    pub status: Status,
    /// Messages by type.
    pub outbox: BTreeMap<String, u64>,
    /// Where it is not what was meant: a line each.
    pub differences: Vec<String>,
}

/// Reads everything that the truth speaks of, and compares.
pub async fn check(store: &dyn Store, truth: &Truth) -> Result<Found> {
    let status = store.status().await?;
    let outbox = outbox(store).await?;
    let mut differences = Vec::new();
    for verdict in Verdict::ALL {
        let of = |counts: &BTreeMap<Verdict, u64>| counts.get(&verdict).copied().unwrap_or(0);
        differ(&mut differences, verdict.name(), of(&truth.verdicts), of(&status.verdicts));
    }
    let events = truth.verdicts.values().sum();
    differ(&mut differences, "events received", events, status.received);
    let expected: BTreeMap<String, u64> = truth.outbox.iter().map(|(kind, n)| ((*kind).to_owned(), *n)).collect();
    for kind in expected.keys().chain(outbox.keys().filter(|kind| !expected.contains_key(*kind))) {
        let of = |counts: &BTreeMap<String, u64>| counts.get(kind).copied().unwrap_or(0);
        differ(&mut differences, &format!("messages `{kind}`"), of(&expected), of(&outbox));
    }
    differences.extend(entities(store, truth).await?);
    Ok(Found { status, outbox, differences })
}

fn differ(differences: &mut Vec<String>, what: &str, expected: u64, found: u64) {
    if expected != found {
        differences.push(format!("{what}: {expected} intended, {found} found"));
    }
}

async fn outbox(store: &dyn Store) -> Result<BTreeMap<String, u64>> {
    let (filter, mut page, mut counts) = (OutboxFilter::default(), Page::first(PAGE), BTreeMap::new());
    loop {
        let part = store.outbox(&filter, &page).await?;
        for item in part.items {
            *counts.entry(item.row.kind).or_default() += 1;
        }
        let Some(next) = part.next else { return Ok(counts) };
        page = Page::after(PAGE, next);
    }
}

async fn entities(store: &dyn Store, truth: &Truth) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    let mut missing = truth.entities.clone();
    let (filter, mut page) = (EntityFilter::default(), Page::first(PAGE));
    loop {
        let part = store.entities(&filter, &page).await?;
        for summary in part.items {
            let key = String::from_utf8_lossy(&summary.id.key).into_owned();
            let Some((_, end)) = take(&mut missing, &summary.id.machine, key) else {
                differences.push(format!("{}: nobody meant it to be there", summary.id));
                continue;
            };
            compare(&mut differences, store, &summary, &end).await?;
        }
        let Some(next) = part.next else { break };
        page = Page::after(PAGE, next);
    }
    differences.extend(missing.keys().map(|(machine, key)| format!("{machine}/{key}: it is not there")));
    Ok(differences)
}

type Ends = BTreeMap<(&'static str, String), End>;

fn take(ends: &mut Ends, machine: &str, key: String) -> Option<((&'static str, String), End)> {
    let machine = super::guests::GUESTS.iter().map(|(name, _)| *name).find(|name| *name == machine)?;
    ends.remove_entry(&(machine, key))
}

async fn compare(differences: &mut Vec<String>, store: &dyn Store, found: &EntitySummary, end: &End) -> Result<()> {
    let mut differ = |what: &str, expected: &str, found_there: &str| {
        if expected != found_there {
            differences.push(format!("{}: {what} {expected} intended, {found_there} found", found.id));
        }
    };
    differ("state", end.state.unwrap_or("none"), found.state.as_deref().unwrap_or("none"));
    differ("version", &end.version.to_string(), &found.version.to_string());
    differ("revision", &end.revision.to_string(), &found.revision.to_string());
    differ("waiting events", &end.waiting.to_string(), &found.deferred.to_string());
    let blocked = found.blocked.as_ref().is_some_and(|b| b.by == BlockedBy::DeadLetter);
    differ("blocked", &end.blocked.to_string(), &blocked.to_string());
    if let Some((member, value)) = &end.figure {
        let detail = store.entity(&found.id).await?;
        let data = detail.map(|detail| detail.data).unwrap_or_default();
        differ(member, value, &member_of(&data, member));
    }
    Ok(())
}

/// The exact text of a member's value: no number passes through a float.
fn member_of(data: &[u8], member: &str) -> String {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(data).unwrap_or_default();
    members.get(member).map_or_else(|| "none".to_owned(), |value| value.get().to_owned())
}
