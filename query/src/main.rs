//! `ringmark-query`: SQL over what collectors have stored. `ringmark` goes on as it for `query`; all else that
//! `ringmark-fleet` can do, it can, too.
//!
//! `sql` plans a question, runs it and prints the answer. `rows` is a table for DataFusion: the files of its log, and
//! the rows of segments; `wanted` says which of them a question needs. `tables` reads the files, `quantiles`
//! are the functions of durations.
#![forbid(unsafe_code)]

mod quantiles;
mod rows;
mod sql;
mod tables;
mod wanted;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use ringmark_console::extension::{Extension, Question};
use ringmark_decoder::store::ObjectSource;
use ringmark_fleet::Fleet;

fn main() -> ExitCode {
    ringmark_cli::main(Some(Box::new(Query)))
}

/// What `ringmark` has not.
struct Query;

impl Extension for Query {
    fn run(&self, words: Vec<OsString>) -> u8 {
        Fleet.run(words)
    }

    fn query(&self, question: &Question) -> Option<u8> {
        Some(sql::run(question).unwrap_or_else(|failed| {
            eprintln!("ringmark-query: {}", failed.text);
            failed.exit
        }))
    }

    fn source(&self, url: &str) -> io::Result<Box<dyn ObjectSource>> {
        Fleet.source(url)
    }

    fn stream(&self, words: Vec<OsString>) -> u8 {
        Fleet.stream(words)
    }
}
