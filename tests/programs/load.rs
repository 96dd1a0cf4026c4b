//! `load PID LIBRARY [SECONDS [FUNCTION ARGUMENT]]`: loads a shared object into a running process.
#![forbid(unsafe_code)]

use std::ffi::CString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ringmark_attach::{Options, load};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pid, library, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: load PID LIBRARY [SECONDS [FUNCTION ARGUMENT]]");
        return ExitCode::from(2);
    };
    let mut options = Options::default();
    if let Some(seconds) = rest.first().and_then(|seconds| seconds.parse().ok()) {
        options.limit = Duration::from_secs_f64(seconds);
    }
    let text = |at: usize| {
        rest.get(at)
            .and_then(|text| CString::new(text.as_str()).ok())
    };
    let (function, argument) = (text(1), text(2).unwrap_or_default());
    options.call = function.as_deref().map(|name| (name, argument.as_c_str()));
    match load(pid.parse().unwrap_or(0), Path::new(library), &options) {
        Ok(loaded) => {
            println!(
                "way={:?} result={:?} stopped_us={} held_us={} tid={}",
                loaded.way,
                loaded.result,
                loaded.stopped.as_micros(),
                loaded.held.as_micros(),
                loaded.tid
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(4)
        }
    }
}
