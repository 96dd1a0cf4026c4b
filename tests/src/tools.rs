//! What a test needs from outside, and how long it may take.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::{env, thread};

use crate::dirs::TempDir;

/// Whether the full sizes were asked for (`./test --full`, or `RINGMARK_LONG=1`).
#[must_use]
pub fn is_long() -> bool {
    env::var_os("RINGMARK_LONG").is_some_and(|value| value == "1")
}

/// Who is at fault where a program does not do what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A part of it is not installed.
    Program,
    /// The machine does not let us: no installation helps.
    Machine,
}

/// Programs that may be here and of no use, and a line of shell that has each do in small what tests ask of it. `$OUT`
/// is a path at which nothing is.
const PROBES: [(&str, Fault, &str); 13] = [
    (
        "gcc",
        Fault::Program,
        "echo 'int main(void) { return 0; }' | gcc -x c -o $OUT - && $OUT",
    ),
    (
        "g++",
        Fault::Program,
        "printf '#include <vector>\nint main() {}' | g++ -x c++ -o $OUT - && $OUT",
    ),
    (
        "python3",
        Fault::Program,
        "python3 -c 'import json, struct'",
    ),
    ("node", Fault::Program, "node -e 0"),
    ("valgrind", Fault::Program, "valgrind -q --tool=none true"),
    ("babeltrace2", Fault::Program, "babeltrace2 --version"),
    (
        "fallocate",
        Fault::Machine,
        "fallocate -l 8K $OUT && fallocate -p -o 0 -l 4K $OUT",
    ),
    (
        "gdb",
        Fault::Machine,
        "gdb -nx -q -batch -return-child-result -ex run true",
    ),
    (
        "mount",
        Fault::Machine,
        "mkdir $OUT && unshare --mount mount -t tmpfs probe $OUT",
    ),
    (
        "perf",
        Fault::Machine,
        "perf record -q -k CLOCK_REALTIME -e cpu-clock --call-graph fp -o $OUT true",
    ),
    (
        "setpriv",
        Fault::Machine,
        "setpriv --reuid=65534 --regid=65534 --clear-groups true",
    ),
    ("strace", Fault::Machine, "strace -f -o $OUT true"),
    (
        "unshare",
        Fault::Machine,
        "unshare --mount --pid --fork --mount-proc true",
    ),
];

/// Why these programs cannot be used here, if one cannot, and whose fault that is.
fn missing(names: &[&str]) -> Option<(Fault, String)> {
    let gone: Vec<_> = names
        .iter()
        .copied()
        .filter(|name| !on_path(name))
        .collect();
    if !gone.is_empty() {
        return Some((Fault::Program, format!("needs {}", gone.join(", "))));
    }
    let probes = PROBES.iter().filter(|(name, ..)| names.contains(name));
    let mut failed = probes.filter_map(|(name, fault, line)| {
        let why = tried(line).err()?;
        Some((
            *fault,
            format!("needs {name}, which is of no use here: {why}"),
        ))
    });
    failed.next()
}

/// The end of what a line of shell says, if it fails.
fn tried(line: &str) -> Result<(), String> {
    let dir = TempDir::new("probe").map_err(|error| error.to_string())?;
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("OUT", dir.join("out"));
    let done = shell.output().map_err(|error| error.to_string())?;
    if done.status.success() {
        return Ok(());
    }
    let said = [done.stdout, done.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(last.map_or_else(|| format!("{line}: {}", done.status), str::to_owned))
}

/// Whether a program that only some machines have does this. If not, what needs it is left out, and that is said.
#[must_use]
pub fn does(program: &str, arguments: &[&str]) -> bool {
    let tried = Command::new(program).args(arguments).output();
    let does = tried.is_ok_and(|done| done.status.success());
    if !does {
        let words = arguments.join(" ");
        log_skip(&format!("{}: needs {program} {words}", test_name()));
    }
    does
}

/// True when every program in `names` is on `PATH` and does here what tests ask of it. Write
/// `if !require_tools(&["gcc"]) { return }`.
///
/// With `RINGMARK_ALLOW_MISSING=1` (`./test --allow-missing`) a missing program skips the test
/// and the skip is appended to the file `$RINGMARK_SKIP_LOG`, which `./test` lists at its end. What the machine does
/// not allow, such as to trace a process, always does.
///
/// # Panics
/// When a program is missing and skipping was not allowed: a test that silently does nothing
/// proves nothing.
#[must_use]
pub fn require_tools(names: &[&str]) -> bool {
    let Some((fault, why)) = missing(names) else {
        return true;
    };
    let line = format!("{}: {why}", test_name());
    let allowed = env::var_os("RINGMARK_ALLOW_MISSING").is_some_and(|value| value == "1");
    assert!(
        allowed || fault == Fault::Machine,
        "{line}; install it or run ./test --allow-missing"
    );
    log_skip(&line);
    false
}

/// As [`require_tools`], of programs without which a test is left out: `./test` lists it.
#[must_use]
pub fn has_tools(names: &[&str]) -> bool {
    let missing = missing(names);
    if let Some((_, why)) = &missing {
        log_skip(&format!("{}: {why}", test_name()));
    }
    missing.is_none()
}

fn test_name() -> String {
    thread::current().name().unwrap_or("a test").to_owned()
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
        let name = "no-such-program-of-that-name";
        assert_eq!(
            missing(&["sh", name]),
            Some((Fault::Program, format!("needs {name}")))
        );
        assert_eq!(missing(&["sh"]), None);
    }

    #[test]
    fn a_program_that_does_not_work_is_of_no_use() {
        assert_eq!(tried("test ! -e $OUT && mkdir $OUT"), Ok(()));
        assert_eq!(
            tried("echo one; echo two >&2; false"),
            Err("two".to_owned())
        );
        assert!(tried("exit 7").unwrap_err().contains("7"));
    }
}
