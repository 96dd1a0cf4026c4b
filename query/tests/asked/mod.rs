//! Questions, and the rows of their answers.

#![allow(dead_code, unreachable_pub, reason = "every test uses its own part")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program, which reads below `root`.
pub fn program(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringmark-query"));
    command.current_dir(root).arg("query").args(words);
    command
}

/// What it says of a question that it does not answer, and its exit code.
pub fn refused(root: &Path, words: &[&str]) -> (i32, String) {
    let done = program(root, words).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(!done.status.success(), "{words:?}: {said}");
    (done.status.code().unwrap_or(-1), said)
}

/// The rows of an answer: these columns, as text, a bar between them.
pub fn rows(root: &Path, sql: &str, columns: &[&str]) -> Vec<String> {
    let done = program(root, &[sql, ".", "--format", "json"]).output();
    rows_of(&done.expect("it runs"), columns)
}

pub fn rows_of(done: &Output, columns: &[&str]) -> Vec<String> {
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code().is_some_and(|code| code <= 1), "{said}");
    let text = String::from_utf8(done.stdout.clone()).expect("UTF-8");
    let lines = text.lines().map(|line| {
        let row: Value = serde_json::from_str(line).expect(line);
        let cells = columns.iter().map(|column| match &row[column] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        cells.collect::<Vec<_>>().join("|")
    });
    lines.collect()
}
