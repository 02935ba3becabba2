//! One event, and how it looks in a file.

use std::fmt::Write as _;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// When the stories begin: 2026-01-05T08:00:00Z.
pub const BEGIN: i64 = 1_767_600_000;

/// An event as its producer means it.
#[derive(Clone, Debug)]
pub struct Event {
    /// The machine.
    pub machine: &'static str,
    /// The entity's key.
    pub key: String,
    /// The event's id.
    pub id: String,
    /// Its type.
    pub kind: &'static str,
    /// Its place in the entity's own stream.
    pub version: u64,
    /// The version that it follows, where the producer left some out.
    pub previous: Option<u64>,
    /// Seconds since the epoch.
    pub time: i64,
    /// The business intent.
    pub intent: Option<String>,
    /// What must have happened before.
    pub depends_on: Option<String>,
    /// The payload's members, each with its value as JSON.
    pub data: Vec<(&'static str, String)>,
}

impl Event {
    /// The event as one line of JSON.
    pub fn line(&self) -> String {
        self.line_with(&data(&self.data, ""))
    }

    /// The same content from another serialiser: members in another order, other white space.
    pub fn rewritten(&self) -> String {
        let members: Vec<_> = self.data.iter().rev().cloned().collect();
        self.line_with(&data(&members, " "))
    }

    /// Something else under the same id and version.
    pub fn contradicted(&self) -> String {
        let mut members = self.data.clone();
        members.push(("corrected", "true".into()));
        self.line_with(&data(&members, ""))
    }

    /// The same event without the version that its machine needs.
    pub fn without_version(&self) -> String {
        self.line().replace(&format!(",\"entityversion\":{}", self.version), "")
    }

    fn line_with(&self, data: &str) -> String {
        let source = match self.machine {
            "orders" => "/shop",
            "subscriptions" => "/billing",
            "accounts" => "/bank",
            _ => "/plant",
        };
        let mut line = format!(
            r#"{{"specversion":"1.0","id":"{}","source":"{source}","type":"{}","machine":"{}","subject":"{}","time":"{}""#,
            self.id,
            self.kind,
            self.machine,
            self.key,
            written(self.time),
        );
        // Writing to a String cannot fail.
        let _ = write!(line, ",\"entityversion\":{}", self.version);
        if let Some(previous) = self.previous {
            let _ = write!(line, ",\"previousversion\":{previous}");
        }
        if let Some(intent) = &self.intent {
            let _ = write!(line, ",\"idempotencykey\":\"{intent}\"");
        }
        if let Some(names) = &self.depends_on {
            let _ = write!(line, ",\"dependson\":\"{names}\"");
        }
        let _ = write!(line, ",\"data\":{data}}}");
        line
    }
}

fn data(members: &[(&'static str, String)], gap: &str) -> String {
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{gap}{value}")).collect();
    format!("{{{}}}", members.join(&format!(",{gap}")))
}

fn written(time: i64) -> String {
    let time = OffsetDateTime::from_unix_timestamp(time).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    time.format(&Rfc3339).unwrap_or_default()
}

/// A JSON string of plain text.
pub fn text(plain: &str) -> String {
    format!("\"{plain}\"")
}
