//! Why rules were not loaded, by who has to act: their author ([`Refused`]) or whoever runs the host ([`HostError`]).

use std::fmt;

use super::contract::CONTRACT;
use super::describe::Flaw;

/// The component is not accepted. The text is for its author and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Larger than the limit; nothing of it was read.
    #[error(
        "the component is {bytes} bytes; the limit is {limit} (fixed): build it with `seqgate rules build` (size-optimised, \
         stripped), or drop large dependencies"
    )]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// Not a WebAssembly binary.
    #[error(
        "this is not a WebAssembly binary (it starts with {start}): give the .wasm file that `seqgate rules build` makes"
    )]
    NotWasm {
        /// The first bytes, readable.
        start: String,
    },
    /// WebAssembly that does not validate, or uses features that the host has switched off.
    #[error("the WebAssembly is not valid here: {detail}. Build it for wasm32-unknown-unknown with default features")]
    Invalid {
        /// What the validator said.
        detail: String,
    },
    /// More code, or more tangled code, than the compiler is asked to take on; see [`work`](super::work).
    #[error(
        "{count} {what}; the limit is {limit} (fixed), passed at function {function}: such code keeps the compiler busy for \
         minutes. Build it with `seqgate rules build` (optimised), and split or drop what a macro or generator made"
    )]
    TooMuchCode {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        count: usize,
        /// The most that is accepted.
        limit: usize,
        /// The function in which that was seen, counted from 0 over those with a body.
        function: usize,
    },
    /// More of something that the host keeps room for than it has; see [`limits`](super::limits).
    #[error("{count} {what}; the limit is {limit} (fixed). Build it with the `seqgate-guest` crate, not by hand")]
    TooMany {
        /// `tables` or `memories`.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// It imports something (G8).
    #[error("it imports `{import}`, and rules may import nothing. {advice}")]
    Import {
        /// The import's full name.
        import: String,
        /// What usually brings that import in.
        advice: &'static str,
    },
    /// A module has a start function, or the component has a start section.
    #[error(
        "it has a start function ({place}), which would run before any rule is asked: remove `#[start]`, constructors \
         (the `ctor` crate) and `_initialize`, and compute such values on first use"
    )]
    Start {
        /// Where.
        place: &'static str,
    },
    /// No export of the contract's interface.
    #[error(
        "it does not export `{contract}`{}: write the machine with the `seqgate-guest` crate and its export macro, as a \
         library with crate-type `cdylib`", found(.exports), contract = CONTRACT
    )]
    World {
        /// What it does export.
        exports: Vec<String>,
    },
    /// The contract's interface in a version that this host does not serve.
    #[error("it exports `{found}` and this host serves `{contract}`: build it with the matching `seqgate-guest`", contract = CONTRACT)]
    ContractVersion {
        /// The export.
        found: String,
    },
    /// The interface is there and a function of it is missing or has another type.
    #[error(
        "its `{function}` is not the contract's: {detail}. Build it with the `seqgate-guest` crate of this host's version"
    )]
    Shape {
        /// `describe`, `apply`, `migrate` or `compensate`.
        function: &'static str,
        /// What differs.
        detail: String,
    },
    /// A core module that cannot be turned into a component.
    #[error("the module cannot be made a component: {detail}. Build it with the `seqgate-guest` crate, not by hand")]
    Encode {
        /// What the encoder said.
        detail: String,
    },
    /// `describe` did not answer.
    #[error("`describe` failed ({code}): {message}. It must return a constant table; test it with `cargo test`")]
    DescribeFailed {
        /// The fault's code.
        code: String,
        /// The fault's text.
        message: String,
    },
    /// `describe` answered with something that contradicts itself.
    #[error("its description contradicts itself: {}", all(.flaws))]
    Description {
        /// Everything that is wrong with it, at least one.
        flaws: Vec<Flaw>,
    },
}

fn found(exports: &[String]) -> String {
    if exports.is_empty() {
        " (it exports no interface)".into()
    } else {
        format!(" (it exports {})", exports.join(", "))
    }
}

fn all(flaws: &[Flaw]) -> String {
    flaws.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The host's own trouble: retrying or repairing the host helps, changing the component does not.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The engine cannot be set up.
    #[error("the WebAssembly engine cannot start: {0}")]
    Engine(WasmError),
    /// No thread for the time limit.
    #[error("the thread that keeps the rules' time limit cannot start")]
    Ticker(#[source] std::io::Error),
    /// No memory or address space for an instance, or the pool is used up.
    #[error("no instance for these rules: {0}. Free memory, or lower the number of partitions that run at a time")]
    Instance(WasmError),
    /// The cache's folder cannot be used.
    #[error("the folder {path} cannot hold compiled rules: {detail}")]
    Cache {
        /// The folder.
        path: std::path::PathBuf,
        /// What is wrong with it.
        detail: String,
    },
}

impl HostError {
    pub(super) fn engine(error: wasmtime::Error) -> Self {
        Self::Engine(WasmError::from(error))
    }
}

/// wasmtime's error as a standard one, with the whole chain in its text.
#[derive(Debug)]
pub struct WasmError(String);

impl From<wasmtime::Error> for WasmError {
    fn from(error: wasmtime::Error) -> Self {
        Self(chain(&error))
    }
}

impl fmt::Display for WasmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WasmError {}

/// Every cause on one line; stack traces, which wasmtime keeps as causes, are left out.
pub(super) fn chain(error: &wasmtime::Error) -> String {
    let causes = error.chain().map(ToString::to_string).filter(|text| !text.contains('\n'));
    causes.collect::<Vec<_>>().join(": ")
}

/// Rules that were not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The author has to act.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The operator has to act, or nobody: try again.
    #[error(transparent)]
    Host(#[from] HostError),
}
