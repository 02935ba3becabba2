//! What really happened, as a scenario that `cargo test` and `rules test` tell (`guest-sdk/scenario` has the format).

use std::collections::BTreeMap;

use seqgate_decide::event::Event;
use seqgate_decide::ids::EntityId;
use seqgate_decide::verdict::Verdict;
use seqgate_decide::world::DeadKind;
use seqgate_decide::writes::{Cause, DeadStatus, HistoryRow};
use serde_json::value::RawValue;

use super::context::{Context, Site};
use super::failure::failed;
use super::output::{self, Object};
use super::show;
use crate::store::views::{DeadDetail, EntityDetail, Page};

/// Faults of a limit: without a host nothing stops the rules.
const LIMITS: [&str; 5] = ["fuel", "time", "memory", "table", "stack"];

/// Prints an entity's history as a story from its first event on.
pub async fn history(ctx: &Context, site: &Site, id: &EntityId) -> anyhow::Result<()> {
    let rows = rows(site, id).await?;
    let Some(detail) = site.store.entity(id).await?.filter(|_| !rows.is_empty()) else {
        return Err(super::entity::not_found(ctx, site, id).await);
    };
    let mut story = Story::new(id, format!("what happened to {}", show::entity(id)))?;
    story.tell(&rows)?;
    story.end(Some(&detail));
    story.print()
}

/// Prints what was refused as a story that ends in that refusal.
pub async fn dead_letter(site: &Site, detail: &DeadDetail) -> anyhow::Result<()> {
    let row = &detail.row;
    let Some(id) = row.entity.as_ref().filter(|_| row.event.is_some() || row.timer.is_some()) else {
        let message = "an envelope that cannot be read never reaches rules, so no scenario can tell of it";
        return Err(failed("no-entity", message));
    };
    if row.kind == DeadKind::Migration {
        let message = "a scenario begins with data of the rules' own layout; test `migrate` in code, with this data";
        return Err(failed("migration", message));
    }
    let what = row.event.as_ref().map_or_else(|| "a timer".to_owned(), |event| event.kind.to_string());
    let mut story = Story::new(id, format!("{what} of {} is {} ({})", show::entity(id), row.class, row.code))?;
    let stands = site.store.entity(id).await?;
    // What is blocked stands where the refusal left it. Of others the history is told again up to there.
    if row.status == DeadStatus::Open && (row.blocks || row.kind == DeadKind::Timer) {
        story.given(stands.as_ref(), row.timer.as_ref().map(|(name, due)| (&**name, *due)))?;
    } else {
        let before = |r: &HistoryRow| match row.event.as_ref().and_then(|event| event.version) {
            Some(version) => r.version < version,
            None => r.decided_at <= row.since,
        };
        let is_it = |r: &HistoryRow| r.event.as_ref().map(|e| &e.key) == row.event.as_ref().map(|e| &e.key);
        let mut rows = rows(site, id).await?;
        rows.retain(|r| before(r) && !is_it(r));
        if !rows.is_empty() {
            story.tell(&rows)?;
        }
        story.end(None);
    }
    let expect = match row.class {
        Verdict::Illegal => Object::new().put("illegal", &row.code),
        Verdict::Malformed => Object::new().put("malformed", &row.code),
        _ => Object::new().put("fault", true),
    };
    if row.class == Verdict::Fault {
        story.explain_fault(&row.code);
    }
    match (&row.event, &row.timer) {
        (Some(event), _) => story.steps.push(Step { head: story.event("event", event)?, expect }),
        (None, Some((name, _))) => story.steps.push(Step { head: Object::new().put("timer", &**name), expect }),
        (None, None) => {}
    }
    story.print()
}

/// Every revision that is kept.
async fn rows(site: &Site, id: &EntityId) -> anyhow::Result<Vec<HistoryRow>> {
    let (mut page, mut rows) = (Page::first(1000), Vec::new());
    loop {
        let listing = site.store.history(id, &page).await?;
        rows.extend(listing.items);
        let Some(next) = listing.next else { return Ok(rows) };
        page = Page::after(1000, next);
    }
}

struct Step {
    head: Object,
    expect: Object,
}

struct Story {
    title: String,
    key: String,
    given: Option<Object>,
    steps: Vec<Step>,
    /// What a scenario cannot say, for the person who asked.
    remarks: Vec<String>,
}

impl Story {
    fn new(id: &EntityId, title: String) -> anyhow::Result<Self> {
        let key = String::from_utf8(id.key.to_vec()).map_err(|_| {
            failed("binary", format!("the key {} is no text, and a scenario's key is", show::key(&id.key)))
        })?;
        Ok(Self { title, key, given: None, steps: Vec::new(), remarks: Vec::new() })
    }

