//! What the compilers of this machine can do: asked of them, never taken from their version.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::stage::Stage;
use crate::tools::log_skip;

/// Answers so far, by compiler and flags.
static KNOWN: Mutex<Option<HashMap<String, bool>>> = Mutex::new(None);

/// Whether `compiler` builds and links a program with `flags`.
///
/// What it cannot do is listed as skipped, with the compiler's own words.
///
/// # Panics
/// When no directory for the attempt can be made.
#[must_use]
pub fn can_build(compiler: &str, flags: &str) -> bool {
    let question = format!("{compiler} {flags}");
    let mut known = KNOWN.lock().unwrap_or_else(|error| error.into_inner());
    let known = known.get_or_insert_default();
    *known
        .entry(question)
        .or_insert_with_key(|question| try_build(compiler, flags, question))
}

fn try_build(compiler: &str, flags: &str, question: &str) -> bool {
    let stage = Stage::new("can-build");
    let source = stage.path("probe.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a source file");
    let mut command = Command::new(compiler);
    command
        .args(flags.split_whitespace())
        .arg(&source)
        .arg("-o")
        .arg(stage.path("probe"))
        .stdin(Stdio::null());
    let answer = match command.output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    let reason = answer.lines().next().unwrap_or("it gave no reason");
    log_skip(&format!("{question}: {reason}"));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_flag_is_a_no() {
        assert!(can_build("cc", "-O2"));
        assert!(!can_build("cc", "-fno-such-flag-of-that-name"));
        assert!(!can_build("no-such-compiler", ""));
    }
}
