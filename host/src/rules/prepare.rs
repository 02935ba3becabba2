//! Bytes in, checked component out. Nothing here compiles or runs the guest.

use std::borrow::Cow;

use seqgate_decide::ids::Digest;
use sha2::{Digest as _, Sha256};
use wasmparser::{ComponentExternalKind, Encoding, Parser, Payload};

use super::contract::{CONTRACT, INTERFACE};
use super::error::Refused;
use super::limits::{MEMORIES, TABLES};
use super::work::Work;

/// The default limit of [`prepare`], in bytes.
pub const MAX_COMPONENT: usize = 4 << 20;

/// A component that imports nothing, starts nothing and exports the contract. Only [`prepare`] makes one, and whatever
/// compiles, caches or runs a component asks for one.
#[derive(Clone, Debug)]
pub struct Prepared {
    digest: Digest,
    component: Vec<u8>,
}

impl Prepared {
    /// SHA-256 of the bytes that were given to [`prepare`], core module or component, as they were: what `sha256sum`
    /// says of the author's file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The component. Where a core module was given, this is what the host made of it.
    pub fn component(&self) -> &[u8] {
        &self.component
    }
}

/// The digest by which rules are known: SHA-256 of the bytes as they were registered.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// Checks a component, or makes one of a core module and checks that. The size is looked at first; the checks take
/// time in proportion to it (2 ms for 80 kB).
///
/// # Errors
/// [`Refused`], for the component's author. What only compiling and running shows (invalid code, a wrong function
/// type, an inconsistent description) is refused by [`LoadedRules::load`](super::LoadedRules::load).
pub fn prepare(bytes: &[u8], limit: usize) -> Result<Prepared, Refused> {
    if bytes.len() > limit {
        return Err(Refused::TooLarge { bytes: bytes.len(), limit });
    }
    let component = if Parser::is_component(bytes) {
        Cow::Borrowed(bytes)
    } else if Parser::is_core_wasm(bytes) {
        survey(bytes)?;
        Cow::Owned(encode(bytes)?)
    } else {
        let start = bytes[..bytes.len().min(8)].escape_ascii().to_string();
        let start = if start.is_empty() { "nothing: it is empty".into() } else { format!("\"{start}\"") };
        return Err(Refused::NotWasm { start });
    };
    contract(&survey(&component)?)?;
    Ok(Prepared { digest: digest(bytes), component: component.into_owned() })
}

fn encode(module: &[u8]) -> Result<Vec<u8>, Refused> {
    let detail = |error| format!("{error:#}");
    wit_component::ComponentEncoder::default()
        .module(module)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|error| Refused::Encode { detail: detail(error) })
}

/// Walks everything, embedded modules and components included, and gives the names of the instances that the
/// outermost component exports.
fn survey(bytes: &[u8]) -> Result<Vec<String>, Refused> {
    let invalid = |error: wasmparser::BinaryReaderError| Refused::Invalid { detail: error.to_string() };
    let mut exports = Vec::new();
    let mut open = Vec::new();
    let (mut work, mut tables, mut memories) = (Work::default(), 0, 0);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(invalid)? {
            Payload::Version { encoding, .. } => {
                open.push(encoding);
                work.module();
            }
            Payload::TypeSection(section) => work.types(section).map_err(invalid)?,
            Payload::FunctionSection(section) => work.functions(section).map_err(invalid)?,
            Payload::CodeSectionEntry(body) => work.body(&body)?,
            Payload::TableSection(section) => few("tables", &mut tables, section.count(), TABLES)?,
            Payload::MemorySection(section) => few("memories", &mut memories, section.count(), MEMORIES)?,
            Payload::End(_) => {
                open.pop();
            }
            // A module that is embedded in a component gets its imports from that component alone.
            Payload::ImportSection(imports) if open.len() == 1 => {
                if let Some(import) = imports.into_imports().next() {
                    let import = import.map_err(invalid)?;
                    return Err(import_refused(import.module, import.name));
                }
            }
            Payload::ComponentImportSection(imports) if open.len() == 1 => {
                if let Some(import) = imports.into_iter().next() {
                    return Err(import_refused(import.map_err(invalid)?.name.name, ""));
                }
            }
            Payload::StartSection { .. } => {
                let embedded = open.first() == Some(&Encoding::Component);
                let place = if embedded { "of a module inside the component" } else { "of the module" };
                return Err(Refused::Start { place });
            }
            Payload::ComponentStartSection { .. } => return Err(Refused::Start { place: "of the component" }),
            Payload::ComponentExportSection(section) if open.len() == 1 => {
                for export in section {
                    let export = export.map_err(invalid)?;
                    if export.kind == ComponentExternalKind::Instance {
                        exports.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    Ok(exports)
}

fn few(what: &'static str, sum: &mut usize, more: u32, limit: u32) -> Result<(), Refused> {
    *sum += more as usize;
    let (count, limit) = (*sum, limit as usize);
    if count > limit { Err(Refused::TooMany { what, count, limit }) } else { Ok(()) }
}

fn contract(exports: &[String]) -> Result<(), Refused> {
    if exports.iter().any(|name| name == CONTRACT) {
        return Ok(());
    }
    match exports.iter().find(|name| name.split('@').next() == Some(INTERFACE)) {
        Some(found) => Err(Refused::ContractVersion { found: found.clone() }),
        None => Err(Refused::World { exports: exports.to_vec() }),
    }
}

fn import_refused(module: &str, name: &str) -> Refused {
    let import = if name.is_empty() { module.to_owned() } else { format!("{module}.{name}") };
    let advice = if module.starts_with("wasi") {
        "That is WASI: build for wasm32-unknown-unknown, not for wasm32-wasip1 or wasip2"
    } else if module.contains("wbindgen") {
        "That is wasm-bindgen: a dependency was built for browsers; switch off its `js`, `wasm-bindgen` or `wasmbind` \
         feature (`getrandom`, `time`, `chrono`, `uuid` have one)"
    } else if module == "env" {
        "That is a function without a definition: a C library or an `extern` block that nothing was linked for"
    } else {
        "Rules see no clock, randomness, files or network: take such values from the event, and drop what asks for them"
    };
    Refused::Import { import, advice }
}
