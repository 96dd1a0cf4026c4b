//! Libraries in C that stand between a program and the C library (`LD_PRELOAD`), built when needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dirs::workspace_root;
use crate::fixture::Fixture;

/// Builds `tests/programs/NAME.c` into a library in the fixture.
///
/// # Panics
/// When gcc does not build it.
#[must_use]
pub fn build(fixture: &Fixture, name: &str) -> PathBuf {
    let source = workspace_root().join(format!("tests/programs/{name}.c"));
    let library = fixture.path(&format!("{name}.so"));
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
    ]);
    let output = gcc.arg(&library).arg(source).output().expect("gcc starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    library
}

/// One call on a dump, as `disk_shim.c` logs it, or on a store, as `store_shim.c` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    kind: u32,
    /// Number of the file; 0 for calls on names and directories; of what was said to a streamer, the
    /// socket.
    pub file: u32,
    /// Where a write went; the length of a file that was cut; the kind of what was said.
    pub offset: u64,
    /// Pages that each slot's consumer had released before the call.
    pub consumed: [u64; 8],
    /// What was written, or the name; of a rename both, with a zero between.
    pub data: Vec<u8>,
}

const CALLS: [&str; 10] = [
    "",
    "write",
    "fdatasync",
    "ftruncate",
    "rename",
    "unlink",
    "open",
    "fsync",
    "mkdir",
    "said",
];

impl Call {
    /// Its name; `fsync` is that of the directory.
    #[must_use]
    pub fn call(&self) -> &'static str {
        CALLS.get(self.kind as usize).copied().unwrap_or_default()
    }
}

/// The log that `disk_shim.c` wrote; empty if there is none.
///
/// # Panics
/// When it is cut.
#[must_use]
pub fn read_log(path: &Path) -> Vec<Call> {
    let bytes = fs::read(path).unwrap_or_default();
    let mut calls = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some((header, more)) = rest.split_at_checked(96) {
        let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let (data, after) = more.split_at(word(16) as usize);
        calls.push(Call {
            kind: word(0) as u32,
            file: (word(0) >> 32) as u32,
            offset: word(8),
            consumed: std::array::from_fn(|slot| word(24 + 8 * slot)),
            data: data.to_vec(),
        });
        rest = after;
    }
    assert!(rest.is_empty(), "a log that was cut");
    calls
}
