//! A traced program that says where it stands: `phases`. Between two marks, calls of `getsid` past
//! the C library, a tracer may make system calls fail; see `deny`. Prints what it found of itself.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use ringmark::event;

/// From here on, this thread's calls are Ringmark's.
const OPEN: i32 = -1001;
/// From here on, they are the program's own.
const CLOSE: i32 = -1002;
/// Lets the test send requests; a positive answer: they are through.
const ASK: i32 = -1003;

fn mark(what: i32) -> i64 {
    // SAFETY: takes a number, changes nothing. Without a tracer it fails.
    unsafe { libc::syscall(libc::SYS_getsid, what) }
}

fn emit(events: u64) {
    for seq in 0..events {
        event!("phases.tick", seq = seq);
    }
}

fn entries(dir: &str) -> usize {
    fs::read_dir(dir).map_or(0, Iterator::count)
}

/// Threads of this process, given a moment for one that is leaving.
fn threads(expected: usize) -> usize {
    let end = Instant::now() + Duration::from_secs(20);
    while entries("/proc/self/task") > expected && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    entries("/proc/self/task")
}

fn a_thread() {
    mark(OPEN);
    emit(50);
    // The thread's end belongs to it: it gives its ring back there.
}

fn main() {
    let files = entries("/proc/self/fd");
    mark(OPEN);
    let is_on = ringmark::start_from_env().is_some();
    emit(3000);
    mark(CLOSE);
    for _ in 0..2 {
        thread::spawn(a_thread).join().expect("a thread");
    }
    let end = Instant::now() + Duration::from_secs(2);
    while mark(ASK) == 0 && Instant::now() < end {
        thread::sleep(Duration::from_micros(300));
    }
    let more = entries("/proc/self/fd") - files;
    let threads = threads(if is_on { 2 } else { 1 });
    println!("on={is_on} descriptors=+{more} threads={threads}");
    mark(OPEN);
}
