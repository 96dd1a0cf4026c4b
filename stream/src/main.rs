//! `ringmark-stream`: see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ringmark_stream::main()
}
