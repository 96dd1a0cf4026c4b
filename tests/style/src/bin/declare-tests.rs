//! Writes the test targets of `tests/Cargo.toml` as the files of its folders say.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use ringmark_style::{read_sources, targets, workspace_root};

fn main() -> ExitCode {
    let root = workspace_root();
    let written = read_sources(&root)
        .map_err(|error| error.to_string())
        .and_then(|sources| targets::manifest(&sources))
        .and_then(|text| {
            std::fs::write(root.join(targets::MANIFEST), text).map_err(|error| error.to_string())
        });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("declare-tests: {reason}");
            ExitCode::FAILURE
        }
    }
}
