//! What the compilers of this machine can do: asked of them, never taken from their version.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::fixture::Fixture;
use crate::tools::log_skip;

/// Answers so far, by compiler and flags.
static KNOWN: Mutex<Option<HashMap<String, Option<usize>>>> = Mutex::new(None);

/// Whether `compiler` builds and links a program with `flags`.
///
/// What it cannot do is listed as skipped, with the compiler's own words.
///
/// # Panics
/// When no directory for the attempt can be made.
#[must_use]
pub fn can_build(compiler: &str, flags: &str) -> bool {
    first_that_builds(compiler, &[flags]).is_some()
}

/// The first of some spellings of the same flags that `compiler` builds and links a program with.
///
/// # Panics
/// As [`can_build`].
#[must_use]
pub fn first_that_builds<'f>(compiler: &str, spellings: &[&'f str]) -> Option<&'f str> {
    let question = format!("{compiler} {}", spellings.join(" | "));
    let mut known = KNOWN.lock().unwrap_or_else(|error| error.into_inner());
    let known = known.get_or_insert_default();
    let found = *known.entry(question).or_insert_with_key(|question| {
        let answers = spellings.iter().map(|flags| try_build(compiler, flags));
        let answers: Vec<_> = answers.collect();
        let found = answers.iter().position(Result::is_ok);
        if let (None, Some(Err(reason))) = (found, answers.first()) {
            log_skip(&format!("{question}: {reason}"));
        }
        found
    });
    found.map(|at| spellings[at])
}

/// Builds a program of one line; the compiler's reason where it does not.
fn try_build(compiler: &str, flags: &str) -> Result<(), String> {
    let fixture = Fixture::new("can-build");
    let source = fixture.path("probe.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a source file");
    let mut command = Command::new(compiler);
    command
        .args(flags.split_whitespace())
        .arg(&source)
        .arg("-o")
        .arg(fixture.path("probe"))
        .stdin(Stdio::null());
    let answer = match command.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let is_reason = |line: &&str| line.contains("error") || line.contains("cannot");
    let reason = answer.lines().find(is_reason).or(answer.lines().next());
    Err(reason.unwrap_or("it gave no reason").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_flag_is_a_no() {
        let spellings = ["-fno-such-flag-of-that-name", "-O1", "-O2"];
        assert_eq!(first_that_builds("cc", &spellings), Some("-O1"));
        assert!(can_build("cc", "-O2"));
        // Not by way of the list of what was skipped.
        assert!(try_build("cc", spellings[0]).is_err());
        assert!(try_build("no-such-compiler", "").is_err());
    }
}
