//! What a test needs from outside, and how long it may take.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, thread};

/// Whether the full sizes were asked for (`./test --full`, or `RINGMARK_LONG=1`).
#[must_use]
pub fn is_long() -> bool {
    env::var_os("RINGMARK_LONG").is_some_and(|value| value == "1")
}

/// True when every program in `names` is on `PATH`. Write `if !require_tools(&["gcc"]) { return }`.
///
/// With `RINGMARK_ALLOW_MISSING=1` (`./test --allow-missing`) a missing program skips the test
/// and the skip is appended to the file `$RINGMARK_SKIP_LOG`, which `./test` lists at its end.
///
/// # Panics
/// When a program is missing and skipping was not allowed: a test that silently does nothing
/// proves nothing.
#[must_use]
pub fn require_tools(names: &[&str]) -> bool {
    let missing: Vec<_> = names
        .iter()
        .copied()
        .filter(|name| !on_path(name))
        .collect();
    if missing.is_empty() {
        return true;
    }
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("{test}: needs {}", missing.join(", "));
    let allowed = env::var_os("RINGMARK_ALLOW_MISSING").is_some_and(|value| value == "1");
    assert!(allowed, "{line}; install it or run ./test --allow-missing");
    log_skip(&line);
    false
}

/// As [`require_tools`], of programs without which a test is left out: `./test` lists it.
#[must_use]
pub fn has_tools(names: &[&str]) -> bool {
    let missing: Vec<_> = names
        .iter()
        .copied()
        .filter(|name| !on_path(name))
        .collect();
    if !missing.is_empty() {
        let thread = thread::current();
        let test = thread.name().unwrap_or("a test");
        log_skip(&format!("{test}: needs {}", missing.join(", ")));
    }
    missing.is_empty()
}

/// As [`require_tools`]; besides, this process may have a mount namespace of its own. It may not
/// without root, and in a root directory that is no mount point, as after a plain `chroot`: then
/// the test is left out, and `./test` lists it.
///
/// # Panics
/// As [`require_tools`].
#[must_use]
pub fn require_namespaces(names: &[&str]) -> bool {
    if !require_tools(names) {
        return false;
    }
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    let probe = probe.expect("unshare was found above");
    if !probe.status.success() {
        let thread = thread::current();
        let test = thread.name().unwrap_or("a test");
        let why = String::from_utf8_lossy(&probe.stderr);
        log_skip(&format!("{test}: needs a mount namespace: {}", why.trim()));
    }
    probe.status.success()
}

fn on_path(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|dir| is_file(&dir.join(name)))
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file())
}

/// Says that something was not tested, and why; `./test` lists it at its end.
pub fn log_skip(line: &str) {
    eprintln!("skipped: {line}");
    let Some(path) = env::var_os("RINGMARK_SKIP_LOG") else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut file) = file {
        let _ = writeln!(file, "{line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_there() {
        assert!(require_tools(&["sh"]));
    }

    #[test]
    fn a_missing_program_is_seen() {
        assert!(!on_path("no-such-program-of-that-name"));
    }
}
