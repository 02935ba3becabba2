//! The sentences about an entity itself; those about its waiting events are in `waiting`.

use seqgate_decide::event::Event;
use seqgate_decide::ids::Position;
use seqgate_decide::setup::Ordering;
use seqgate_decide::world::DeadKind;
use seqgate_decide::writes::{Cause, HistoryRow};

use super::{Facts, Line, waiting};
use crate::cli::show;
use crate::config::units::span;
use crate::store::views::{BlockedBy, ConflictItem, DeadDetail};

/// Makes a command to type from its words.
pub type Commands<'a> = &'a dyn Fn(&str) -> String;

/// The whole story: how it stands, what holds it, what waits, what will happen, what happened last.
pub fn tell(facts: &Facts, now: i64, command: Commands<'_>) -> Vec<Line> {
    let mut lines = vec![stands(facts, now)];
    lines.extend(facts.dead.iter().map(|dead| refused(facts, dead, now, command)));
    lines.extend(facts.conflicts.iter().map(|conflict| conflicts(facts, conflict, now, command)));
    lines.extend(waiting::tell(facts, now, command));
    if lines.len() == 1 && !facts.terminal {
        lines.push(Line::plain("Nothing holds it.".to_owned()));
    }
    lines.extend(facts.entity.timers.iter().map(|(name, due)| timer(facts, name, *due, now)));
    if let Some(first) = facts.history.first() {
        let earlier = if first.revision > 1 { format!(" (revision {} on)", first.revision) } else { String::new() };
        lines.push(Line::plain(format!("What happened{earlier}:")));
    }
    lines.extend(facts.history.iter().map(|row| changed(row, now)));
    lines
}

/// `version 3 (order.shipped, events-file/2@41)`
pub fn named(event: &Event, position: Option<&Position>) -> String {
    let at = position.map(|p| format!(", {p}")).unwrap_or_default();
    match event.version {
        Some(version) => format!("version {version} ({}{at})", event.kind),
        None => format!("{} {}{}", event.kind, event.key.id, position.map(|p| format!(" ({p})")).unwrap_or_default()),
    }
}

/// The same where a sentence begins: event types keep their letters.
pub fn opening(event: &Event, position: Option<&Position>) -> String {
    let text = named(event, position);
    text.strip_prefix("version ").map(|rest| format!("Version {rest}")).unwrap_or(text)
}

/// `orders o1` as arguments.
pub fn arguments(facts: &Facts) -> String {
    let id = &facts.entity.id;
    format!("{} {}", id.machine, show::key_argument(&id.key))
}

fn stands(facts: &Facts, now: i64) -> Line {
    let (entity, key) = (&facts.entity, show::key(&facts.entity.id.key));
    let text = match &entity.state {
        Some(state) => {
            let end = if facts.terminal { "; nothing leaves this state" } else { "" };
            format!("{key} is {state} at version {} since {}{end}.", entity.version, show::clock(entity.entered, now))
        }
        None if entity.revision > 0 => {
            format!("{key} has no state: version {} was consumed, and no event was applied yet.", entity.version)
        }
        None => {
            let events = match entity.waiting.len() {
                0 => return Line::plain(format!("{key} has no event that took effect yet.")),
                1 => "an event that waits".to_owned(),
                n => format!("{n} events that wait"),
            };
            format!("{key} is a ghost: there is nothing of it but {events}.")
        }
    };
    Line::plain(text)
}

