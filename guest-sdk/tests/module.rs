//! The machines as core modules: what the host will find in them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a machine as the host's build script does, beside this test's own artefacts.
fn build(machine: &str) -> Vec<u8> {
    let target = target_dir();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--profile", "guest", "--target", "wasm32-unknown-unknown", "-p", machine])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .status()
        .expect("cargo starts");
    assert!(status.success(), "{machine} does not build");
    let file = target.join("wasm32-unknown-unknown/guest").join(format!("{machine}.wasm"));
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// This test stands in TARGET/PROFILE/deps.
fn target_dir() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.ancestors().nth(3).expect("a target folder").to_owned()
}

/// A section of a core module (WebAssembly 1.0, 5.5.2): its id, its name where it is a custom one, its content.
struct Section {
    id: u8,
    name: String,
    content: Vec<u8>,
}

fn sections(module: &[u8]) -> Vec<Section> {
    assert_eq!(&module[..8], b"\0asm\x01\0\0\0", "a core module");
    let (mut rest, mut all) = (&module[8..], Vec::new());
    while let Some((&id, after)) = rest.split_first() {
        let (size, after) = leb128(after);
        let (mut content, after) = after.split_at(size);
        let mut name = "";
        if id == 0 {
            let (length, inner) = leb128(content);
            let (text, inner) = inner.split_at(length);
            (name, content) = (std::str::from_utf8(text).expect("UTF-8"), inner);
        }
        all.push(Section { id, name: name.to_owned(), content: content.to_vec() });
        rest = after;
    }
    all
}

fn leb128(bytes: &[u8]) -> (usize, &[u8]) {
    let length = 1 + bytes.iter().position(|byte| byte & 0x80 == 0).expect("a number ends");
    let (number, rest) = bytes.split_at(length);
    (number.iter().rev().fold(0, |sum, byte| sum << 7 | usize::from(byte & 0x7f)), rest)
}

#[test]
fn a_machine_imports_nothing_and_keeps_its_names() {
    const IMPORTS: u8 = 2;
    const EXPORTS: u8 = 7;
    for machine in ["orders", "subscriptions", "accounts", "sensors"] {
        let sections = sections(&build(machine));
        assert!(sections.iter().all(|section| section.id != IMPORTS), "{machine} imports something");
        let exports = sections.iter().find(|section| section.id == EXPORTS).expect("exports");
        for function in ["describe", "apply", "migrate", "compensate"] {
            let name = format!("seqgate:machine/rules@0.1.0#{function}");
            let there = exports.content.windows(name.len()).any(|bytes| bytes == name.as_bytes());
            assert!(there, "{machine} does not export {function}");
        }
        // wit-component reads the contract from this one, and a backtrace the functions' names from that.
        assert!(sections.iter().any(|section| section.name.starts_with("component-type:")), "{machine}");
        assert!(sections.iter().any(|section| section.name == "name"), "{machine}");
    }
}
