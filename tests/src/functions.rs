//! What tests of function tracing share: programs compiled with sites, the tool with its shared
//! object, and what it says of calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringmark_reader::{Access, Session, control};

use crate::binary;
use crate::fixture::Fixture;
use crate::{Finished, Running, program, run, wait_until, workspace_root};

/// How long a command may take.
pub const LIMIT: Duration = Duration::from_secs(60);
/// What gcc needs to be told.
pub const SITES: &str = "-O2 -fpatchable-function-entry=5";

/// The shared object with the function tracer.
#[must_use]
pub fn library() -> &'static Path {
    Path::new(program!("libringmark_functions.so"))
}

/// Compiles a file of `tests/programs/functions`, or any other by its path, with gcc.
///
/// # Panics
/// When that fails.
#[must_use]
pub fn compile(fixture: &Fixture, source: &str, output: &str, flags: &str) -> PathBuf {
    let mut command = Command::new("gcc");
    command.current_dir(workspace_root().join("tests/programs/functions"));
    command.args(flags.split_whitespace()).arg(source);
    command.arg("-o").arg(fixture.path(output)).arg("-ldl");
    let _ = run(&mut command, LIMIT).expect("gcc").expect_code(0);
    fixture.path(output)
}

/// The C files of a program of the distribution, fetched once into `here`. The error: why they are
/// not there.
///
/// # Errors
/// The distribution's sources cannot be fetched.
///
/// # Panics
/// When what was fetched is not there.
pub fn sources(here: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
    let script = workspace_root().join("tests/programs/functions/fetch.sh");
    let fetched = run(Command::new(script).arg(here).arg(name), 5 * LIMIT).expect("sh");
    if fetched.code() == 3 {
        return Err(fetched.stderr_text().trim_end().to_owned());
    }
    let _ = fetched.expect_code(0);
    let files = std::fs::read_dir(here.join(name)).expect("sources");
    let files = files.flatten().map(|file| file.path());
    Ok(files
        .filter(|path| path.extension().is_some_and(|e| e == "c"))
        .collect())
}

/// `ringmark` in this fixture, with the library of the function tracer.
#[must_use]
pub fn tool(fixture: &Fixture) -> Command {
    let mut command = fixture.command(binary::path());
    command.env("RINGMARK_LIB", library());
    command
}

/// `ringmark WORDS ITEMS`; the words are separated by spaces.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn ringmark(fixture: &Fixture, words: &str, items: &[&Path]) -> Finished {
    let mut command = tool(fixture);
    command.args(words.split_whitespace()).args(items);
    run(&mut command, LIMIT).expect("ringmark starts")
}

/// The program that runs until it is killed, with the library, in overwrite mode.
///
/// # Panics
/// When it cannot be started.
#[must_use]
pub fn start(fixture: &Fixture, program: &Path) -> Running {
    let mut command = fixture.command(program);
    command.env("RINGMARK", "mode=overwrite,ring=1M");
    command.env("LD_PRELOAD", library()).args(["-1", "200"]);
    let program = Running::start(&mut command).expect("it starts");
    wait_for_tracers(fixture, "open=");
    program
}

/// Waits until the function tracers of a program say this of their state: its ring file is there before them.
///
/// # Panics
/// When they never do.
pub fn wait_for_tracers(fixture: &Fixture, said: &str) {
    let session = Session::open(&fixture.ring_file(), Access::Control).expect("a session");
    wait_until(LIMIT, "the function tracers", || {
        let answer = control::request(&session, "trace status", LIMIT).ok()?;
        (answer.status == 0 && answer.text.contains(said)).then_some(())
    });
}

/// Calls of each function in a dump, as `report --json` says it.
///
/// # Panics
/// When that is no JSON.
#[must_use]
pub fn calls(fixture: &Fixture, words: &str, dump: &Path) -> BTreeMap<String, u64> {
    let text = ringmark(fixture, &format!("report --json {words}"), &[dump]).stdout_text();
    let objects = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let functions =
        objects.filter(|object| object["of"] == "function" || object["of"] == "profile");
    let pair = |object: serde_json::Value| {
        let name = object["name"].as_str().expect("a name").to_owned();
        (name, object["count"].as_u64().expect("a number"))
    };
    functions.map(pair).collect()
}

/// That a command ended so, with this text among its errors.
///
/// # Panics
/// When it did not.
pub fn expect_error(finished: Finished, code: i32, text: &str) {
    let finished = finished.expect_code(code);
    let found = finished.stderr_text();
    assert!(found.contains(text), "{found}\nexpected: {text}");
}
