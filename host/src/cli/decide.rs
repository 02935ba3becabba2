//! What persons decide, in one short transaction; works beside a running host.

use std::sync::Arc;

use seqgate_decide::decide::{Action, Decision, Input, Outcome};
use seqgate_decide::envelope::{Decoded, Limits, Received, decode};
use seqgate_decide::event::Event;
use seqgate_decide::ids::EventKey;

use super::context::{By, Context, Site};
use super::failure::failed;
use super::output::Object;
use crate::config::SourceConfig;
use crate::runner::Act;
use crate::runner::run::directory;

/// Decides, and says what came of it.
pub async fn person(ctx: &Context, site: &Site, by: &By, id: &str, action: Action) -> anyhow::Result<()> {
    let (engine, mut machines) = site.decider(ctx).await?;
    let input = Input::Person { by: by.actor(), action };
    let decision = engine.act(&mut machines, &input, Act::Other).await?;
    ctx.answer(|| json(id, &decision), || text(id, &decision))
}

fn json(id: &str, decision: &Decision) -> Object {
    let one = |(key, outcome): &(EventKey, Outcome)| {
        Object::new()
            .put("machine", &*key.machine)
            .put("source", &*key.source)
            .put("event", &*key.id)
            .and(outcome_members(outcome))
    };
    Object::new()
        .put("id", id)
        .and(outcome_members(&decision.outcome))
        .put("decided", decision.decided.iter().map(one).collect::<Vec<_>>())
}

/// Members `verdict`, `reason`, `message`.
pub fn outcome_members(outcome: &Outcome) -> Object {
    Object::new()
        .put("verdict", outcome.verdict.name())
        .put("reason", outcome.reason())
        .put("message", outcome.message.as_deref())
}

/// `illegal (wrong-state): it is pending`
pub fn in_words(outcome: &Outcome) -> String {
    let mut text = outcome.verdict.name().to_owned();
    if let Some(reason) = outcome.reason() {
        text.push_str(&format!(" ({reason})"));
    }
    if let Some(message) = outcome.message.as_deref().filter(|m| !m.is_empty()) {
        text.push_str(&format!(": {message}"));
    }
    text
}

fn text(id: &str, decision: &Decision) -> String {
    let mut text = format!("{id}: {}\n", in_words(&decision.outcome));
    // The first is the one that was meant; the others followed.
    for (key, outcome) in decision.decided.iter().skip(1) {
        text.push_str(&format!("  then {}: {}\n", key.id, in_words(outcome)));
    }
    text.lines().map(|line| format!("{}\n", super::output::plain(line))).collect()
}

/// Decodes an envelope as the source that it came from would.
pub fn redecode(site: &Site, source: &str, bytes: &[u8], received_at: i64) -> Decoded {
    let configured = site.config.sources.iter().find(|s| &**s.name() == source).and_then(SourceConfig::machine);
    let machine = configured.map(|m| &**m).or_else(|| source.strip_prefix("repair:"));
    decoded(site, bytes, machine, received_at)
}

/// Decodes an envelope for a machine, where it names none itself.
pub fn decoded(site: &Site, bytes: &[u8], machine: Option<&str>, received_at: i64) -> Decoded {
    let setups: Vec<_> = site.config.machines.iter().map(|m| m.setup.clone()).collect();
    let received = Received { bytes, key: None, record_time: None, received_at, machine };
    decode(&received, &*directory(&setups), &Limits { data: site.config.data_limit })
}

/// The one event in a file.
pub fn event_in(ctx: &Context, site: &Site, file: &std::path::Path, machine: &str) -> anyhow::Result<Arc<Event>> {
    let bytes = read(file)?;
    match decoded(site, bytes.trim_ascii(), Some(machine), ctx.clock.now()) {
        Decoded::Event(event) => Ok(event),
        Decoded::Malformed(malformed) => {
            let message = format!("{} holds no readable CloudEvent: {}", file.display(), malformed.reason.message);
            Err(failed("malformed", message))
        }
    }
}

/// A file's bytes; `-` is standard input.
pub fn read(file: &std::path::Path) -> anyhow::Result<Vec<u8>> {
    let bytes = if file.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    bytes.map_err(|error| failed("no-file", format!("cannot read {}: {error}", file.display())))
}
