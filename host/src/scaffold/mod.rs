//! What `seqgate new` writes: a workspace with one machine, and beside it the SDK that the machine is written with, so
//! that it builds without this repository. The SDK's sources, the guests' profile and the versions in the lock file are
//! taken from the repository when this program is built (`host/build/sdk.rs`); nothing of them is kept twice.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::rules::describe::is_machine_name;

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
}

/// The SDK's folder in a project.
const SDK: &str = "seqgate-sdk";
/// A name is also a folder, a crate and a file: what all of them take.
const MAX_NAME: usize = 64;

/// Words that no crate can have as its name, and names that cargo or the project use themselves.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "abstract", "alloc", "as", "async", "await", "become", "box", "break", "const", "continue", "core", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "proc-macro", "pub", "ref", "return", "self", "seqgate",
    "seqgate-sdk", "static", "std", "struct", "super", "target", "test", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Types that a machine's file has already.
#[rustfmt::skip]
const TYPES: &[&str] = &[
    "Amount", "Answer", "Balance", "Box", "Comment", "Compensation", "Context", "Default", "Dependency", "Deserialize",
    "Err", "Event", "Failure", "Kept", "Loose", "Machine", "Message", "None", "Ok", "Old", "Opened", "Option", "Reason",
    "Refusal", "Reminder", "Result", "Serialize", "Some", "State", "String", "Text", "Timer", "Timestamp", "Vec",
];

/// The project's own files: their paths and templates.
const FILES: &[(&str, &str)] = &[
    ("Cargo.toml", embedded::MANIFEST),
    ("README.md", include_str!("template/README.md")),
    (".gitignore", include_str!("template/gitignore")),
    ("rust-toolchain.toml", include_str!("../../../rust-toolchain.toml")),
    ("seqgate.toml", include_str!("template/seqgate.toml")),
    ("events.jsonl", include_str!("template/events.jsonl")),
    ("{{machine}}/Cargo.toml", include_str!("template/machine/Cargo.toml")),
    ("{{machine}}/src/lib.rs", include_str!("template/machine/src/lib.rs")),
    ("{{machine}}/scenarios/opened-to-closed.json", include_str!("template/machine/scenarios/opened-to-closed.json")),
    ("{{machine}}/scenarios/overdue.json", include_str!("template/machine/scenarios/overdue.json")),
    ("{{machine}}/scenarios/refused.json", include_str!("template/machine/scenarios/refused.json")),
];

/// Why nothing was written, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// R1.
    #[error(
        "`{0}` cannot name a machine: write lower-case letters, digits and hyphens, from a letter, at most {MAX_NAME}, such as loans"
    )]
    Name(String),
    /// A crate of that name does not compile, or is another one.
    #[error("`{0}` is a word of Rust's or a crate that the SDK needs, and cannot name the machine's crate; try `{0}s`")]
    Taken(String),
    /// Something is there already.
    #[error("{} is not empty (it has `{found}`): name a new folder with --path", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// The folder or a file in it cannot be made.
    #[error("cannot write {}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Writes a new project into a folder that is empty or not there yet; a fresh `.git` may be there. Gives the paths of the
/// files, the SDK's left out.
///
/// # Errors
/// [`ScaffoldError`]; its text says what to do. Nothing that is there is ever written over.
pub fn write(machine: &str, folder: &Path) -> Result<Vec<String>, ScaffoldError> {
    check_name(machine)?;
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let found = entry.map_err(failed(folder))?.file_name();
        if found != ".git" {
            let found = found.to_string_lossy().into_owned();
            return Err(ScaffoldError::NotEmpty { path: folder.to_owned(), found });
        }
    }
    let names = Names::of(machine);
    let mut written = Vec::new();
    for (path, text) in FILES {
        let path = names.fill(path);
        put(&folder.join(&path), &names.fill(text))?;
        written.push(path);
    }
    put(&folder.join("Cargo.lock"), &lock(machine))?;
    written.push("Cargo.lock".to_owned());
    for (path, text) in embedded::SDK {
        put(&folder.join(SDK).join(path), text)?;
    }
    Ok(written)
}

fn check_name(machine: &str) -> Result<(), ScaffoldError> {
    if !is_machine_name(machine) || machine.len() > MAX_NAME {
        return Err(ScaffoldError::Name(machine.to_owned()));
    }
    let is_crate = |block: &str| name_in(block) == Some(machine);
    if WORDS.contains(&machine) || blocks(embedded::LOCK).any(is_crate) {
        return Err(ScaffoldError::Taken(machine.to_owned()));
    }
    Ok(())
}

/// What stands in the templates' braces.
struct Names<'a> {
    machine: &'a str,
    /// The machine's type.
    type_name: String,
    /// What its events are called after: `loan` for `loans`.
    noun: &'a str,
}

impl<'a> Names<'a> {
    fn of(machine: &'a str) -> Self {
        let noun = match machine.strip_suffix('s') {
            Some(noun) if noun.ends_with(|c: char| c.is_ascii_alphanumeric() && c != 's') => noun,
            _ => machine,
        };
        let words = machine.split('-').filter(|word| !word.is_empty());
        let mut type_name: String = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
        if TYPES.contains(&&*type_name) {
            type_name.push_str("Rules");
        }
        Self { machine, type_name, noun }
    }

    fn fill(&self, template: &str) -> String {
        let text = template.replace("{{machine}}", self.machine).replace("{{Machine}}", &self.type_name);
        text.replace("{{noun}}", self.noun)
    }
}

/// The lock file with the machine's name, in the place where cargo would write it.
fn lock(machine: &str) -> String {
    let text = embedded::LOCK.replace(embedded::PLACEHOLDER, machine);
    let head = text.split("[[package]]\n").next().unwrap_or_default();
    let mut packages: Vec<&str> = blocks(&text).collect();
    packages.sort_by_key(|block| name_in(block));
    let packages: Vec<String> = packages.iter().map(|block| format!("[[package]]\n{}\n", block.trim_end())).collect();
    format!("{head}{}", packages.join("\n"))
}

fn blocks(lock: &str) -> impl Iterator<Item = &str> {
    lock.split("[[package]]\n").skip(1)
}

fn name_in(block: &str) -> Option<&str> {
    block.lines().next()?.strip_prefix("name = \"")?.strip_suffix('"')
}

fn put(path: &Path, text: &str) -> Result<(), ScaffoldError> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path).map_err(failed(path))?;
    io::Write::write_all(&mut file, text.as_bytes()).map_err(failed(path))
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> ScaffoldError {
    let path = path.to_owned();
    move |source| ScaffoldError::Write { path, source }
}
