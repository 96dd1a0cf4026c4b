//! Promise: functions with sites that are not traced cost what the compiler put there, and Ringmark
//! adds nothing: by instructions counted, and by the CPU time of a program full of calls and hackbench.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, library, sources};
use ringmark_tests::tools::log_skip;
use ringmark_tests::{is_long, require_tools, run, workspace_root};

/// As `SITES`, without sites.
const PLAIN: &str = "-O2";
/// The same code without sites: with them gcc knows less of the registers that a callee leaves alone.
const SAME_CODE: &str = "-O2 -fno-ipa-ra";
/// Full rounds: what is loaded may take this much more.
const RATIO_MAX: f64 = 1.03;
/// Calls of functions with sites in each round of `nested`, and instructions that gcc makes a site.
const CALLS_A_ROUND: u64 = 5;
const NOPS: u64 = 5;

/// How a program is built and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Without sites.
    Plain,
    /// The same with a second thread, which does nothing.
    Idle,
    /// With sites, without Ringmark.
    Sites,
    /// With sites, and Ringmark loaded with this `RINGMARK`, off.
    Loaded(&'static str),
}

/// Ready to be switched on. A second thread waits for that: the C library takes its locks from then
/// on, whatever the thread is for. So the bar is for what Ringmark adds to an idle thread.
const READY: Way = Way::Loaded("1");
/// The same without that thread.
const ALONE: Way = Way::Loaded("control=off");

/// One program compiled in two ways.
struct Program {
    fixture: Fixture,
    plain: PathBuf,
    sites: PathBuf,
    idle: PathBuf,
}

impl Program {
    fn new(source: &str, plain: &str, more: &str) -> Self {
        let fixture = Fixture::new("fn-off");
        let plain = compile(&fixture, source, "plain", &format!("{plain} {more}"));
        let sites = compile(&fixture, source, "sites", &format!("{SITES} {more}"));
        let shared = "-O2 -shared -fPIC -pthread";
        let idle = compile(&fixture, "idle_thread.c", "idle.so", shared);
        Self {
            fixture,
            plain,
            sites,
            idle,
        }
    }

    /// Adds the program and what it needs to be run so.
    fn add(&self, command: &mut Command, way: Way) {
        command.args(["/usr/bin/env", "LD_BIND_NOW=1"]);
        let preload = |path: &Path| format!("LD_PRELOAD={}", path.display());
        match way {
            Way::Plain | Way::Sites => {}
            Way::Idle => {
                command.arg(preload(&self.idle));
            }
            Way::Loaded(ringmark) => {
                command.arg(preload(library()));
                command.arg(format!("RINGMARK={ringmark}"));
            }
        }
        command.arg(match way {
            Way::Plain | Way::Idle => &self.plain,
            Way::Sites | Way::Loaded(_) => &self.sites,
        });
    }

    /// Compares CPU times of runs in turn: few short ones, or many long ones, whose medians must be
    /// alike. The `bar` is for these ways, the others are for information.
    fn compare(&self, name: &str, short: &str, long: &str, bar: &[Way]) {
        let (arguments, rounds) = if is_long() { (long, 31) } else { (short, 3) };
        let ways = [Way::Plain, Way::Idle, Way::Sites, ALONE, READY];
        let measure = compile(&self.fixture, "cpu_time.c", "cpu_time", PLAIN);
        let mut took = ways.map(|way| (way, Vec::new()));
        for _ in 0..rounds {
            for (way, took) in &mut took {
                let mut command = self.fixture.command(&measure);
                self.add(&mut command, *way);
                command.args(arguments.split(' '));
                let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
                took.push(finished.stdout_text().trim().parse().expect("a number"));
            }
            took.rotate_left(1);
        }
        took.sort_by_key(|(way, _)| ways.iter().position(|w| w == way));
        let took = took.map(|(way, us)| (way, quartiles(us)));
        let (plain, idle) = (took[0].1[1], took[1].1[1]);
        println!("{name} {arguments}: CPU time, {rounds} runs of each in turn");
        let mut missed = false;
        for (way, quartiles) in took {
            let (ratio, to_idle) = (quartiles[1] / plain, quartiles[1] / idle);
            println!("{ratio:8.4} {way:?}, quartiles {quartiles:.1?} ms, {to_idle:.4} of Idle");
            let ratio = if way == READY { to_idle } else { ratio };
            missed |= ratio > RATIO_MAX && bar.contains(&way) && is_long();
        }
        assert!(!missed, "expected {RATIO_MAX} at most for each of {bar:?}");
    }

    /// Instructions in `main` and what it calls, as Callgrind counts them.
    fn instructions(&self, way: Way, rounds: u64) -> u64 {
        let counts = self.fixture.path("callgrind.out");
        let mut command = self.fixture.command("valgrind");
        command.args(["-q", "--tool=callgrind", "--trace-children=yes"]);
        command.arg("--toggle-collect=main");
        command.arg(format!("--callgrind-out-file={}", counts.display()));
        self.add(&mut command, way);
        command.arg(rounds.to_string());
        let _ = run(&mut command, LIMIT).expect("valgrind").expect_code(0);
        let text = std::fs::read_to_string(counts).expect("counts");
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        total.expect("a sum").parse().expect("a number")
    }
}

/// Lower, median and upper, in ms.
fn quartiles(mut us: Vec<u64>) -> [f64; 3] {
    us.sort_unstable();
    [1, 2, 3].map(|n| us[(us.len() - 1) * n / 4] as f64 / 1e3)
}

#[test]
fn ringmark_adds_no_instruction_to_sites_that_are_off() {
    if !require_tools(&["gcc", "valgrind"]) {
        return;
    }
    let program = Program::new("nested.c", SAME_CODE, "");
    let rounds: u64 = if is_long() { 1_000_000 } else { 100_000 };
    let calls = rounds * CALLS_A_ROUND;
    // What the C library does at first use, such as to look names up, is the same for few calls and for many.
    let count = |way| program.instructions(way, 2 * rounds) - program.instructions(way, rounds);
    let (plain, sites, ready) = (count(Way::Plain), count(Way::Sites), count(READY));
    println!("{calls} calls: {plain} instructions, {sites} with sites, {ready} with Ringmark, off");
    let few = calls / 100;
    assert!((sites - plain).abs_diff(calls * NOPS) < few);
    assert!(ready.abs_diff(sites) < few);
}

#[test]
fn a_program_full_of_calls() {
    if require_tools(&["gcc"]) {
        let program = Program::new("nested.c", PLAIN, "");
        program.compare("nested", "5000000", "200000000", &[ALONE, READY]);
    }
}

/// Hackbench, or what became of it in the kernel's sources, which are large.
#[test]
fn hackbench() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sources");
    let mut found = sources(&here, "hackbench");
    let mut more = "-pthread".to_owned();
    if found.is_err() && is_long() {
        found = sources(&here, "messaging");
        let programs = workspace_root().join("tests/programs/functions");
        let perf = programs.join("sched_messaging.h");
        let headers = here.join("messaging");
        more += &format!(" -I{} -include {}", headers.display(), perf.display());
    }
    match found {
        Ok(files) => {
            let program = Program::new(&files[0].to_string_lossy(), PLAIN, &more);
            program.compare("hackbench", "-g 1 -l 50", "-g 1 -l 1000", &[ALONE, READY]);
        }
        Err(reason) => log_skip(&format!("functions_off: {reason}")),
    }
}
