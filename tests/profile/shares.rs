//! Promise: samples share the running time out as the program's own clock does, whatever the compiler was told, and times
//! of threads are the kernel's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use ringmark_profile::{LOOK_EVERY, Missing, Profile, Profiler};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::LIMIT;
use ringmark_tests::{Running, is_long, log_skip, program, require_tools, run, workspace_root};

/// Samples in each second that the program runs.
const HERTZ: u64 = 997;

/// How long the program runs: 4,000 samples at full size.
fn seconds() -> f64 {
    if is_long() { 4.2 } else { 1.6 }
}

/// How far a share may be from the truth. Of 4,000 samples one of 70 % has a deviation of 0.7 %, of 1,500 of 1.2 %.
fn tolerance() -> f64 {
    if is_long() { 0.02 } else { 0.04 }
}

fn build(fixture: &Fixture, output: &str, compiler: &str, flags: &str) -> PathBuf {
    let source = workspace_root().join("tests/programs/c/shares.c");
    let mut command = Command::new(compiler);
    command.args(flags.split_whitespace()).arg(source);
    command.arg("-o").arg(fixture.path(output));
    let _ = run(&mut command, LIMIT).expect(compiler).expect_code(0);
    fixture.path(output)
}

/// Runs the program, and gives its profile and the ns that its three functions ran.
fn profiled(fixture: &Fixture, mut command: Command) -> (Profile, [u64; 3]) {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let truth = fixture.path(&format!("truth-{number}"));
    command.arg(seconds().to_string()).arg(&truth);
    let mut running = Running::start(command.stdin(Stdio::piped())).expect("a program");
    // It waits for its input in the program, not in the loader.
    running.wait_until_in(&[ringmark_tests::process::READS_INPUT]);
    let mut profiler = Profiler::attach(running.id(), HERTZ).expect("it is there");
    let mut input = running.child().stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut input, b"go\n").expect("it reads");
    while !truth.exists() {
        assert!(profiler.look(), "it lives");
        thread::sleep(LOOK_EVERY);
    }
    let profile = profiler.profile();
    drop(input);
    assert_eq!(running.finish(SOON).code(), 0);
    let text = fs::read_to_string(truth).expect("three numbers");
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    (profile, numbers.try_into().expect("three numbers"))
}

/// Compares the shares of three functions with the truth; `found` has their ns.
fn compare(label: &str, found: [u64; 3], truth: [u64; 3]) {
    let share = |of: [u64; 3]| of.map(|ns| ns as f64 / of.iter().sum::<u64>().max(1) as f64);
    let (found, expected) = (share(found), share(truth));
    println!("{label}: {found:.3?}, the program says {expected:.3?}");
    for (found, expected) in found.into_iter().zip(expected) {
        let is_near = (found - expected).abs() <= tolerance();
        assert!(is_near, "{label}: {found} of the time, expected {expected}");
    }
}

/// The ns of the functions' own code, by a part of their names.
fn own_ns(profile: &Profile, names: [&str; 3]) -> [u64; 3] {
    names.map(|name| {
        let mut functions = profile.functions.iter();
        let found = functions.find(|of| of.function.name.contains(name));
        found.map_or(0, |of| of.running_self_ns)
    })
}

fn are_sampled(profile: &Profile) -> bool {
    let refused = profile.missing.iter().find_map(|missing| match missing {
        Missing::Running(why) => Some(why),
        _ => None,
    });
    if let Some(why) = refused {
        log_skip(&format!("samples are refused here: {why}"));
    }
    refused.is_none()
}

