//! `new`: a project with one machine, ready to build, test and run.

use std::path::PathBuf;

use super::context::Context;
use super::failure::usage;
use super::output::Object;
use super::show;
use crate::scaffold::{self, ScaffoldError};

/// Write a new project: a machine, its scenarios, the SDK, a configuration
#[derive(clap::Args, Debug)]
pub struct New {
    /// The machine's name: lower-case letters, digits and hyphens
    machine: String,
    /// Where to write it: a folder that is empty or not there yet
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
}

impl New {
    /// Runs the command.
    pub fn run(&self, ctx: &Context) -> anyhow::Result<()> {
        let Self { machine, path } = self;
        let written = match scaffold::write(machine, path) {
            Err(error @ (ScaffoldError::Name(_) | ScaffoldError::Taken(_) | ScaffoldError::NotEmpty { .. })) => {
                return Err(usage("usage", error.to_string()));
            }
            written => written?,
        };
        let folder = path.display().to_string();
        let json = || Object::new().put("machine", machine).put("path", &folder).put("files", &written);
        ctx.answer(json, || {
            let enter = match folder.as_str() {
                "." => String::new(),
                folder => format!("    cd {}\n", show::quoted(folder)),
            };
            format!(
                "A machine `{machine}` is in {machine}/, the SDK in seqgate-sdk/. What to do next:\n{enter}    \
                 cargo test\n    seqgate rules build {machine} -o {machine}.wasm\n    seqgate run --until-idle\n    \
                 seqgate entity show {machine} a1\n"
            )
        })
    }
}
