//! The guide in `guest-sdk/README.md`, word for word: its commands in an empty folder, and what it says they answer.
//! Nothing is downloaded: the lock file of a new project names the crates that this repository was built with.

use std::process::{Command, Stdio};

use crate::program::{binary, root};

/// The commands of the `console` blocks with the lines that follow each.
fn guide() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(root().join("guest-sdk/README.md")).unwrap();
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match line.strip_prefix("$ ") {
                Some(command) => steps.push((command.to_owned(), Vec::new())),
                None => steps.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
    }
    steps
}

/// Every line comes, in order; `…` stands for anything.
#[track_caller]
fn says(command: &str, said: &str, expected: &[String]) {
    let mut rest = said;
    for part in expected.iter().flat_map(|line| line.split('…')).map(str::trim).filter(|part| !part.is_empty()) {
        let at = rest.find(part).unwrap_or_else(|| panic!("`{command}` does not say `{part}`:\n{said}"));
        rest = &rest[at + part.len()..];
    }
}

#[test]
fn the_guide_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}:{}", binary().parent().unwrap().display(), std::env::var("PATH").unwrap());
    let steps = guide();
    assert!(steps.len() > 10, "the guide is gone: {steps:?}");
    for (command, expected) in steps {
        let output = Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("CARGO_NET_OFFLINE", "true")
            .env_remove("CARGO_TARGET_DIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        says(&command, &String::from_utf8_lossy(&output.stdout), &expected);
    }
}
