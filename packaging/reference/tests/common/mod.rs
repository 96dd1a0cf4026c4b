//! What `ringmark-reference` writes, in a directory of the test's own.

use std::process::Command;
use std::time::Duration;

use ringmark_tests::{TempDir, run};

/// Longest time that a program of these tests may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// Everything, written.
pub(crate) fn written(label: &str) -> TempDir {
    let dir = TempDir::new(label).expect("a temporary directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringmark-reference"));
    let _ = run(command.arg(&*dir), LIMIT)
        .expect("it starts")
        .expect_code(0);
    dir
}
