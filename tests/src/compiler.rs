//! What the compilers of this machine can do: asked of them, never taken from their version.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use crate::fixture::Fixture;
use crate::tools::log_skip;

/// Answers so far, by compiler and flags.
static KNOWN: Mutex<Option<HashMap<String, Option<usize>>>> = Mutex::new(None);

/// What a program needs at least: headers of the language, and threads.
const PROBE: &str = "\
#ifdef __cplusplus
#include <atomic>
#include <cstdio>
#endif
#include <pthread.h>
#include <stdint.h>
int main(void) { return 0; }
";

/// Whether `compiler` builds a program with `flags`, and it runs: a compiler may be installed without what its
/// sanitizers need.
///
/// What it cannot do is listed as skipped, with the compiler's own words.
///
/// # Panics
/// When no directory for the attempt can be made.
#[must_use]
pub fn can_build(compiler: &str, flags: &str) -> bool {
    first_that_builds(compiler, &[flags]).is_some()
}

/// The first of some spellings of the same flags that `compiler` builds a program with that runs.
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

/// Builds a small program and runs it; the reason where that cannot be.
///
/// # Errors
/// What the compiler or the program says.
///
/// # Panics
/// As [`can_build`].
pub fn try_build(compiler: &str, flags: &str) -> Result<(), String> {
    let fixture = Fixture::new("can-build");
    let (source, program) = (fixture.path("probe.c"), fixture.path("probe"));
    std::fs::write(&source, PROBE).expect("a source file");
    let mut command = Command::new(compiler);
    command.args(flags.split_whitespace()).arg(&source);
    succeed(command.arg("-o").arg(&program))?;
    succeed(&mut Command::new(program))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let answer = match command.stdin(Stdio::null()).output() {
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
    use std::os::unix::fs::PermissionsExt;

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

    /// As clang is installed without the package of its sanitizers.
    #[test]
    fn a_compiler_without_the_runtime_of_its_sanitizers_is_a_no() {
        let fixture = Fixture::new("half-a-compiler");
        let half = fixture.path("half");
        let script = "#!/bin/sh\ncase \"$*\" in *-fsanitize=*) echo cannot find libclang_rt.asan.a >&2; exit 1;; esac\n\
                      exec cc \"$@\"\n";
        std::fs::write(&half, script).unwrap();
        std::fs::set_permissions(&half, std::fs::Permissions::from_mode(0o755)).unwrap();
        let half = half.display().to_string();
        assert_eq!(try_build(&half, "-O1"), Ok(()));
        let why = try_build(&half, "-O1 -fsanitize=address").unwrap_err();
        assert!(why.contains("libclang_rt.asan"), "{why}");
    }

    /// As a sanitizer that this kernel's layout of memory does not suit.
    #[test]
    fn a_program_that_does_not_run_is_a_no() {
        assert!(try_build("cc", "-Dmain=other -nostartfiles -Wl,-e,0").is_err());
    }
}
