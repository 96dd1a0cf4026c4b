//! Programs that say what they did: an axum server, and Lua by its functions.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ringmark_tests::binary::built;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{self, SITES, tool};
use ringmark_tests::tools::log_skip;
use ringmark_tests::{require_tools, ringmark, run};

use super::Sums;

/// Requests to the axum server.
pub(crate) const REQUESTS: u64 = 300;

/// What a program says of the spans or calls of a name: how many, and between which sums of ns their
/// durations lie.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) least_ns: u64,
    pub(crate) most_ns: u64,
}

impl Said {
    /// Compares what was found. The clock of events may be wrong by a thousandth, and each of its times by a
    /// ns.
    pub(crate) fn compare(&self, found: &Sums) {
        let (count, ns) = found.get(&self.name).copied().unwrap_or_default();
        assert_eq!(count, self.count, "{}", self.name);
        let slack = self.most_ns / 1000 + 2 * count;
        let range = self.least_ns.saturating_sub(slack)..=self.most_ns + slack;
        assert!(range.contains(&ns), "{ns} ns of {self:?}");
    }
}

/// What an axum server says that it did.
pub(crate) struct Served {
    pub(crate) answered: u64,
    /// Requests that were left to other threads.
    pub(crate) blocked: u64,
    pub(crate) spans: Vec<Said>,
}

/// Records an axum server that is asked [`REQUESTS`] times, in small pages.
pub(crate) fn record_axum(fixture: &Fixture, trace: &Path) -> Served {
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
    command.arg(built("axum-server"));
    let done = run(command.arg(&fates), SOON).expect("the tool");
    let text = done.expect_code(0).stdout_text();
    let mut lines = text.lines();
    let answered = lines.next().and_then(|line| line.parse().ok());
    let said = |line: &str| {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse().expect("a number");
        Said {
            name: words[0].to_owned(),
            count: number(1),
            least_ns: number(2),
            most_ns: number(3),
        }
    };
    Served {
        answered: answered.expect("a number"),
        blocked: fates.chars().filter(|fate| *fate == 'b').count() as u64,
        spans: lines.map(said).collect(),
    }
}

/// What the script of Lua calls, and how often it says that it did.
pub(crate) const LUA_CALLS: [(&str, u64); 4] = [
    ("math_floor", 700),
    ("luaB_error", 90),
    ("luaB_pcall", 90 + LUA_DEEP + LUA_CLOCKED),
    ("os_clock", 2 * LUA_CLOCKED),
];
/// Calls of `luaB_pcall` that lie in each other.
pub(crate) const LUA_DEEP: u64 = 40;
/// Calls of `luaB_pcall` of which the script says how much CPU time they took.
const LUA_CLOCKED: u64 = 10;

const LUA_SCRIPT: &str = "
local floors, errors, clocked = 0, 0, 0
for n = 1, 700 do floors = floors + math.floor(n + 0.5) - n + 1 end
for n = 1, 90 do if not pcall(error, n) then errors = errors + 1 end end
local function deep(left)
  if left == 0 then return 0 end
  local _, inside = pcall(deep, left - 1)
  return inside + 1
end
local function work()
  local from, sum = os.clock(), 0
  for n = 1, 20000 do sum = sum + n end
  clocked = clocked + os.clock() - from
end
local depth = deep(40)
for n = 1, 10 do pcall(work) end
print(floors, errors, depth, string.format('%.0f', clocked * 1000000000))
";

/// A trace of Lua, and what its script says of `luaB_pcall`.
pub(crate) struct Lua {
    pub(crate) trace: PathBuf,
    pub(crate) pcalls: Said,
}

/// Records Lua by all its functions, some of which are left with longjmp. `None`, with the reason said:
/// it could not be made.
pub(crate) fn record_lua(fixture: &Fixture) -> Option<Lua> {
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
    let done = run(command.args(["-lm", "-ldl"]), 4 * SOON).expect("gcc");
    let _ = done.expect_code(0);
    let script = fixture.path("work.lua");
    std::fs::write(&script, LUA_SCRIPT).expect("a script");
    let mut command = tool(fixture);
    command.env("RINGMARK", "mode=discard,page=4K,ring=64M,session=256M");
    command.args(["run", "--kind", "graph", "--all-functions", "-o"]);
    let before = Instant::now();
    let done = run(command.arg(&trace).arg("--").arg(program).arg(script), SOON);
    let most_ns = before.elapsed().as_nanos() as u64;
    let said = done.expect("it starts").stdout_text();
    let (floors, errors) = (LUA_CALLS[0].1, LUA_CALLS[1].1);
    let counts = format!("{floors}\t{errors}\t{LUA_DEEP}\t");
    let line = said.lines().find_map(|line| line.strip_prefix(&counts));
    let least_ns = line.unwrap_or_else(|| panic!("{said}"));
    let pcalls = Said {
        name: "luaB_pcall".to_owned(),
        count: LUA_CALLS[2].1,
        least_ns: least_ns.parse().expect("a number"),
        // Each of those that lie in each other has the time of all inside it.
        most_ns: LUA_DEEP * most_ns,
    };
    Some(Lua { trace, pcalls })
}