fn refused(facts: &Facts, dead: &DeadDetail, now: i64, command: Commands<'_>) -> Line {
    let row = &dead.row;
    let what = match (&row.event, &row.timer, row.kind) {
        (Some(event), ..) => opening(event, row.position.as_ref()),
        (None, Some((name, due)), _) => format!("Timer {name}, due {},", show::clock(*due, now)),
        (None, None, DeadKind::Migration) => "The migration of its data".to_owned(),
        (None, None, _) => {
            format!("An envelope{}", row.position.as_ref().map(|p| format!(" ({p})")).unwrap_or_default())
        }
    };
    let tries = if row.attempts > 1 { format!(", {} times", row.attempts) } else { String::new() };
    let behind = facts.entity.waiting.len();
    let holds = match (row.blocks, behind) {
        (false, _) => "It holds nothing up.".to_owned(),
        (true, 0) => "What comes after it will wait.".to_owned(),
        (true, 1) => "1 event waits behind it.".to_owned(),
        (true, n) => format!("{n} events wait behind it."),
    };
    let text = format!(
        "{what} was refused {} ago{tries}: {}, {}: {} {holds}",
        span(now - row.since),
        row.class,
        row.code,
        full_stop(&row.message)
    );
    let verbs: &[&str] = match (row.kind, row.event.is_some()) {
        (DeadKind::Event, true) => &["redrive", "replace", "compensate", "skip"],
        (DeadKind::Event, false) | (DeadKind::Timer, _) => &["redrive", "skip"],
        (DeadKind::Migration, _) => &["redrive"],
    };
    let typed = |verb: &&str| {
        let rest = if *verb == "replace" { " --with FILE" } else { "" };
        command(&format!("dead-letter {verb} {}{rest}", dead.id))
    };
    Line { text, commands: verbs.iter().map(typed).collect() }
}

fn full_stop(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

fn conflicts(facts: &Facts, item: &ConflictItem, now: i64, command: Commands<'_>) -> Line {
    let at = item.position.as_ref().map(|p| format!(", {p}")).unwrap_or_default();
    let version = item.version.map(|v| format!(" at version {v}")).unwrap_or_default();
    let times = if item.copies > 1 { format!(" It came {} times.", item.copies) } else { String::new() };
    let next = match &facts.held {
        Some(held) if held.by == BlockedBy::Conflict && held.id == item.id => {
            " Nothing else stands at this version, which is the next; dismissing it consumes the version."
        }
        _ => "",
    };
    let text = format!(
        "{} with id {}{version}{at} is set aside since {}: {}{times}{next}",
        item.kind,
        item.key.id,
        show::clock(item.since, now),
        full_stop(&item.message)
    );
    let verb = |verb: &str| command(&format!("conflict {verb} {}", item.id));
    Line { text, commands: vec![verb("show"), verb("dismiss")] }
}

fn timer(facts: &Facts, name: &str, due: i64, now: i64) -> Line {
    let at = show::clock(due, now);
    let held = !facts.entity.waiting.is_empty() || facts.entity.blocked();
    let text = match (due > now, held) {
        (true, _) => format!("Timer {name} is due in {} ({at}).", span(due - now)),
        (false, true) => {
            format!("Timer {name} was due {} ago ({at}) and does not fire while something waits.", span(now - due))
        }
        (false, false) => format!(
            "Timer {name} was due {} ago ({at}); a running host fires it once the sources are read to their ends.",
            span(now - due)
        ),
    };
    Line::plain(text)
}

fn changed(row: &HistoryRow, now: i64) -> Line {
    let what = match (&row.event, &row.timer) {
        (Some(event), _) => format!("{} {}", event.kind, event.key.id),
        (None, Some(timer)) => format!("timer {timer}"),
        (None, None) => row.cause.name().to_owned(),
    };
    let from = row.previous_state.as_deref().unwrap_or("nothing");
    let to = row.next_state.as_deref().unwrap_or("nothing");
    let how = match row.cause {
        Cause::Event | Cause::Timer if from == to => format!("stays {to}"),
        Cause::Event | Cause::Timer => format!("{from} → {to}"),
        cause if from == to => format!("{} (stays {to})", cause.name()),
        cause => format!("{}, {from} → {to}", cause.name()),
    };
    let code = row.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
    let by = row.by.as_ref().map(|by| match by.reason.as_str() {
        "" => format!(" by {}", by.name),
        reason => format!(" by {}: {reason}", by.name),
    });
    let notes: String = row.notes.iter().map(|note| format!(" “{note}”")).collect();
    let (time, by) = (show::clock(row.time, now), by.unwrap_or_default());
    Line::plain(format!("  {time} version {}: {what}, {how}{code}{by}{notes}", row.version))
}

/// Whether missing versions are a thing under this ordering.
pub fn counts_versions(ordering: Ordering) -> bool {
    ordering == Ordering::Versioned
}
