//! A traced program in trouble of its own making: `odd WHAT…`. Then it starts its session, emits from
//! two threads (if it gets a second one) and prints whether it is traced, and its events.
//!
//! `closed MASK`: standard descriptors of these bits are closed, and printed to all the same.
//! `daemon FILE`: closes all other descriptors after the start and opens FILE many times instead.
//! `limit NUMBER VALUE`: a resource limit.

use std::ffi::c_void;
use std::fs::File;
use std::os::fd::IntoRawFd;
use std::ptr;

use ringmark::event;

const EVENTS: u64 = 1000;

fn emit(thread: u64) {
    for seq in 0..EVENTS {
        event!("odd.tick", thread = thread, seq = seq);
    }
}

/// A thread of the C library's: one of the standard library's first maps a stack for signal
/// handlers, and ends the process where it gets none.
extern "C" fn emit_as_other(_: *mut c_void) -> *mut c_void {
    emit(1);
    ptr::null_mut()
}

fn emit_in_two_threads() -> u64 {
    emit(0);
    let mut other: libc::pthread_t = 0;
    // SAFETY: the thread gets nothing and is joined below.
    let made = unsafe {
        libc::pthread_create(&raw mut other, ptr::null(), emit_as_other, ptr::null_mut())
    };
    if made != 0 {
        return 1;
    }
    // SAFETY: it was made above, and no other code joins it.
    unsafe { libc::pthread_join(other, ptr::null_mut()) };
    2
}

fn close_standard(mask: i32) {
    for fd in 0..3 {
        if mask >> fd & 1 == 1 {
            // SAFETY: no code here owns it.
            unsafe { libc::close(fd) };
        }
    }
}

/// To where standard output and standard error are, or were.
fn print(text: &str) {
    for fd in [1, 2] {
        // SAFETY: bytes of ours.
        unsafe { libc::write(fd, text.as_ptr().cast(), text.len()) };
    }
}

fn become_daemon(file: &str) {
    // SAFETY: no code here owns them: that is the point.
    unsafe { libc::close_range(3, u32::MAX, 0) };
    for _ in 0..8 {
        let file = File::options().read(true).write(true).open(file);
        // For ever, as a daemon's log.
        let _ = file.expect("a file").into_raw_fd();
    }
}

fn limit(what: u32, value: u64) {
    let limit = libc::rlimit {
        rlim_cur: value,
        rlim_max: value,
    };
    // SAFETY: a limit of ours.
    let done = unsafe { libc::setrlimit(what, &raw const limit) };
    assert_eq!(done, 0);
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match arguments[..] {
        ["closed", mask] => close_standard(number(mask) as i32),
        ["limit", what, value] => limit(number(what) as u32, number(value)),
        _ => {}
    }
    let is_on = ringmark::start_from_env().is_some();
    match arguments[..] {
        ["closed", _] => print("what a program says without looking\n"),
        ["daemon", file] => become_daemon(file),
        _ => {}
    }
    let threads = emit_in_two_threads();
    if arguments[0] != "closed" {
        println!("{is_on} {}", threads * EVENTS);
    }
}
