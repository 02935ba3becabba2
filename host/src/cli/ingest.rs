//! `ingest`: lines of a file into an embedded source's log, beside a host that runs or before it does.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use seqgate_decide::envelope::Limits;

use super::context::Context;
use super::failure::{failed, usage};
use super::output::Object;
use crate::config::{Config, EmbeddedConfig, SourceConfig};
use crate::ingest::{self as log, Refusal};
use crate::runner::run::directory;

/// The longest line, in bytes.
const MAX_LINE: u64 = 64 << 20;
/// About how many lines and bytes go together.
const TOGETHER: (usize, usize) = (1_000, 1 << 20);
/// The pause before a full log is tried again.
const PAUSE: Duration = Duration::from_millis(200);

/// Append events to an embedded source's log, a CloudEvent in JSON a line
#[derive(Args, Debug)]
pub struct Ingest {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The embedded source, where several are configured
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// How many seconds to wait for room when the log is full
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

impl Ingest {
    /// Appends all lines, and says where they stand.
    pub async fn run(self, ctx: &Context) -> anyhow::Result<()> {
        let config = ctx.load()?;
        let embedded = self.chosen(&config)?;
        let mut input = self.open()?;
        let setups: Vec<_> = config.machines.iter().map(|m| m.setup.clone()).collect();
        let limits = Limits { data: config.data_limit };
        let site = ctx.open_or_make(config).await?;
        let (clock, directory) = (ctx.clock.clone(), directory(&setups));
        let (ingest, task) = log::Ingest::start(embedded, site.store.clone(), clock, directory, limits, false).await?;
        let (mut taken, mut unreadable) = (0, 0);
        loop {
            let lines = tokio::task::block_in_place(|| next_lines(&mut *input, taken))?;
            if lines.is_empty() {
                break;
            }
            let (more, bad) = self.append(&ingest, lines, taken).await?;
            (taken, unreadable) = (taken + more, unreadable + bad);
        }
        let name = ingest.config().name.to_string();
        drop(ingest);
        task.await?;
        site.store.close().await?;
        let json = || Object::new().put("source", &name).put("events", taken).put("unreadable", unreadable);
        ctx.answer(json, || sentence(ctx, &name, taken, unreadable))
    }

    /// Appends some lines, and waits for room where the log is full.
    async fn append(&self, ingest: &log::Ingest, lines: Vec<Vec<u8>>, before: u64) -> anyhow::Result<(u64, u64)> {
        let begun = Instant::now();
        loop {
            match ingest.take_lines(lines.clone()).await {
                Ok((taken, unreadable)) => return Ok((taken.len() as u64, unreadable)),
                Err(Refusal::Full { .. }) if begun.elapsed() < Duration::from_secs(self.wait) => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(refusal) => {
                    let message = format!("{refusal}. {before} lines were taken, and are safe");
                    return Err(failed("not-taken", message));
                }
            }
        }
    }

    fn chosen(&self, config: &Config) -> anyhow::Result<EmbeddedConfig> {
        let embedded: Vec<&EmbeddedConfig> = config
            .sources
            .iter()
            .filter_map(|source| match source {
                SourceConfig::Embedded(embedded) => Some(embedded),
                SourceConfig::Jsonl(_) => None,
            })
            .collect();
        let names = || embedded.iter().map(|e| &*e.name).collect::<Vec<_>>().join(", ");
        match (&self.source, embedded.as_slice()) {
            (_, []) => {
                let text = "no source of kind = \"embedded\" is configured; add [[source]] with name and kind";
                Err(usage("no-source", text.to_owned()))
            }
            (None, [only]) => Ok((*only).clone()),
            (None, _) => Err(usage("no-source", format!("which source? Name one with --source: {}", names()))),
            (Some(name), _) => match embedded.iter().find(|e| *e.name == **name) {
                Some(found) => Ok((*found).clone()),
                None => {
                    let text = format!("no embedded source is named `{name}`; there are: {}", names());
                    Err(usage("no-source", text))
                }
            },
        }
    }

    fn open(&self) -> anyhow::Result<Box<dyn BufRead + Send>> {
        if self.file.as_os_str() == "-" {
            return Ok(Box::new(BufReader::new(std::io::stdin())));
        }
        let shown = self.file.display();
        let file = std::fs::File::open(&self.file);
        let file = file.map_err(|error| failed("no-file", format!("cannot read {shown}: {error}")))?;
        Ok(Box::new(BufReader::with_capacity(256 << 10, file)))
    }
}

/// The next lines, without their newlines; none at the end.
fn next_lines(input: &mut dyn BufRead, before: u64) -> anyhow::Result<Vec<Vec<u8>>> {
    use std::io::Read as _;
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while lines.len() < TOGETHER.0 && bytes < TOGETHER.1 {
        let mut line = Vec::new();
        (&mut *input).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        if line.ends_with(b"\n") {
            line.pop();
        } else if line.len() as u64 >= MAX_LINE {
            let number = before + lines.len() as u64 + 1;
            let text = format!("line {number} is longer than {} MiB; this cannot be a file of events", MAX_LINE >> 20);
            return Err(failed("line-too-long", text));
        }
        bytes += line.len();
        lines.push(line);
    }
    Ok(lines)
}

fn sentence(ctx: &Context, name: &str, taken: u64, unreadable: u64) -> String {
    let events = if taken == 1 { "line" } else { "lines" };
    let mut text = format!("{taken} {events} appended to the log of {name}");
    if unreadable > 0 {
        let list = ctx.command("dead-letter list");
        text.push_str(&format!("; {unreadable} of them cannot be read, and will be dead letters: `{list}`"));
    }
    text
}
