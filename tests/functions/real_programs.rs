//! Promise: real programs, Lua and SQLite, do what they do while all their functions are traced or
//! switched; each function is called as often as Callgrind counts it in an untraced run, in a graph and in a profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ringmark_decoder::{Calls, Dump, Ended, Output, Step};
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{self, SITES, library, ringmark, tool};
use ringmark_tests::json_schema::checked;
use ringmark_tests::random::Random;
use ringmark_tests::tools::log_skip;
use ringmark_tests::{Running, is_long, recording, require_tools, run, workspace_root};

const LIMIT: Duration = Duration::from_secs(300);
/// Much enough for all that comes before the recorder does.
const DISCARD: &str = "mode=discard,ring=256M,session=512M";
/// What is switched: none, some and all functions.
const PATTERNS: [&str; 8] = [
    "*", "l*", "sqlite3*", "*alloc*", "*e*", "s*_*", "m*", "nothing",
];

/// A program that was built from its sources, and its work.
struct Program {
    fixture: Fixture,
    path: PathBuf,
    name: &'static str,
    /// Arguments for work that is counted, and for work that lasts a while.
    work: [Vec<String>; 2],
}

#[test]
fn lua() {
    let script = workspace_root().join("tests/programs/functions/real_work.lua");
    let rounds = if is_long() { [100, 2000] } else { [5, 400] };
    let work = rounds.map(|n| vec![script.display().to_string(), n.to_string()]);
    // Its hashes are seeded with addresses and the time otherwise, and what it finds in its cache of
    // strings depends on their addresses, unless that has one place.
    let flags = "-DLUA_USE_LINUX -Dluai_makeseed(L)=1 -DSTRCACHE_N=1 -DSTRCACHE_M=1 -Wl,-E";
    if let Some(program) = Program::new("lua", flags, work) {
        let account = program.expect_the_calls_that_callgrind_counts();
        // Errors leave functions with longjmp.
        assert!(account.unwound > 1000 && account.open == 0, "{account:?}");
        program.expect_nothing_changes_while_switched();
    }
}

/// SQLite's shell: half a minute to make and half a minute to compile.
#[test]
fn sqlite() {
    if !is_long() {
        return log_skip("real_programs: SQLite is for ./test --full");
    }
    let script = workspace_root().join("tests/programs/functions/real_work.sql");
    let work = ["5", "100"].map(|rounds| {
        let size = format!(".parameter set :n {rounds}");
        let read = format!(".read {}", script.display());
        let words = [
            "-batch",
            "-init",
            "/dev/null",
            "-cmd",
            &size,
            ":memory:",
            &read,
        ];
        words.map(String::from).to_vec()
    });
    if let Some(program) = Program::new("sqlite3", "-DSQLITE_THREADSAFE=0", work) {
        let account = program.expect_the_calls_that_callgrind_counts();
        assert!(account.unwound == 0 && account.open == 0, "{account:?}");
        program.expect_nothing_changes_while_switched();
    }
}

/// Entries and what became of them.
#[derive(Debug, Default)]
struct Account {
    entries: BTreeMap<String, u64>,
    returned: u64,
    unwound: u64,
    unseen: u64,
    open: u64,
    lost: u64,
}

impl Account {
    fn of(dump: &Dump) -> Self {
        let mut account = Self::default();
        let mut calls = Calls::new(None);
        for item in dump.events() {
            match item {
                Output::Event(event) => calls.take(&event, |step| account.take(&step)),
                Output::Lost(lost) => account.lost += lost.loss.count,
            }
        }
        account.open = calls.open().count() as u64;
        account
    }

    fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::Entered { function, .. } => {
                let name = String::from_utf8_lossy(&function.name);
                if let Some(calls) = self.entries.get_mut(&*name) {
                    *calls += 1;
                } else {
                    self.entries.insert(name.into_owned(), 1);
                }
            }
            Step::Left(call) | Step::Whole(call) => match call.ended {
                Ended::Returned => self.returned += 1,
                Ended::Unwound => self.unwound += 1,
                Ended::Unseen => self.unseen += 1,
            },
        }
    }

    /// Nothing is lost, and each call has returned, was unwound or is open.
    fn expect_closed(&self) {
        let entries: u64 = self.entries.values().sum();
        assert_eq!((self.lost, self.unseen), (0, 0), "{self:?}");
        assert_eq!(
            entries,
            self.returned + self.unwound + self.open,
            "{self:?}"
        );
    }
}