/// Running time is that of the program's clock, and all stacks are whole.
fn check_whole(label: &str, profile: &Profile, truth: [u64; 3]) {
    let ran: u64 = truth.iter().sum();
    let times = profile.times();
    // The rest of the program runs, too: reading its clock, its start, its end.
    let most = ran + ran / 100 + 10_000_000;
    assert!(
        (ran..=most).contains(&times.running_ns),
        "{label}: {} ns running, expected {ran}",
        times.running_ns
    );
    let of_samples = profile.samples * (1_000_000_000 / HERTZ);
    let least = ran - ran / 50;
    assert!(of_samples >= least, "{label}: {of_samples} of {ran}");
    // Each sample is in one SELF: a function's, or the kernel's.
    let own: u64 = profile.functions.iter().map(|of| of.running_self_ns).sum();
    if !profile.missing.contains(&Missing::Kernel) {
        assert_eq!(profile.kernel_ns, Some(of_samples - own), "{label}");
    }
    let share = profile.whole_samples as f64 / profile.samples as f64;
    assert!(share >= 0.98, "{label}: {share} of the stacks are whole");
}

fn check(fixture: &Fixture, label: &str, program: &Path, names: [&str; 3]) {
    let (profile, truth) = profiled(fixture, Command::new(program));
    if !are_sampled(&profile) {
        return;
    }
    compare(label, own_ns(&profile, names), truth);
    check_whole(label, &profile, truth);
}

const NAMES: [&str; 3] = ["seventy", "twenty", "ten"];

#[test]
fn with_and_without_frame_pointers() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("shares");
    for flags in ["-O2 -fno-omit-frame-pointer", "-O2 -fomit-frame-pointer"] {
        let program = build(&fixture, "shares", "gcc", flags);
        check(&fixture, flags, &program, NAMES);
    }
}

#[test]
fn of_cxx_and_rust() {
    if !require_tools(&["g++"]) {
        return;
    }
    let fixture = Fixture::new("shares-languages");
    let cxx = build(&fixture, "cxx", "g++", "-O2 -x c++");
    let names = ["work::seventy(", "work::twenty(", "work::part<"];
    check(&fixture, "C++", &cxx, names);
    let names = ["shares::seventy", "shares::twenty", "shares::Rest"];
    check(&fixture, "Rust", Path::new(program!("shares")), names);
}

/// Of a stripped program functions are told apart by where they begin.
#[test]
fn of_a_stripped_program() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("shares-stripped");
    let program = build(&fixture, "stripped", "gcc", "-O2 -s");
    let (profile, truth) = profiled(&fixture, Command::new(program));
    if !are_sampled(&profile) {
        return;
    }
    let mut own: Vec<_> = profile.functions.iter().collect();
    own.sort_by_key(|of| std::cmp::Reverse(of.running_self_ns));
    let longest = own[..3].iter().map(|of| of.running_self_ns);
    let longest: Vec<_> = longest.collect();
    assert!(own[0].function.name.starts_with("stripped+0x"), "{own:?}");
    compare("stripped", longest.try_into().expect("three"), truth);
    check_whole("stripped", &profile, truth);
}

/// The distribution keeps symbols apart, in a file that the build id names.
#[test]
fn of_a_stripped_program_with_a_debug_file() {
    if !require_tools(&["gcc", "objcopy", "unshare", "mount"]) {
        return;
    }
    let fixture = Fixture::new("shares-debug");
    let program = build(
        &fixture,
        "shares",
        "gcc",
        "-O2 -g -Wl,--build-id=0xab12cd34ef",
    );
    // The directory is the program's own, and so not that of this test: it is found through the process.
    let script = "mkdir -p /usr/lib/debug; mount -t tmpfs none /usr/lib/debug
        mkdir -p /usr/lib/debug/.build-id/ab
        objcopy --only-keep-debug \"$0\" /usr/lib/debug/.build-id/ab/12cd34ef.debug
        objcopy --strip-all \"$0\" \"$0\".stripped
        exec \"$0\".stripped \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-euc", script]);
    command.arg(&program);
    let (profile, truth) = profiled(&fixture, command);
    if !are_sampled(&profile) {
        return;
    }
    compare("with a debug file", own_ns(&profile, NAMES), truth);
    check_whole("with a debug file", &profile, truth);
}
