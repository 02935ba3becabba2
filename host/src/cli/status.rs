//! `status`: what needs a person, then the sums.

use std::collections::BTreeMap;

use seqgate_decide::verdict::Verdict;

use super::context::Context;
use super::output::{self, Object, Table, plain};
use super::{attention, run, show};
use crate::config::units::span;
use crate::store::views::{PartitionItem, Stand, Status};

/// How many things that need a person are listed for people; in JSON ten times as many.
const LISTED: usize = 10;

/// Prints it.
pub async fn show(ctx: &Context) -> anyhow::Result<()> {
    let site = ctx.open().await?;
    let (status, partitions) = (site.store.status().await?, site.store.partitions().await?);
    let most = if ctx.json { LISTED * 10 } else { LISTED };
    let (needs, more) = attention::find(ctx, &*site.store, &status, most).await?;
    if ctx.json {
        return output::print(json(&needs, &status, &partitions));
    }
    let now = ctx.clock.now();
    let mut text = attention::text(&needs, more, now);
    text.push_str(&sums(&status, now));
    let mut table = Table::new(&["SOURCE", "PART", "EPOCH", "OFFSET", "RECEIVED", "VERDICTS"]);
    for p in &partitions {
        let (part, epoch, offset) = (p.partition.to_string(), p.epoch.to_string(), p.offset.to_string());
        table.row(vec![p.source.to_string(), part, epoch, offset, p.received.to_string(), run::in_words(&p.verdicts)]);
    }
    if !partitions.is_empty() {
        text.push('\n');
        text.push_str(&table.render(output::width()));
    }
    output::print(text)
}

/// All nine, also those that did not occur.
pub fn verdicts(counts: &BTreeMap<Verdict, u64>) -> Object {
    let count = |v: Verdict| counts.get(&v).copied().unwrap_or_default();
    Verdict::ALL.into_iter().fold(Object::new(), |object, verdict| object.put(verdict.name(), count(verdict)))
}

fn json(needs: &[attention::Need], status: &Status, partitions: &[PartitionItem]) -> Object {
    let oldest = |stand: Stand| stand.oldest.map(show::time);
    let oldest = Object::new()
        .put("deferred", oldest(status.deferred))
        .put("dead_letters", oldest(status.dead_letters))
        .put("outbox", oldest(status.outbox))
        .put("conflicts", oldest(status.conflicts))
        .put("alarms", oldest(status.alarms))
        .put("timers", oldest(status.timers));
    Object::new()
        .put("attention", needs.iter().map(attention::Need::json).collect::<Vec<_>>())
        .put("received", status.received)
        .put("verdicts", verdicts(&status.verdicts))
        .put("entities", status.entities)
        .put("ghosts", status.ghosts)
        .put("deferred", status.deferred.count)
        .put("dead_letters", status.dead_letters.count)
        .put("conflicts", status.conflicts.count)
        .put("outbox", status.outbox.count)
        .put("timers", status.timers.count)
        .put("alarms", status.alarms.count)
        .put("oldest", oldest)
        .put("partitions", partitions.iter().map(partition).collect::<Vec<_>>())
}

/// A partition with its counters.
pub fn partition(item: &PartitionItem) -> Object {
    Object::new()
        .put("source", &*item.source)
        .put("partition", item.partition)
        .put("epoch", item.epoch)
        .put("offset", item.offset)
        .put("owner", item.owner.as_deref())
        .put("received", item.received)
        .put("verdicts", verdicts(&item.verdicts))
}

fn sums(status: &Status, now: i64) -> String {
    let stand = |name: &str, stand: Stand| match stand.oldest {
        Some(oldest) if stand.count > 0 => {
            let age = if oldest > now {
                format!("the next in {}", span(oldest - now))
            } else {
                format!("the oldest for {}", span(now - oldest))
            };
            format!("{name:<13} {}, {age}\n", stand.count)
        }
        _ => format!("{name:<13} {}\n", stand.count),
    };
    let mut text = format!("received      {}: {}\n", status.received, run::in_words(&status.verdicts));
    text.push_str(&format!("entities      {}", status.entities));
    if status.ghosts > 0 {
        text.push_str(&format!(", and {} with waiting events only", status.ghosts));
    }
    text.push('\n');
    text.push_str(&stand("deferred", status.deferred));
    text.push_str(&stand("dead letters", status.dead_letters));
    text.push_str(&stand("conflicts", status.conflicts));
    text.push_str(&stand("outbox", status.outbox));
    text.push_str(&match status.timers.oldest {
        Some(due) if due > now => format!("timers        {}, the next in {}\n", status.timers.count, span(due - now)),
        Some(due) => format!("timers        {}, the first due {} ago\n", status.timers.count, span(now - due)),
        None => "timers        0\n".to_owned(),
    });
    plain_lines(&text)
}

fn plain_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", plain(line))).collect()
}