    fn given(&mut self, detail: Option<&EntityDetail>, timer: Option<(&str, i64)>) -> anyhow::Result<()> {
        let Some((detail, state)) = detail.and_then(|d| Some((d, d.summary.state.as_deref()?))) else { return Ok(()) };
        let Some(data) = json(&detail.data) else {
            return Err(failed("binary", "the entity's data is no JSON, and a scenario's is"));
        };
        let pending = detail.timers.iter().map(|(name, due)| (&**name, *due)).chain(timer);
        let timers: BTreeMap<&str, String> = pending.map(|(name, due)| (name, show::time(due))).collect();
        let given = Object::new()
            .put("state", state)
            .put("data", data)
            .put("version", detail.summary.version)
            .put("revision", detail.summary.revision)
            .put("entered", show::time(detail.summary.entered));
        self.given = Some(if timers.is_empty() { given } else { given.put("timers", timers) });
        Ok(())
    }

    fn tell(&mut self, rows: &[HistoryRow]) -> anyhow::Result<()> {
        if rows.first().is_some_and(|row| row.revision > 1) {
            let message = "the first revisions were pruned, and a story begins with the first event";
            return Err(failed("pruned", message));
        }
        let mut left_out = 0;
        for row in rows {
            let head = match (row.cause, &row.event, &row.timer) {
                (Cause::Event, Some(event), _) => self.event("event", event)?,
                (Cause::Compensation, Some(event), _) => self.event("compensate", event)?,
                (Cause::Timer, _, Some(name)) => Object::new().put("timer", &**name),
                _ => {
                    left_out += 1;
                    continue;
                }
            };
            let mut expect = Object::new().put("state", row.next_state.as_deref());
            if !row.notes.is_empty() {
                expect = expect.put("notes", &row.notes);
            }
            self.steps.push(Step { head, expect });
        }
        if left_out > 0 {
            self.remarks.push(format!(
                "{left_out} revisions are left out: rules did not decide them (skipped, ignored, migrated, …)"
            ));
        }
        Ok(())
    }

    /// What the last step leaves behind, where it is what stands now.
    fn end(&mut self, detail: Option<&EntityDetail>) {
        let (Some(detail), Some(step)) = (detail, self.steps.last_mut()) else { return };
        let timers: BTreeMap<&str, String> = detail.timers.iter().map(|(n, due)| (&**n, show::time(*due))).collect();
        let mut expect = std::mem::take(&mut step.expect);
        // `null` would read as "not given".
        if let Some(data) = json(&detail.data).filter(|data| data.get() != "null") {
            expect = expect.put("data", data);
        }
        step.expect = expect.put("timers", timers);
    }

    fn event(&self, member: &'static str, event: &Event) -> anyhow::Result<Object> {
        let mut step = Object::new()
            .put(member, &*event.kind)
            .put("id", &*event.key.id)
            .put("source", &*event.key.source)
            .put("at", show::time(event.time));
        if let Some(version) = event.version {
            step = step.put("version", version);
        }
        if let Some(intent) = &event.idempotency_key {
            step = step.put("idempotency_key", &**intent);
        }
        if let Some(correlation) = event.attribute("correlationid") {
            step = step.put("correlation_id", correlation);
        }
        if !event.attributes.is_empty() {
            let attributes: BTreeMap<&str, &str> = event.attributes.iter().map(|(n, v)| (&**n, &**v)).collect();
            step = step.put("attributes", attributes);
        }
        match (json(&event.data), std::str::from_utf8(&event.data)) {
            (_, Ok("")) => Ok(step),
            (Some(data), _) if data.get() != "null" => Ok(step.put("data", data)),
            (_, Ok(text)) => Ok(step.put("text", text)),
            (_, Err(_)) => {
                let message = format!("the payload of {} is no text, and a scenario's is", event.key.id);
                Err(failed("binary", message))
            }
        }
    }

    fn explain_fault(&mut self, code: &str) {
        if LIMITS.contains(&code) {
            self.remarks.push(format!(
                "the limit `{code}` is the host's: tell this story with `seqgate rules test`; natively the step may never end"
            ));
        } else if code != "trap" {
            self.remarks.push(format!(
                "`{code}` is what the host found in the answer: the test says how, and fails until it is mended"
            ));
        }
    }

    fn print(self) -> anyhow::Result<()> {
        for remark in &self.remarks {
            eprintln!("note: {remark}");
        }
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let steps: Vec<String> =
            self.steps.into_iter().map(|step| format!("    {}", step.head.put("expect", step.expect))).collect();
        let given = self.given.map(|given| format!("  \"given\": {given},\n")).unwrap_or_default();
        output::print(format!(
            "{{\n  \"title\": {},\n  \"key\": {},\n{given}  \"steps\": [\n{}\n  ]\n}}",
            quoted(&self.title),
            quoted(&self.key),
            steps.join(",\n")
        ))
    }
}

fn json(data: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice(data).ok()
}
