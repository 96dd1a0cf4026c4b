//! Decodes a dump and shows nothing, to compare with `babeltrace2 --output-format=dummy`, which does as much.
//!
//! Prints the number of events, and the sum of all their values so that none goes unread.

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;

use ringmark_decoder::{DumpBuilder, Output, Value};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: decode DUMP");
        return ExitCode::from(2);
    };
    let mut builder = DumpBuilder::new();
    let path = PathBuf::from(path);
    let read = File::open(&path).map(|file| builder.read_file(&path, file));
    if !matches!(read, Ok(Ok(_))) {
        eprintln!("decode: {}: {read:?}", path.display());
        return ExitCode::from(3);
    }
    let dump = builder.finish();
    let (mut events, mut sum) = (0_u64, 0_u64);
    dump.events().for_each(|item| {
        let Output::Event(event) = item else { return };
        events += 1;
        for (_, value) in event.args() {
            if let Value::U64(number) = value {
                sum = sum.wrapping_add(number);
            }
        }
    });
    println!("{events} {sum}");
    ExitCode::SUCCESS
}
