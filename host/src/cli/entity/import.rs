//! `entity import`: entities that another system has brought this far.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;
use seqgate_decide::machine::Machines;

use super::line::{Lines, Read1};
use crate::cli::context::{By, Context};
use crate::cli::failure::failed;
use crate::cli::output::{Object, plain};
use crate::cli::show;
use crate::runner::Engine;
use crate::runner::adopt::Adopted;

/// How many entities go in one transaction.
const CHUNK: usize = 500;
/// How many lines of each kind are listed; all are counted.
const LISTED: usize = 1000;

/// Take entities over
#[derive(Args, Debug)]
pub struct Import {
    /// A JSON object a line: key, version, state, schema, data; `-` is standard input
    file: PathBuf,
    /// The machine, where lines name none
    #[arg(long)]
    machine: Option<String>,
    /// Check every line and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    by: By,
}

/// What came of the lines.
#[derive(Default)]
struct Report {
    imported: u64,
    already: u64,
    differing: u64,
    bad: u64,
    /// Line, entity, kind, texts.
    listed: Vec<(u64, String, &'static str, String)>,
}

impl Report {
    fn list(&mut self, line: u64, entity: String, code: &'static str, text: String) {
        if self.listed.len() < LISTED {
            self.listed.push((line, entity, code, text));
        }
    }

    fn unreadable(&mut self, line: u64, why: String) {
        self.bad += 1;
        self.list(line, String::new(), "bad", why);
    }

    fn json(&self, dry: bool) -> Object {
        let one = |(line, entity, code, text): &(u64, String, &'static str, String)| {
            let entity = Some(entity.as_str()).filter(|e| !e.is_empty());
            Object::new().put("line", line).put("entity", entity).put("what", code).put("message", text)
        };
        Object::new()
            .put("dry_run", dry)
            .put("imported", self.imported)
            .put("already", self.already)
            .put("differing", self.differing)
            .put("bad", self.bad)
            .put("lines", self.listed.iter().map(one).collect::<Vec<_>>())
    }

    fn text(&self, dry: bool) -> String {
        let mut text = String::new();
        for (line, entity, code, why) in &self.listed {
            let entity = if entity.is_empty() { String::new() } else { format!(" {entity}") };
            text.push_str(&format!("line {line}{}: {code}: {}\n", plain(&entity), plain(why)));
        }
        let verb = if dry { "could be imported" } else { "imported" };
        text + &format!(
            "{} {verb}, {} already there, {} differing, {} bad\n",
            self.imported, self.already, self.differing, self.bad
        )
    }
}

impl Import {
    /// Runs the command.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let site = ctx.open().await?;
        let mut lines = Lines::open(&site, &self.file, self.machine.clone())?;
        let (engine, mut machines) = site.decider(ctx).await?;
        let bar = (!ctx.json && std::io::stderr().is_terminal()).then(ProgressBar::new_spinner);
        let mut report = Report::default();
        loop {
            let chunk = lines.chunk(CHUNK)?;
            if chunk.is_empty() {
                break;
            }
            self.take(&engine, &mut machines, chunk, &mut report).await?;
            let done = format!("{} imported, {} already there", report.imported, report.already);
            match &bar {
                Some(bar) => {
                    bar.set_message(done);
                    bar.tick();
                }
                None => tracing::info!(imported = report.imported, already = report.already, "importing"),
            }
        }
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        ctx.answer(|| report.json(self.dry_run), || report.text(self.dry_run))?;
        if report.differing + report.bad > 0 {
            let message = format!("{} lines were not imported", report.differing + report.bad);
            return Err(failed("not-imported", message));
        }
        Ok(())
    }

    /// Decides one chunk in one transaction. A key that comes twice in it is taken once, and compared the second time.
    async fn take(
        &self,
        engine: &Engine,
        machines: &mut Machines,
        chunk: Vec<Read1>,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let (mut numbers, mut imports, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut again = Vec::new();
        for (number, read) in chunk {
            match read {
                Err(why) => report.unreadable(number, why),
                Ok(import) if names.insert(import.entity.clone()) => {
                    numbers.push(number);
                    imports.push(import);
                }
                Ok(import) => again.push((number, Ok(import))),
            }
        }
        if let (Some(first), Some(last)) = (numbers.first(), numbers.last()) {
            let subject = format!("{} lines {first} to {last}", self.file.display());
            let found = engine.adopt(machines, &self.by.actor(), &imports, &subject, self.dry_run).await?;
            for ((number, import), adopted) in numbers.iter().zip(&imports).zip(found) {
                let entity = show::entity(&import.entity);
                match adopted {
                    Adopted::Imported => report.imported += 1,
                    Adopted::Already => report.already += 1,
                    Adopted::Differs(what) => {
                        report.differing += 1;
                        report.list(*number, entity, "differs", what.join("; "));
                    }
                    Adopted::Refused(reason) => {
                        report.bad += 1;
                        report.list(*number, entity, "refused", format!("{} ({})", reason.message, reason.code));
                    }
                }
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        Box::pin(self.take(engine, machines, again, report)).await
    }
}
