//! The cache saves a compilation and is never trusted further than that.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::prepare::MAX_COMPONENT;
use super::super::{Cache, Engine, EngineOptions, HostError, Limits, LoadedRules, Origin, prepare};
use super::guest::Guest;

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("seqgate-cache-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        let file = files.next().unwrap();
        assert!(files.next().is_none(), "one file, and no temporary one left");
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load(engine: &Engine, cache: &Cache, guest: &Guest) -> Arc<LoadedRules> {
    let prepared = prepare(&guest.module(), MAX_COMPONENT).unwrap();
    LoadedRules::load(engine, &prepared, Limits::default(), Some(cache)).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_second_load_reads_what_the_first_compiled() {
    let folder = Folder::new("hit");
    let (engine, cache) = (super::engine(), Cache::open(&folder.0).unwrap());
    assert_eq!(load(&engine, &cache, &Guest::new()).origin(), Origin::Compiled);
    assert_eq!((mode(&folder.0), mode(&folder.file())), (0o700, 0o600));
    assert_eq!(load(&engine, &cache, &Guest::new()).origin(), Origin::Cached);
    let restarted = super::engine();
    assert_eq!(load(&restarted, &Cache::open(&folder.0).unwrap(), &Guest::new()).origin(), Origin::Cached);
}

#[test]
fn other_rules_and_other_settings_miss() {
    let folder = Folder::new("miss");
    let (engine, cache) = (super::engine(), Cache::open(&folder.0).unwrap());
    load(&engine, &cache, &Guest::new());
    assert_eq!(load(&engine, &cache, &Guest::applying("(unreachable)")).origin(), Origin::Compiled);
    // Another layout of memory may mean other code: whichever it is, what loads works.
    let allocation = super::super::Allocation::OnDemand;
    let other = Engine::new(&EngineOptions { allocation, ..EngineOptions::default() }).unwrap();
    assert_eq!(load(&other, &cache, &Guest::new()).description().name, "things");
}

#[test]
fn a_damaged_entry_is_compiled_again_and_replaced() {
    let folder = Folder::new("damage");
    let (engine, cache) = (super::engine(), Cache::open(&folder.0).unwrap());
    load(&engine, &cache, &Guest::new());
    let file = folder.file();
    let sound = fs::read(&file).unwrap();
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 1;
    for damaged in [&flipped[..], &sound[..sound.len() - 1], &sound[..20], b""] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(load(&engine, &cache, &Guest::new()).origin(), Origin::Compiled);
        assert_eq!(fs::read(folder.file()).unwrap(), sound);
    }
}

#[test]
fn an_entry_that_others_may_write_is_not_trusted() {
    let folder = Folder::new("mode");
    let (engine, cache) = (super::engine(), Cache::open(&folder.0).unwrap());
    load(&engine, &cache, &Guest::new());
    fs::set_permissions(folder.file(), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(load(&engine, &cache, &Guest::new()).origin(), Origin::Compiled);
    assert_eq!(mode(&folder.file()), 0o600);
    // The same behind a link.
    let (file, elsewhere) = (folder.file(), Folder::new("mode-target"));
    fs::rename(&file, &elsewhere.0).unwrap();
    std::os::unix::fs::symlink(&elsewhere.0, &file).unwrap();
    assert_eq!(load(&engine, &cache, &Guest::new()).origin(), Origin::Compiled);
    fs::remove_file(&elsewhere.0).unwrap();
}

#[test]
fn a_folder_that_others_may_enter_is_refused() {
    let folder = Folder::new("open");
    fs::create_dir(&folder.0).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    let error = Cache::open(&folder.0).unwrap_err();
    assert!(matches!(error, HostError::Cache { .. }) && error.to_string().contains("chmod 700"), "{error}");
}

#[test]
fn rules_load_where_the_cache_cannot_be_written() {
    let folder = Folder::new("gone");
    let cache = Cache::open(&folder.0).unwrap();
    fs::remove_dir_all(&folder.0).unwrap();
    assert_eq!(load(&super::engine(), &cache, &Guest::new()).origin(), Origin::Compiled);
}
