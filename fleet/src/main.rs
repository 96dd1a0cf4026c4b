//! `ringmark-fleet`: the commands of `ringmark`, with what needs many other crates.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ringmark_cli::main(Some(Box::new(ringmark_fleet::Fleet)))
}
