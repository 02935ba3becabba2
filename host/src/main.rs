//! The program: everything it does is in the library's `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    seqgate::cli::main(std::env::args_os())
}
