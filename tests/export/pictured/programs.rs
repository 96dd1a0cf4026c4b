//! Programs that say what they made: an axum server, and Lua by its functions.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::binary::built;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{self, SITES, tool};
use ringmark_tests::tools::log_skip;
use ringmark_tests::{require_tools, ringmark, run};

/// Requests to the axum server.
pub(crate) const REQUESTS: u64 = 300;

/// Records an axum server that is asked [`REQUESTS`] times, in small pages. Returns how many it
/// answered, and how many it left to other threads.
pub(crate) fn record_axum(fixture: &Fixture, trace: &Path) -> (u64, u64) {
    let fate = |number| match number % 20 {
        7 => 'c',
        13 => 'b',
        _ => 'q',
    };
    let fates: String = (0..REQUESTS).map(fate).collect();
    let mut command = ringmark();
    command.env("RINGMARK_DIR", fixture.sessions());
    command.env("RINGMARK", "page=4K,ring=1M,session=256M");
    command.arg("record").arg("-o").arg(trace).arg("--");
    command.arg(built("ringmark-test-axum", "axum-server"));
    let done = run(command.arg(&fates), SOON).expect("the tool");
    let done = done.expect_code(0);
    let answered = done.stdout_text().trim().parse().expect("a number");
    let blocked = fates.chars().filter(|fate| *fate == 'b').count() as u64;
    (answered, blocked)
}

/// What the script calls, and how often it says that it did.
pub(crate) const LUA_CALLS: [(&str, u64); 3] =
    [("math_floor", 700), ("luaB_error", 90), ("luaB_pcall", 90)];

/// Records Lua by all its functions, some of which are left with longjmp. `None`, with the reason said:
/// it could not be made.
pub(crate) fn record_lua(fixture: &Fixture) -> Option<PathBuf> {
    if !require_tools(&["gcc"]) {
        return None;
    }
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources");
    let sources = functions::sources(&here, "lua");
    let sources = sources.inspect_err(|why| log_skip(&format!("export of Lua: {why}")));
    let (program, trace) = (fixture.path("lua"), fixture.path("lua.rmk"));
    let mut command = Command::new("gcc");
    command.args(SITES.split(' '));
    command.args(["-DLUA_USE_LINUX", "-Wl,-E"]);
    command.args(sources.ok()?).arg("-o").arg(&program);
    let done = run(command.args(["-lm", "-ldl"]), SOON).expect("gcc");
    let _ = done.expect_code(0);
    let script = fixture.path("work.lua");
    std::fs::write(
        &script,
        "local floors, errors = 0, 0\n\
         for n = 1, 700 do floors = floors + math.floor(n + 0.5) - n + 1 end\n\
         for n = 1, 90 do if not pcall(error, n) then errors = errors + 1 end end\n\
         print(floors, errors)\n",
    )
    .expect("a script");
    let mut command = tool(fixture);
    command.env("RINGMARK", "mode=discard,page=4K,ring=64M,session=256M");
    command.args(["run", "--kind", "graph", "--all-functions", "-o"]);
    let done = run(command.arg(&trace).arg("--").arg(program).arg(script), SOON);
    let said = done.expect("it starts").stdout_text();
    let (floors, errors) = (LUA_CALLS[0].1, LUA_CALLS[1].1);
    assert!(said.contains(&format!("{floors}\t{errors}")), "{said}");
    Some(trace)
}