impl Program {
    /// `None`, with the reason said, where its sources or the tools are not there.
    fn new(name: &'static str, flags: &str, work: [Vec<String>; 2]) -> Option<Self> {
        if !require_tools(&["gcc", "valgrind"]) {
            return None;
        }
        let sources = sources(name)?;
        let fixture = Fixture::new("real");
        let path = fixture.path(name);
        let mut command = Command::new("gcc");
        command
            .args(SITES.split(' '))
            .arg("-g")
            .args(flags.split(' '));
        command
            .args(sources)
            .args(["-o".as_ref(), path.as_os_str()]);
        let _ = run(command.args(["-lm", "-ldl"]), LIMIT)
            .expect("gcc")
            .expect_code(0);
        Some(Self {
            fixture,
            path,
            name,
            work,
        })
    }

    /// What it says, durations left out.
    fn output(command: &mut Command) -> (String, Duration) {
        let begun = Instant::now();
        let finished = run(command, LIMIT).expect("it starts").expect_code(0);
        let took = begun.elapsed();
        (without_durations(&finished.stdout_text()), took)
    }

    /// Runs it with all its functions traced.
    fn expect_the_calls_that_callgrind_counts(&self) -> Account {
        let work = &self.work[0];
        let (expected, untraced) = Self::output(self.fixture.command(&self.path).args(work));
        let dump = self.fixture.path("all.rmk");
        let mut command = tool(&self.fixture);
        command.env("RINGMARK", DISCARD);
        command
            .args(["record", "--kind", "graph", "--all-functions", "-o"])
            .arg(&dump);
        command.arg("--").arg(&self.path).args(work);
        let (found, traced) = Self::output(&mut command);
        assert!(found == expected, "traced:\n{found}\nuntraced:\n{expected}");
        let account = Account::of(&recording::decode(&[dump]));
        account.expect_closed();
        let counted = self.count_with_callgrind(&expected);
        let profiled = self.count_in_profile(&expected);
        let sites = self.sites();
        let mut functions = BTreeSet::new();
        for name in &sites {
            let [ours, in_profile, theirs] =
                [&account.entries, &profiled, &counted].map(|c| c.get(name).unwrap_or(&0));
            assert_eq!(ours, theirs, "calls of {name}, recorded and counted");
            assert_eq!(
                in_profile, theirs,
                "calls of {name}, in a profile and counted"
            );
            functions.extend((*ours > 0).then_some(name));
        }
        let strangers: Vec<_> = account
            .entries
            .keys()
            .filter(|n| !sites.contains(*n))
            .collect();
        assert!(strangers.is_empty(), "{strangers:?}");
        let (calls, unwound) = (account.entries.values().sum::<u64>(), account.unwound);
        let (called, all) = (functions.len(), sites.len());
        println!(
            "{}: {called} of {all} functions called, {calls} calls, {unwound} unwound, \
                  untraced {untraced:?}, recorded {traced:?}",
            self.name
        );
        assert!(called > 300 && calls > 100_000);
        account
    }

    /// Calls of each function in a profile of the same work.
    fn count_in_profile(&self, expected: &str) -> BTreeMap<String, u64> {
        let dump = self.fixture.path("profile.rmk");
        let mut command = tool(&self.fixture);
        command.args(["record", "--kind", "profile", "--all-functions", "-o"]);
        command.arg(&dump).arg("--").arg(&self.path);
        let (found, _) = Self::output(command.args(&self.work[0]));
        assert_eq!(found, expected, "in a profile");
        let rows = ringmark(&self.fixture, "report --json", &[&dump]).stdout_text();
        let mut calls = BTreeMap::new();
        for row in checked(&rows).iter().filter(|row| row["of"] == "profile") {
            let name = row["name"].as_str().expect("a name").to_owned();
            *calls.entry(name).or_default() += row["count"].as_u64().expect("a number");
        }
        calls
    }

    /// Names of the functions that can be traced.
    fn sites(&self) -> BTreeSet<String> {
        let listed = ringmark(&self.fixture, "functions", &[&self.path])
            .expect_code(0)
            .stdout_text();
        let names = listed
            .lines()
            .filter_map(|line| line.split_whitespace().nth(2));
        names.map(str::to_owned).collect()
    }

    /// Calls of each function of this program, untraced, in the same work.
    fn count_with_callgrind(&self, expected: &str) -> BTreeMap<String, u64> {
        let counts = self.fixture.path("callgrind.out");
        let mut command = self.fixture.command("valgrind");
        command.args(["-q", "--tool=callgrind"]);
        command.arg(format!("--callgrind-out-file={}", counts.display()));
        let (found, _) = Self::output(command.arg(&self.path).args(&self.work[0]));
        assert_eq!(found, expected, "under Callgrind");
        callgrind_calls(&std::fs::read_to_string(counts).expect("counts"), self.name)
    }

