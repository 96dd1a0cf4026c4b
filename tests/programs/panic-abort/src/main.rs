//! A traced program that panics: `panics_abort WAY [wait]`. With `wait` it does so when its standard
//! input ends. Tests build it with `-C panic=abort`, which no profile of the workspace has.
#![forbid(unsafe_code)]

use std::io::{Read, stdin};
use std::panic::catch_unwind;

use ringmark::event;

fn main() {
    let _session = ringmark::start_from_env();
    event!("ends.begin", way = "panic-abort");
    if std::env::args().nth(2).is_some() {
        let read = stdin().read_to_end(&mut Vec::new());
        read.expect("standard input");
    }
    // A build that unwinds goes on here, and ends well.
    let caught = catch_unwind(|| panic!("the pool is empty"));
    assert!(caught.is_err());
}
