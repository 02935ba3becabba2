//! Errors as the command line shows them: one line that says what to do next, a stable code, an exit code.

use crate::config::ConfigError;
use crate::rules::build::BuildError;
use crate::runner::RunError;
use crate::store::lock::LockError;
use crate::store::{NextStep, StoreError};
use crate::telemetry::BadFilter;

use super::output::Object;

/// Something failed.
pub const FAILED: u8 = 1;
/// Wrong usage or configuration.
pub const USAGE: u8 = 2;
/// Another owner has what this process wanted.
pub const FENCED: u8 = 3;

/// A failure that the command line itself found.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    exit: u8,
    code: &'static str,
    message: String,
}

/// Something that cannot be done, or is not there (exit 1).
pub fn failed(code: &'static str, message: impl Into<String>) -> anyhow::Error {
    Failure { exit: FAILED, code, message: message.into() }.into()
}

/// Wrong usage or configuration (exit 2).
pub fn usage(code: &'static str, message: impl Into<String>) -> anyhow::Error {
    Failure { exit: USAGE, code, message: message.into() }.into()
}

/// Another owner has it (exit 3).
pub fn fenced(code: &'static str, message: impl Into<String>) -> anyhow::Error {
    Failure { exit: FENCED, code, message: message.into() }.into()
}

/// An error as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The process's exit code.
    pub exit: u8,
    /// Stable, for programs.
    pub code: String,
    /// For people: what, why, and what to do next.
    pub message: String,
}

impl Shown {
    /// Takes an error with its causes.
    pub fn of(error: &anyhow::Error) -> Self {
        // A context that is a failure of its own is no link of the chain, and says more than what it wraps.
        let context = error.downcast_ref::<anyhow::Error>().and_then(|context| context.chain().find_map(classify));
        let class = context.or_else(|| error.chain().find_map(classify));
        let (exit, code, hint) = class.unwrap_or((FAILED, "failed".to_owned(), None));
        let mut message = with_causes(error);
        if let Some(hint) = hint {
            message = format!("{message}; {hint}");
        }
        Self { exit, code, message }
    }

    /// `{"error":{"code","message"}}`
    pub fn json(&self) -> Object {
        Object::new().put("error", Object::new().put("code", &self.code).put("message", &self.message))
    }
}

type Class = (u8, String, Option<&'static str>);

fn classify(error: &(dyn std::error::Error + 'static)) -> Option<Class> {
    let class = |exit, code: &str| Some((exit, code.to_owned(), None));
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return class(failure.exit, failure.code);
    }
    if error.is::<ConfigError>() {
        return class(USAGE, "configuration");
    }
    if error.is::<BadFilter>() {
        return class(USAGE, "usage");
    }
    if error.is::<BuildError>() {
        return class(FAILED, "build");
    }
    if error.is::<LockError>() {
        let hint = "the folder of the database must exist and be writable";
        return Some((FAILED, "lock".to_owned(), Some(hint)));
    }
    if let Some(error) = error.downcast_ref::<RunError>() {
        return Some(classify_run(error));
    }
    error.downcast_ref::<StoreError>().map(classify_store)
}

fn classify_run(error: &RunError) -> Class {
    match error {
        RunError::Store(error) => classify_store(error),
        RunError::Source(_) => (FAILED, "source".to_owned(), None),
        RunError::Rules { .. } => (FAILED, "rules".to_owned(), None),
        RunError::Refused(reason) => (FAILED, reason.code.clone(), None),
        RunError::ManySources(_) => (USAGE, "many-sources".to_owned(), None),
        RunError::Late => (FAILED, "late".to_owned(), None),
        RunError::Panicked(_) => (FAILED, "panicked".to_owned(), None),
    }
}

fn classify_store(error: &StoreError) -> Class {
    let (exit, code, hint) = match error {
        StoreError::Fenced { .. } => {
            (FENCED, "fenced", Some("another process took the partition over: let only one of them run"))
        }
        StoreError::Url { .. } | StoreError::Cursor => (USAGE, "usage", None),
        StoreError::Partitions { .. } => (USAGE, "partitions", Some("set `partitions` back, or name a new source")),
        StoreError::Busy(_) => (FAILED, "busy", Some("another process is writing for long; try again")),
        StoreError::NoSuchRules(_) => (FAILED, "no-such-rules", None),
        StoreError::OtherMachine { .. } => (FAILED, "other-machine", None),
        StoreError::Newer { .. } => (FAILED, "newer", None),
        StoreError::Foreign => (USAGE, "foreign", Some("name another file in store.url")),
        StoreError::Corrupt(_) => (FAILED, "corrupt", Some("restore a copy of it; nothing was changed")),
        error => match error.next_step() {
            NextStep::Retry => (FAILED, "store", Some("look at the disk and at who may write there, then try again")),
            _ => (FAILED, "store", None),
        },
    };
    (exit, code.to_owned(), hint)
}

/// The error and its causes; a cause that the text before it contains is not said twice.
fn with_causes(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        let text = text.trim_end();
        if message.is_empty() {
            message = text.to_owned();
        } else if !message.contains(text) {
            message = format!("{message}: {text}");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use seqgate_decide::rules::Reason;

    use super::*;

    #[test]
    fn exit_codes_say_who_has_to_act() {
        let shown = |error: anyhow::Error| {
            let shown = Shown::of(&error);
            (shown.exit, shown.code)
        };
        assert_eq!(shown(failed("not-found", "no")), (1, "not-found".to_owned()));
        assert_eq!(
            shown(RunError::Refused(Reason::new("not-open", "it is closed")).into()),
            (1, "not-open".to_owned())
        );
        assert_eq!(shown(RunError::ManySources("orders".into()).into()), (2, "many-sources".to_owned()));
        let fenced =
            StoreError::Fenced { source_name: Arc::from("file"), partition: 0, expected: (1, 2), found: Some((2, 2)) };
        assert_eq!(shown(RunError::Store(fenced).into()), (3, "fenced".to_owned()));
        assert_eq!(shown(anyhow::anyhow!("something")), (1, "failed".to_owned()));
    }

    #[test]
    fn causes_are_said_once() {
        let inner = std::io::Error::other("disk full");
        let error = anyhow::Error::new(inner).context("cannot write x: disk full").context("rules build");
        assert_eq!(with_causes(&error), "rules build: cannot write x: disk full");
        let error = anyhow::Error::new(std::io::Error::other("why")).context(failed("a", "b"));
        assert_eq!(Shown::of(&error).json().to_string(), r#"{"error":{"code":"a","message":"b: why"}}"#);
        let error = failed("a", "b").context("c");
        assert_eq!(Shown::of(&error).json().to_string(), r#"{"error":{"code":"a","message":"c: b"}}"#);
    }
}
