//! What the rules hand back is held against what they declared and against the limits of the contract (R3, step 10).

use crate::envelope::{depends, is_control};
use crate::graph::Graph;
use crate::ids::{MAX_KEY, MAX_NAME};
use crate::rules::{Dependency, Effect, Fault, Message, Reason, Transition, TriggerView};
use crate::world::Entity;

/// The longest text from a guest that is kept, in bytes (R5).
const MOST_TEXT: usize = 4096;
/// The most effects of one transition.
const MOST_EFFECTS: usize = 256;
/// The most notes of one transition; further ones are dropped with a remark.
const MOST_NOTES: usize = 64;
/// The most bytes of an entity's data, or of a message's.
const MOST_DATA: usize = 1024 * 1024;
/// The most attributes of a message, and their bytes together.
const MOST_ATTRIBUTES: usize = 64;
const MOST_ATTRIBUTE_BYTES: usize = 8 * 1024;

/// Checks a transition, and bounds its texts.
pub(super) fn transition(
    graph: &Graph,
    entity: &Entity,
    trigger: TriggerView<'_>,
    mut transition: Transition,
) -> Result<Transition, Fault> {
    let (from, to) = (entity.state.as_deref(), transition.state.as_str());
    if graph.state(to).is_none() {
        return Err(Fault::new(
            "undeclared-state",
            format!("the rules went to `{}`, which they do not declare", text(to)),
        ));
    }
    // What compensation leaves in its state needs no edge (R5).
    let stays = matches!(trigger, TriggerView::Compensation(_)) && from == Some(to);
    if !stays && !graph.allows(from, trigger, to) {
        let (verb, name) = match trigger {
            TriggerView::Event(name) => ("event", name),
            TriggerView::Timer(name) => ("timer", name),
            TriggerView::Compensation(name) => ("compensation", name),
        };
        let from = from.unwrap_or("absent");
        return Err(Fault::new("undeclared-edge", format!("no edge leads from `{from}` to `{to}` by {verb} `{name}`")));
    }
    data(transition.data.len())?;
    if transition.effects.len() > MOST_EFFECTS {
        let message = format!("{} effects; the limit is {MOST_EFFECTS} (fixed)", transition.effects.len());
        return Err(Fault::new("too-many-effects", message));
    }
    for effect in &transition.effects {
        match effect {
            Effect::Send(sent) => message(sent)?,
            Effect::Start { name, .. } if !graph.knows_timer(name) => {
                let message = format!("the timer `{}` is in no edge", text(name));
                return Err(Fault::new("undeclared-timer", message));
            }
            Effect::Start { .. } | Effect::Cancel(_) => {}
        }
    }
    let notes = transition.notes.len();
    transition.notes.truncate(MOST_NOTES);
    transition.notes = transition.notes.into_iter().map(bounded).collect();
    if notes > MOST_NOTES {
        transition.notes.push(format!("{} more notes were dropped", notes - MOST_NOTES));
    }
    Ok(transition)
}

/// The size of an entity's data.
pub(super) fn data(bytes: usize) -> Result<(), Fault> {
    size("the entity's data", bytes)
}

fn message(message: &Message) -> Result<(), Fault> {
    name("topic", &message.topic)?;
    name("kind", &message.kind)?;
    name("content type", &message.content_type)?;
    size("a message's data", message.data.len())?;
    if let Some(key) = &message.key
        && (key.is_empty() || key.len() > MAX_KEY)
    {
        return Err(Fault::new(
            "bad-name",
            format!("a message's key has {} bytes; the limit is 1 to {MAX_KEY} (fixed)", key.len()),
        ));
    }
    let bytes: usize = message.attributes.iter().map(|(n, v)| n.len() + v.len()).sum();
    if message.attributes.len() > MOST_ATTRIBUTES || bytes > MOST_ATTRIBUTE_BYTES {
        let message = format!(
            "a message has {} attributes of {bytes} bytes together; \
                 the limit is {MOST_ATTRIBUTES} of {MOST_ATTRIBUTE_BYTES} bytes (fixed)",
            message.attributes.len()
        );
        return Err(Fault::new("result-too-large", message));
    }
    for (attribute, value) in &message.attributes {
        let plain = attribute.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if attribute.is_empty() || !plain {
            let message = format!("`{}` is no attribute's name: lower-case letters and digits", text(attribute));
            return Err(Fault::new("bad-name", message));
        }
        // It becomes a header, or a text of a database that has no NUL.
        if value.chars().any(is_control) {
            let message = format!("the value of a message's attribute `{attribute}` holds control characters");
            return Err(Fault::new("bad-name", message));
        }
    }
    Ok(())
}

fn name(what: &str, value: &str) -> Result<(), Fault> {
    if value.is_empty() || value.len() > MAX_NAME || value.chars().any(is_control) {
        let message = format!(
            "a message's {what} is `{}`; the limit is 1 to {MAX_NAME} bytes without control characters (fixed)",
            text(value)
        );
        return Err(Fault::new("bad-name", message));
    }
    Ok(())
}

fn size(what: &str, bytes: usize) -> Result<(), Fault> {
    if bytes > MOST_DATA {
        return Err(Fault::new(
            "result-too-large",
            format!("{what} has {bytes} bytes; the limit is {MOST_DATA} (fixed)"),
        ));
    }
    Ok(())
}

/// A dependency that the rules name.
pub(super) fn dependency(named: &Dependency) -> Result<(), Fault> {
    let key = &named.entity.key;
    if depends::is_machine_name(&named.entity.machine) && (1..=MAX_KEY).contains(&key.len()) && named.version > 0 {
        return Ok(());
    }
    let message = format!("`waiting` names `{}` at version {}, which nothing can be", named.entity, named.version);
    Err(Fault::new("bad-name", text(&message)))
}

/// A reason with its texts bounded.
pub(super) fn reason(reason: Reason) -> Reason {
    Reason { code: bounded(reason.code), message: bounded(reason.message) }
}

/// A fault with its texts bounded.
pub(super) fn fault(fault: Fault) -> Fault {
    Fault { code: bounded(fault.code), message: bounded(fault.message) }
}

/// A guest's text: at most 4 KiB, NUL replaced (R5).
pub(super) fn bounded(mut text: String) -> String {
    cut(&mut text);
    if text.contains('\0') {
        // The replacement is longer than what it replaces.
        text = text.replace('\0', "\u{fffd}");
        cut(&mut text);
    }
    text
}

fn cut(text: &mut String) {
    if text.len() > MOST_TEXT {
        let end = (0..=MOST_TEXT - '…'.len_utf8()).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

fn text(text: &str) -> String {
    crate::envelope::shown(text)
}
