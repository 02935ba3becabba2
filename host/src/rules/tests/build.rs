//! Building a machine from source, without what it takes to compile one: a package of its own, in a folder of its own.

use std::fs;
use std::path::PathBuf;

use super::super::Refused;
use super::super::build::{BuildError, build};

fn package(name: &str, lib: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("seqgate-build-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n[lib]\n{lib}");
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("src/lib.rs"), "#[unsafe(no_mangle)]\npub extern \"C\" fn f() {}\n").unwrap();
    folder
}

#[test]
fn a_folder_without_a_package_is_refused() {
    let error = build(&std::env::temp_dir().join("seqgate-no-such-folder")).unwrap_err();
    assert!(matches!(error, BuildError::NoPackage { .. }), "{error}");
}

#[test]
fn a_package_without_a_module_is_refused() {
    let folder = package("no-cdylib", "");
    let error = build(&folder).unwrap_err();
    assert!(matches!(&error, BuildError::NoCdylib { package } if package == "no-cdylib"), "{error}");
    fs::remove_dir_all(folder).unwrap();
}

/// Cargo runs with a profile that the package does not have, and the module it makes is checked.
#[test]
fn a_module_that_follows_no_contract_is_refused() {
    let folder = package("no-contract", "crate-type = [\"cdylib\"]");
    let error = build(&folder).unwrap_err();
    let refused = matches!(&error, BuildError::Refused { refused: Refused::World { .. }, .. });
    assert!(refused, "{error}");
    fs::remove_dir_all(folder).unwrap();
}
