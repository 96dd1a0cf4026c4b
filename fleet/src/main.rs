//! `ringmark-fleet`: traces as files for databases. `ringmark scan --format parquet` runs it.
//!
//! `options` reads the command line, which is that of `ringmark`; `table` gathers rows in columns;
//! `output` writes the columns as Parquet or Arrow.
#![forbid(unsafe_code)]

mod options;
mod output;
mod table;

use std::process::ExitCode;

use clap::Parser;
use ringmark_decoder::{Dump, DumpBuilder, Filter, store};

use options::{Options, Scan};

/// Done.
const FINE: u8 = 0;
/// Done, but events were lost or damaged.
const LOST: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// The input cannot be read.
const UNREADABLE: u8 = 3;

fn main() -> ExitCode {
    let options = Options::parse().command.options();
    match run(&options) {
        Ok(exit) => ExitCode::from(exit),
        Err((exit, error)) => {
            eprintln!("ringmark-fleet: {error:#}");
            ExitCode::from(exit)
        }
    }
}

fn run(options: &Scan) -> Result<u8, (u8, anyhow::Error)> {
    let usage = |error| (USAGE, error);
    let filter = options.filter().map_err(usage)?;
    let dump = read(options, &filter).map_err(|error| (UNREADABLE, error.into()))?;
    let filter = options.within(filter, &dump).map_err(usage)?;
    let chosen = options.rows(&filter, &dump).map_err(usage)?;
    let end = output::write(options, &dump, chosen, &filter).map_err(|error| (LOST, error))?;
    eprintln!(
        "ringmark-fleet: {}: {} rows",
        options.output.display(),
        end.rows
    );
    if end.open > 0 {
        eprintln!(
            "ringmark-fleet: spans and calls that were open at the end, without a row: {}",
            end.open
        );
    }
    if end.lost_after > 0 {
        eprintln!(
            "ringmark-fleet: events lost after the last row of their thread: {}",
            end.lost_after
        );
    }
    for damage in dump.damage.iter().chain(&dump.gone()).take(10) {
        eprintln!("ringmark-fleet: {damage}");
    }
    let is_clean = dump.verify().is_clean() && dump.gone().is_empty();
    Ok(if is_clean { FINE } else { LOST })
}

/// Reads what may be chosen, as `ringmark` reads it.
fn read(options: &Scan, filter: &Filter) -> Result<Dump, store::Unreadable> {
    let open = |path: &std::path::Path| {
        let file = std::fs::File::open(path);
        file.map(|file| store::Opened::File(path.to_owned(), file))
            .map_err(|error| store::Unreadable(format!("{}: {error}", path.display())))
    };
    let builder = DumpBuilder::new().bare();
    store::read(builder, &options.files(), (filter, &options.choice()), open)
}
