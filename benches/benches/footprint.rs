//! W1: what the producer costs a program before its first event: dependencies, build time, text,
//! threads, start-up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use ringmark::Session;
use ringmark_benches::{child_argument, finish, percentiles, print_bar};

fn main() {
    if let Some(control) = child_argument() {
        return start_once(control == "on");
    }
    let checks = [
        at_most(
            "direct third-party dependencies",
            direct_dependencies(),
            5.0,
        ),
        at_most("clean release build, CPU s", build_seconds(), 30.0),
        at_most("added text, KiB", added_text() / 1024.0, 150.0),
        start_up("on", 2.0),
        start_up("off", 1.0),
    ];
    finish(checks.contains(&false))
}

fn at_most(what: &str, value: f64, most: f64) -> bool {
    print_bar("W1", what, value, most, value <= most);
    value <= most
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Lines of `cargo tree` one level below the producer that are not ours.
fn direct_dependencies() -> f64 {
    let mut tree = cargo();
    tree.args([
        "tree", "-p", "ringmark", "-e", "normal", "--depth", "1", "--prefix", "none",
    ]);
    let output = tree.output().expect("cargo tree");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .filter(|line| !line.starts_with("ringmark"))
        .count() as f64
}

/// User and system time of a build of the producer alone, from nothing.
fn build_seconds() -> f64 {
    let target = std::env::temp_dir().join(format!("ringmark-footprint-{}", std::process::id()));
    let before = children_seconds();
    let mut build = cargo();
    build
        .args([
            "build",
            "-q",
            "--release",
            "--locked",
            "-p",
            "ringmark",
            "--target-dir",
        ])
        .arg(&target);
    assert!(
        build.status().expect("cargo").success(),
        "the producer does not build"
    );
    let seconds = children_seconds() - before;
    let _ = fs::remove_dir_all(&target);
    seconds
}

/// User and system time of all children that were waited for (`/proc/self/stat`, 16 and 17).
fn children_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
    let after = stat.rsplit(')').next().expect("fields behind the name");
    let fields = after.split_whitespace().skip(13).take(2);
    let ticks: f64 = fields.filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// Text of a program with three events less that of one without Ringmark.
fn added_text() -> f64 {
    let mut build = cargo();
    build.args(["build", "-q", "--release", "--locked", "-p", "ringmark"]);
    build.args(["--example", "hot_path", "--example", "without"]);
    assert!(
        build.status().expect("cargo").success(),
        "the examples do not build"
    );
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    text_of(&target.join("release/examples/hot_path"))
        - text_of(&target.join("release/examples/without"))
}

/// Size of the section `.text` in bytes.
fn text_of(program: &Path) -> f64 {
    let output = Command::new("size")
        .arg("-A")
        .arg(program)
        .output()
        .expect("size");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with(".text "));
    let bytes = line.and_then(|line| line.split_whitespace().nth(1));
    bytes
        .and_then(|bytes| bytes.parse().ok())
        .expect("the output of size")
}

/// Starts a session in a fresh process 30 times; says how long it took and how many threads ran.
/// With control on, the helper thread makes the warm rings during that time. With control off, a
/// program chooses how many it waits for (each costs about 0.1 ms), here none.
fn start_up(control: &str, most_threads: f64) -> bool {
    let program = std::env::current_exe().expect("the path of this program");
    let (mut us, mut threads) = (Vec::new(), 0.0_f64);
    for _ in 0..30 {
        let output = Command::new(&program)
            .arg(control)
            .output()
            .expect("a child");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = text
            .split_whitespace()
            .filter_map(|n| n.parse::<f64>().ok());
        us.extend(numbers.next());
        threads = threads.max(numbers.next().unwrap_or(f64::NAN));
    }
    let start = at_most(
        &format!("start-up with control {control}, ms"),
        percentiles(us)[1] / 1000.0,
        0.3,
    );
    let threads = at_most(
        &format!("threads with control {control}"),
        threads,
        most_threads,
    );
    start && threads
}

fn start_once(control: bool) {
    let start = Instant::now();
    let session = Session::builder()
        .control(control)
        .warm(if control { 4 } else { 0 })
        .start();
    let us = start.elapsed().as_nanos() as f64 / 1000.0;
    assert!(session.is_ok(), "{session:?}");
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    println!("{us} {threads}");
}
