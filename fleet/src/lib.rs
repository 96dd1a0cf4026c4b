//! The commands of `ringmark`, with what needs many other crates: stores at `s3://` and the like, `compact` and `store
//! files`, and `--format parquet`. Two binaries are made of it: `ringmark-fleet`, and `ringmark-query`, which has SQL as well.
//!
//! `compact` makes tables of a store of objects, with `losses` as one of them. `options` reads the command line of
//! what is written as columns, which is that of `ringmark`; `table` gathers rows in columns; `output` writes the
//! columns as Parquet or Arrow, `columns` those of tables; `remote` keeps objects, and
//! `stored` is what a query reads.
#![forbid(unsafe_code)]

mod columns;
mod compact;
mod options;
mod output;
mod parquet_properties;
mod remote;
mod stored;
mod table;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use clap::Parser;
use ringmark_cli::CompactOptions;
use ringmark_collector::store::objects::ObjectStore;
use ringmark_console::extension::{Extension, store_url};
use ringmark_decoder::store::ObjectSource;
use ringmark_decoder::{Dump, DumpBuilder, Filter, store};

pub use compact::AddedFile;
pub use stored::{ReadRows, Source, Stored, TABLES, Wanted};

use options::{Command, Export, Options, Store};

/// Done.
const FINE: u8 = 0;
/// Done, but events were lost or damaged.
const LOST: u8 = 1;
/// The command line is wrong.
const USAGE: u8 = 2;
/// The input cannot be read.
const UNREADABLE: u8 = 3;

/// What `ringmark` has not.
#[derive(Debug)]
pub struct Fleet;

impl Extension for Fleet {
    fn run(&self, words: Vec<OsString>) -> u8 {
        let words = [OsString::from("ringmark-fleet")].into_iter().chain(words);
        let command = match Options::try_parse_from(words) {
            Ok(options) => options.command,
            Err(error) => {
                let _ = error.print();
                return USAGE;
            }
        };
        let done = match command {
            Command::Export(options) => run(&options),
            Command::Compact(options) => compact(&options),
            Command::Store(Store::Files(options)) => {
                let listed = compact::list(&options).map(|()| FINE);
                listed.map_err(|error| (UNREADABLE, error))
            }
        };
        done.unwrap_or_else(|(exit, error)| {
            eprintln!("ringmark-fleet: {error:#}");
            exit
        })
    }

    fn source(&self, url: &str) -> io::Result<Box<dyn ObjectSource>> {
        Ok(Box::new(remote::Bucket::open(url)?))
    }

    fn stream(&self, words: Vec<OsString>) -> u8 {
        ringmark_stream::install_objects(Box::new(Self));
        ringmark_stream::run(words)
    }
}

impl ringmark_stream::Objects for Fleet {
    fn place(&self, url: &str) -> io::Result<Arc<dyn ObjectStore>> {
        Ok(Arc::new(remote::Bucket::open(url)?))
    }
}

fn compact(options: &CompactOptions) -> Result<u8, (u8, anyhow::Error)> {
    let is_clean = compact::run(options).map_err(|error| (UNREADABLE, error))?;
    Ok(if is_clean { FINE } else { LOST })
}

fn run(options: &Export) -> Result<u8, (u8, anyhow::Error)> {
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
fn read(options: &Export, filter: &Filter) -> Result<Dump, store::Unreadable> {
    let open = |path: &std::path::Path| {
        let unreadable =
            |error: io::Error| store::Unreadable(format!("{}: {error}", path.display()));
        match store_url(path) {
            Some(url) => {
                let bucket = remote::Bucket::open(url).map_err(unreadable)?;
                Ok(store::Opened::Objects(Box::new(bucket)))
            }
            None => {
                let file = std::fs::File::open(path).map_err(unreadable)?;
                Ok(store::Opened::File(path.to_owned(), file))
            }
        }
    };
    let builder = DumpBuilder::new().bare();
    store::read(builder, &options.files(), (filter, &options.choice()), open)
}
