//! Embeds what `seqgate new` writes: the SDK's sources as they are in `guest-sdk/`, with the parts of the workspace's
//! manifest that they inherit, and a lock file that names the same versions as this repository's own.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the lock file is made with; `seqgate new` puts the machine's name there.
const PLACEHOLDER: &str = "seqgate-new-machine";
/// The SDK's own folders and files, below `guest-sdk/`. Its tests stay here.
const PARTS: [&str; 6] = ["README.md", "src", "wit", "scenario/Cargo.toml", "scenario/src", "Cargo.toml"];
/// What the SDK's manifests inherit from the workspace's.
const INHERITED: [&str; 4] =
    ["workspace.package", "workspace.dependencies", "workspace.lints.rust", "workspace.lints.clippy"];

/// What the embedded files are made of.
pub fn watch(root: &Path) {
    for part in ["guest-sdk/scenario/src", "guest-sdk/scenario/Cargo.toml", "guest-sdk/README.md", "LICENSE"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
    for part in ["host/build/sdk.rs", "host/src/scaffold/template"] {
        println!("cargo::rerun-if-changed={}", root.join(part).display());
    }
}

/// Writes `sdk.rs` into `out`: `SDK`, the files by their paths in a new project, `MANIFEST` and `LOCK`.
pub fn embed(root: &Path, out: &Path, cargo: Option<&Path>) -> Result<(), String> {
    let workspace = read(&root.join("Cargo.toml"))?;
    let mut files: Vec<(String, String)> = vec![("LICENSE".to_owned(), read(&root.join("LICENSE"))?)];
    for part in PARTS {
        gather(&root.join("guest-sdk"), part, &mut files)?;
    }
    for (name, text) in &mut files {
        if name == "Cargo.toml" {
            *text = own_workspace(text, &workspace)?;
        }
    }
    files.sort();
    let template = root.join("host/src/scaffold/template");
    let manifest = format!(
        "{}\n\n# How rules are built: small, and nothing unwinds. Function names stay, so that a fault can say where it happened.\n{}",
        read(&template.join("Cargo.toml"))?.trim_end(),
        section(&workspace, "profile.guest")?
    );
    let lock = match cargo {
        Some(cargo) => lock(root, out, cargo, &files, &manifest, &read(&template.join("machine/Cargo.toml"))?)?,
        None => String::new(),
    };
    let mut code =
        String::from("/// The SDK's files, by their paths in its folder.\npub const SDK: &[(&str, &str)] = &[\n");
    for (name, text) in &files {
        // Writing to a String does not fail.
        let _ = writeln!(code, "    ({name:?}, {text:?}),");
    }
    code.push_str("];\n");
    let _ = writeln!(code, "/// The project's manifest.\npub const MANIFEST: &str = {manifest:?};");
    let _ = writeln!(code, "/// Its lock file, for a machine named [`PLACEHOLDER`].\npub const LOCK: &str = {lock:?};");
    let _ = writeln!(code, "/// The machine's name in [`LOCK`].\npub const PLACEHOLDER: &str = {PLACEHOLDER:?};");
    write(&out.join("sdk.rs"), &code)
}

fn gather(sdk: &Path, part: &str, files: &mut Vec<(String, String)>) -> Result<(), String> {
    let path = sdk.join(part);
    if path.is_file() {
        files.push((part.to_owned(), read(&path)?));
        return Ok(());
    }
    let entries = fs::read_dir(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    for entry in entries {
        let name = entry.map_err(|error| format!("cannot read {}: {error}", path.display()))?.file_name();
        let name = name.into_string().map_err(|_| format!("a name in {} is no text", path.display()))?;
        gather(sdk, &format!("{part}/{name}"), files)?;
    }
    Ok(())
}

/// The SDK's manifest as the root of a workspace of its own, so that nothing of it mixes with the project's settings.
fn own_workspace(manifest: &str, workspace: &str) -> Result<String, String> {
    let mut text = format!("{}\n\n[workspace]\nmembers = [\"scenario\"]\n", manifest.trim_end());
    let used = |line: &str| {
        let name = line.split(' ').next().unwrap_or_default();
        ["serde", "serde_json", "sha2", "thiserror", "time", "wit-bindgen"].contains(&name)
    };
    for name in INHERITED {
        let body = section(workspace, name)?;
        if name != "workspace.dependencies" {
            let _ = write!(text, "\n{body}");
            continue;
        }
        text.push_str("\n[workspace.dependencies]\nseqgate-scenario = { path = \"scenario\" }\n");
        body.lines().filter(|line| used(line)).for_each(|line| text.extend([line, "\n"]));
    }
    Ok(text)
}

/// A table of a manifest: its head and its lines, without comments.
fn section(manifest: &str, name: &str) -> Result<String, String> {
    let head = format!("[{name}]");
    let mut lines = manifest.lines().skip_while(|line| *line != head);
    let Some(head) = lines.next() else { return Err(format!("Cargo.toml has no {head}")) };
    let body =
        lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok([head].into_iter().chain(body).map(|line| format!("{line}\n")).collect())
}

/// Lets cargo cut the repository's lock file down to what a new project needs: same versions, nothing downloaded.
fn lock(
    root: &Path,
    out: &Path,
    cargo: &Path,
    sdk: &[(String, String)],
    manifest: &str,
    machine: &str,
) -> Result<String, String> {
    let project = out.join("new-project");
    if project.exists() {
        fs::remove_dir_all(&project).map_err(|error| format!("cannot remove {}: {error}", project.display()))?;
    }
    let named = |text: &str| text.replace("{{machine}}", PLACEHOLDER);
    write(&project.join("Cargo.toml"), &named(manifest))?;
    write(&project.join("Cargo.lock"), &read(&root.join("Cargo.lock"))?)?;
    write(&project.join(PLACEHOLDER).join("Cargo.toml"), &named(machine))?;
    write(&project.join(PLACEHOLDER).join("src/lib.rs"), "")?;
    for (name, text) in sdk {
        write(&project.join("seqgate-sdk").join(name), text)?;
    }
    let update = |offline: bool| {
        let mut command = Command::new(cargo);
        command.args(["update", "--workspace", "--quiet"]).args(offline.then_some("--offline"));
        command.current_dir(&project).stdin(Stdio::null()).output()
    };
    // What this build itself needs has just been fetched; an index that is missing all the same is asked for.
    let mut output = update(true);
    if !output.as_ref().is_ok_and(|output| output.status.success()) {
        output = update(false);
    }
    let output = output.map_err(|error| format!("cannot run {}: {error}", cargo.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("cargo made no lock file for new projects ({}): {said}", output.status));
    }
    read(&project.join("Cargo.lock"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |path: &PathBuf, error| format!("cannot write {}: {error}", path.display());
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    fs::write(path, text).map_err(|error| failed(&path.to_owned(), error))
}
