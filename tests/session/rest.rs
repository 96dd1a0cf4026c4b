//! Promise: what watches a program rests when nothing happens: little processor time beside a
//! quiet program, however many of its threads have a ring.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_tests::collecting::Collecting;
use ringmark_tests::fixture::{Fixture, SOON, wait_until_mapped};
use ringmark_tests::{Running, is_long, require_tools, ringmark};

const SILENT: &str = ringmark_tests::program!("silent");
/// Most that a watcher may use of a core, in percent. `benches/benches/idle.rs` asks for half of it.
const MOST: f64 = 2.0;
/// Most that it may use beside a process that wakes up as often and reads a few bytes: other programs make caches cold
/// and each wake-up dear, for both.
const RATIO_MAX: f64 = 30.0;
/// Switches to another thread, of both kinds, after which they tell how a watcher waits. On a busy
/// machine none may come for seconds.
const TOLD: u64 = 100;
/// How often a watcher has gone to sleep when it has opened everything and waits for more.
const SETTLED: u64 = 150;
/// Wakes up as often as a watcher, which is a hundred times a second.
const CONTROL: &str =
    "import time\nwhile True:\n    open('/proc/self/stat').read()\n    time.sleep(0.01)";

/// Processor time of all threads of a process in ns, how often they went to sleep, and how often a
/// processor was taken from them, as the kernel's scheduler counts it.
fn spent(process: &Running) -> [u64; 3] {
    let mut sum = [0; 3];
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).expect("a process");
    for task in tasks.flatten() {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (times, status) = (read("schedstat"), read("status"));
        let switches = |kind: &str| {
            let count = status.lines().find_map(|line| line.strip_prefix(kind));
            count.and_then(|count| count.trim().parse().ok())
        };
        let time = times.split(' ').next().and_then(|ns| ns.parse().ok());
        let slept = switches("voluntary_ctxt_switches:");
        let found = [time, slept, switches("nonvoluntary_ctxt_switches:")];
        (0..3).for_each(|i| sum[i] += found[i].unwrap_or(0));
    }
    sum
}

/// That each of them uses little of a core over a few seconds. Where others keep the processors
/// busy, who never sleeps gets little, too: so each must have gone to sleep by itself, mostly.
fn expect_rest(watchers: &[(&str, Running)]) {
    let control = Running::start(Command::new("python3").args(["-c", CONTROL])).expect("python3");
    for (_, watcher) in watchers.iter() {
        watcher.wait_for_sleeps(SETTLED);
    }
    let time = Duration::from_secs(if is_long() { 60 } else { 4 });
    let each = || watchers.iter().map(|(_, watcher)| spent(watcher));
    let control_before = spent(&control);
    let (before, begun): (Vec<_>, _) = (each().collect(), Instant::now());
    thread::sleep(time);
    let switches = |spent: &[u64; 3]| spent[1] + spent[2];
    let is_told = |(now, before): ([u64; 3], _)| switches(&now) >= switches(before) + TOLD;
    while begun.elapsed() < SOON && !each().zip(&before).all(is_told) {
        thread::sleep(Duration::from_millis(100));
    }
    let elapsed = begun.elapsed().as_nanos() as f64;
    let percent = |ns: u64| ns as f64 * 100.0 / elapsed;
    let control = percent(spent(&control)[0] - control_before[0]);
    let most = MOST.max(RATIO_MAX * control);
    let found = watchers.iter().zip(each().zip(before));
    let found: Vec<_> = found
        .map(|((name, _), (after, before))| {
            let [ns, slept, taken] = [0, 1, 2].map(|i| after[i].saturating_sub(before[i]));
            (*name, percent(ns), slept, taken)
        })
        .collect();
    println!("percent of a core, sleeps, interruptions: {found:.2?}; control {control:.3} %");
    let busy = |(_, percent, slept, taken): &&(&str, f64, u64, u64)| {
        *percent > most || slept + taken >= TOLD && slept < taken
    };
    let busy: Vec<_> = found.iter().filter(busy).collect();
    assert!(
        busy.is_empty(),
        "at most {most:.2} %, and asleep in between: {busy:.1?}"
    );
}

fn watcher(fixture: &Fixture, arguments: &[&str]) -> Running {
    let mut command = fixture.command(ringmark().get_program());
    Running::start(command.args(arguments)).unwrap()
}

/// Everything that can watch a process, beside one.
fn beside(fixture: &Fixture, threads: u64) {
    let program = fixture.start(SILENT, "1", &format!("{threads} 400"));
    let ring_file = fixture.ring_file();
    let place = |name: &str| fixture.path(name).display().to_string();
    let socket = fixture.path("socket");
    let _collecting = Collecting::start(&socket, &fixture.path("store"));
    fs::create_dir(fixture.path("deaths")).unwrap();
    let (pid, to) = (
        program.id().to_string(),
        format!("unix://{}", place("socket")),
    );
    let (one, all, deaths) = (place("one.rmk"), place("all.rmk"), place("deaths"));
    let start = |arguments: &[&str]| {
        let running = watcher(fixture, arguments);
        wait_until_mapped(&running, &ring_file);
        running
    };
    let watchers = [
        ("record -p", start(&["record", "-p", &pid, "-o", &one])),
        ("record --all", start(&["record", "--all", "-o", &all])),
        ("stream -p", start(&["stream", "-p", &pid, "--to", &to])),
        ("stream --all", start(&["stream", "--all", "--to", &to])),
        ("cat --follow", start(&["cat", "--follow", "-p", &pid])),
        (
            "on death",
            start(&["record", "--all", "--on-death", &deaths]),
        ),
    ];
    expect_rest(&watchers);
}

#[test]
fn beside_a_quiet_program_with_the_default_ring() {
    if !require_tools(&["python3"]) {
        return;
    }
    beside(&Fixture::new("quiet"), 0);
}

#[test]
fn beside_a_hundred_silent_threads() {
    if !require_tools(&["python3"]) {
        return;
    }
    beside(&Fixture::new("silent"), 100);
}

#[test]
fn beside_a_command_that_is_quiet_or_not_traced() {
    if !require_tools(&["python3"]) {
        return;
    }
    let fixture = Fixture::new("command");
    let dump = |name: &str| fixture.path(name).display().to_string();
    let record = |dump: &str, command: &[&str]| {
        watcher(&fixture, &[&["record", "-o", dump, "--"], command].concat())
    };
    let watchers = [
        ("quiet", record(&dump("a.rmk"), &[SILENT, "4", "400"])),
        ("not traced", record(&dump("b.rmk"), &["sleep", "300"])),
    ];
    expect_rest(&watchers);
}

/// What a process left waits for the collector, which does not come.
#[test]
fn beside_a_dead_program_without_a_collector() {
    if !require_tools(&["python3"]) {
        return;
    }
    let fixture = Fixture::new("away");
    let program = fixture.start(SILENT, "mode=discard", "4 400");
    let (pid, ring_file) = (program.id().to_string(), fixture.ring_file());
    let to = format!("unix://{}", fixture.path("socket").display());
    let streamer = watcher(&fixture, &["stream", "-p", &pid, "--to", &to]);
    wait_until_mapped(&streamer, &ring_file);
    drop(program);
    expect_rest(&[("stream", streamer)]);
}
