//! A traced program that forbids itself nearly all system calls: `sandbox HOW EVENTS`. Two threads
//! emit before and behind the filter; then it says so, waits for the end of its input, and ends.
//!
//! HOW: `strict` (the mode of that name; one thread), `kill`, `kill-all`, or an error number for what
//! is forbidden: `38`, `38-all`. `-all` puts the filter over all threads. `alone`: no filter, the
//! first thread ends, with the number of events as its code, and the process with it.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

use ringmark::event;

/// Threads that are attached; then, that are done.
static READY: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
static GO: AtomicU32 = AtomicU32::new(0);

const ALLOWED: [i64; 5] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
];

/// A filter that allows [`ALLOWED`] and does `otherwise` with the rest.
fn filter(otherwise: u32) -> Vec<libc::sock_filter> {
    let step = |code: u32, jt: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut steps = vec![step(load, 0, 0)];
    for (i, number) in ALLOWED.iter().enumerate() {
        steps.push(step(equals, (ALLOWED.len() - i) as u8, *number as u32));
    }
    steps.push(step(answer, 0, otherwise));
    steps.push(step(answer, 0, libc::SECCOMP_RET_ALLOW));
    steps
}

fn forbid(how: &str) {
    if how == "strict" {
        // SAFETY: from here on this thread only reads, writes and exits.
        let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT) };
        assert_eq!(done, 0);
        return;
    }
    let (what, all) = how
        .strip_suffix("-all")
        .map_or((how, 0), |what| (what, libc::SECCOMP_FILTER_FLAG_TSYNC));
    let otherwise = match what.parse::<u32>() {
        Ok(error) => libc::SECCOMP_RET_ERRNO | error,
        Err(_) => libc::SECCOMP_RET_KILL_PROCESS,
    };
    let mut steps = filter(otherwise);
    let program = libc::sock_fprog {
        len: steps.len() as u16,
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: takes numbers only.
    let done = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    assert_eq!(done, 0);
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies the program.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, mode, all, &raw const program) };
    assert_eq!(done, 0);
    // Giving memory back may be a call, too.
    std::mem::forget(steps);
}

fn emit(thread: u64, events: u64) {
    for seq in 0..events {
        event!("sandbox.tick", thread = thread, seq = seq);
    }
}

/// Reads until nothing comes any more.
fn wait_for_end_of_input() {
    let mut byte = 0_u8;
    let place = &raw mut byte;
    loop {
        // SAFETY: one byte of ours.
        let read = unsafe { libc::syscall(libc::SYS_read, 0, place, 1) };
        if read != 1 {
            return;
        }
    }
}

fn say_done() {
    // SAFETY: five bytes of ours.
    unsafe { libc::syscall(libc::SYS_write, 1, c"done\n".as_ptr(), 5) };
}

fn spin(until: &AtomicU32, count: u32) {
    while until.load(SeqCst) < count {
        std::hint::spin_loop();
    }
}

fn other(events: u64) {
    assert!(ringmark::attach_thread());
    READY.store(1, SeqCst);
    spin(&GO, 1);
    emit(1, events);
    DONE.store(1, SeqCst);
    wait_for_end_of_input();
    // Its end would be calls; the process takes it along.
    loop {
        std::hint::spin_loop();
    }
}

/// Waits until the helper thread runs: the C library ends the process if a thread's first calls,
/// before any code of ours, fail.
fn wait_for_helper() {
    let wanted = std::env::var("RINGMARK").unwrap_or_default();
    if wanted.contains("control=off") || wanted == "0" {
        return;
    }
    let is_helper = |entry: std::fs::DirEntry| {
        let name = std::fs::read_to_string(entry.path().join("comm"));
        name.is_ok_and(|name| name.trim_end() == "ringmark")
    };
    let runs = || {
        let mut tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
        tasks.any(|entry| entry.is_ok_and(is_helper))
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !runs() && std::time::Instant::now() < end {
        thread::yield_now();
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().expect("a way");
    let events = arguments.next().and_then(|n| n.parse().ok());
    let events: u64 = events.expect("a number");
    ringmark::start_from_env();
    // As the design asks of who forbids itself all calls.
    let _ = ringmark::attach_thread();
    emit(0, 1);
    if how == "alone" {
        // SAFETY: ends this thread, which holds nothing that others need.
        unsafe { libc::syscall(libc::SYS_exit, events) };
    }
    let is_strict = how == "strict";
    if !is_strict {
        thread::spawn(move || other(events));
        spin(&READY, 1);
        wait_for_helper();
    }
    forbid(&how);
    GO.store(1, SeqCst);
    emit(0, events - 1);
    if !is_strict {
        spin(&DONE, 1);
    }
    say_done();
    wait_for_end_of_input();
    if is_strict {
        // SAFETY: ends the thread; `exit_group` is forbidden.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
    // The standard library's exit makes calls of its own first.
    // SAFETY: the other thread does nothing any more.
    unsafe { libc::exit(0) };
}