    /// Runs it again and again while its functions are switched, all at random.
    fn expect_nothing_changes_while_switched(&self) {
        let mut random = Random::seeded();
        let goal: u64 = if is_long() { 1000 } else { 20 };
        let work = &self.work[1];
        let (expected, untraced) = Self::output(self.fixture.command(&self.path).args(work));
        let (mut switches, mut changed, mut runs, mut took) = (0, 0, 0, Duration::ZERO);
        while switches < goal {
            let mut command = self.fixture.command(&self.path);
            command
                .env("RINGMARK", "mode=overwrite,ring=1M")
                .env("LD_PRELOAD", library());
            let begun = Instant::now();
            let mut running = Running::start(command.args(work)).expect("it starts");
            let _ = self.fixture.ring_file();
            while switches < goal && running.child().try_wait().expect("a child").is_none() {
                if let Some(sites) = self.switch(running.id(), switches == 0, &mut random) {
                    (switches, changed) = (switches + 1, changed + sites);
                }
            }
            let finished = running.finish(LIMIT).expect_code(0);
            took += begun.elapsed();
            runs += 1;
            let found = without_durations(&finished.stdout_text());
            assert!(
                found == expected,
                "switched:\n{found}\nuntraced:\n{expected}"
            );
            assert_eq!(finished.stderr_text(), "");
            let _ = ringmark(&self.fixture, "clean", &[]);
        }
        println!(
            "{}: {switches} switches, {changed} sites changed, {runs} runs, \
                  untraced {untraced:?}, switched {:?} each",
            self.name,
            took / runs
        );
        // The first switch alone is of all functions; the others may find nothing to change.
        assert!(changed > 300, "{changed} sites changed");
    }

    /// Switches once, everything on at first; `None` when the program had ended. Returns how many
    /// sites changed.
    fn switch(&self, pid: u32, is_first: bool, random: &mut Random) -> Option<u64> {
        let mut pattern = || PATTERNS[random.below(PATTERNS.len() as u64) as usize];
        let (one, other) = (pattern(), pattern());
        let verb = match random.below(4) {
            _ if is_first => "start --detach --filter *".to_owned(),
            0 => "stop".to_owned(),
            1 => format!("notrace {other}"),
            2 => format!("filter {one}"),
            _ => format!("start --detach --filter {one} --filter * --notrace {other}"),
        };
        let finished = ringmark(&self.fixture, &format!("trace {verb} -p {pid}"), &[]);
        let (said, refused) = (finished.stdout_text(), finished.stderr_text());
        // What would be for no function changes nothing.
        if refused.contains("matches no function") {
            return Some(0);
        }
        let sites = said
            .split(", ")
            .find_map(|part| part.split_once(" patch site"))?;
        // One that has just begun has no tracer yet, and gets one.
        let mut refusals = refused
            .lines()
            .filter(|line| !line.contains("function tracer loaded"));
        assert_eq!(refusals.next(), None, "{verb}: {refused}");
        Some(sites.0.replace(',', "").parse().expect("a number of sites"))
    }
}

/// The C files of a program, fetched once.
fn sources(name: &str) -> Option<Vec<PathBuf>> {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources");
    let found = functions::sources(&here, name);
    let skip = |reason: &String| log_skip(&format!("real_programs: {reason}"));
    found.inspect_err(skip).ok()
}

/// Lines without a duration, `0.001s`, at their end.
fn without_durations(text: &str) -> String {
    let is_duration = |word: &str| {
        word.strip_suffix('s')
            .is_some_and(|n| n.parse::<f64>().is_ok())
    };
    let lines = text.lines().map(|line| match line.rsplit_once(' ') {
        Some((front, last)) if is_duration(last) => front.trim_end(),
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// `(7) name` names a thing, `(7)` is the same one again.
fn named<'a>(names: &mut BTreeMap<&'a str, &'a str>, text: &'a str) -> &'a str {
    match text.split_once(' ') {
        Some((number, name)) => names.entry(number).or_insert(name),
        None => names.get(text).expect("a name for the number"),
    }
}

/// How often each function of a module was called, as a file of Callgrind's says.
fn callgrind_calls(text: &str, module: &str) -> BTreeMap<String, u64> {
    let module = format!("/{module}");
    let (mut objects, mut functions) = (BTreeMap::new(), BTreeMap::new());
    let (mut own, mut of_callee, mut callee) = ("", None, "");
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        match line.split_once('=') {
            Some(("ob", object)) => own = named(&mut objects, object),
            Some(("cob", object)) => of_callee = Some(named(&mut objects, object)),
            Some(("fn", function)) => {
                let _ = named(&mut functions, function);
            }
            Some(("cfn", function)) => {
                // `name'2`: called by itself, further out or at once.
                let called = named(&mut functions, function);
                callee = called.split('\'').next().unwrap_or(called);
            }
            Some(("calls", calls)) => {
                let calls = calls.split(' ').next().and_then(|n| n.parse::<u64>().ok());
                if of_callee.take().unwrap_or(own).ends_with(&module) {
                    *counts.entry(callee.to_owned()).or_default() += calls.expect("a number");
                }
            }
            _ => {}
        }
    }
    counts
}
