//! End to end: the program on the orders workload, against two baselines that write the same rows. `docs/operating/performance.md`
//! says what is measured and how; `-- --help` lists the options.
//!
//! The program under test is this very executable in another process, so that nothing has to be built or found beside it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use seqgate_yardstick::folder::Folder;
use seqgate_yardstick::options::{Options, Orders};
use seqgate_yardstick::program::Program;
use seqgate_yardstick::{Events, Subject, measure};

/// What makes this executable the program under test.
const AS_PROGRAM: &str = "as-program";

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Source {
    Jsonl,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Store {
    Sqlite,
}

/// Measure the program end to end
#[derive(Debug, Parser)]
#[command(name = "end_to_end", max_term_width = 100)]
struct Cli {
    /// Where events come from
    #[arg(long, value_enum, default_value = "jsonl")]
    source: Source,
    /// Where rows go to
    #[arg(long, value_enum, default_value = "sqlite")]
    store: Store,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    orders: Orders,
    #[command(flatten)]
    options: Options,
    /// Given by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|a| a == AS_PROGRAM) {
        let rest = std::iter::once(OsString::from("seqgate")).chain(arguments.into_iter().skip(2));
        return seqgate::cli::main(rest);
    }
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<()> {
    let (Source::Jsonl, Store::Sqlite) = (cli.source, cli.store);
    let rules = Folder::make(&cli.options.dir.clone().unwrap_or_else(std::env::temp_dir), false)?;
    let program = Program { path: std::env::current_exe()?, arguments: vec![AS_PROGRAM.into()] };
    let subject = Subject {
        program,
        machines: machines(rules.path())?,
        machine: None,
        events: Events::Orders(cli.orders.clone()),
    };
    let report = measure(&subject, &cli.options, &|what| eprintln!("{what}"))?;
    if cli.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        print!("{}", report.text());
    }
    Ok(())
}

/// The `orders` component that the program carries, and its section of a configuration.
fn machines(folder: &Path) -> anyhow::Result<String> {
    let (name, module) = seqgate::demo::guests::GUESTS[0];
    let path: PathBuf = folder.join(format!("{name}.wasm"));
    std::fs::write(&path, module)?;
    Ok(format!("[[machine]]\nname = {name:?}\nrules = {path:?}\n"))
}
