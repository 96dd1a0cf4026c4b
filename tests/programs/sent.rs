//! A traced program that takes each signal it is sent, and says so: its number, and the value that came with
//! it. Ends at SIGTERM, with status 3.

use std::io::Write;
use std::{mem, ptr};

use ringmark::event;

fn main() {
    // SAFETY: zeros are a valid set to be filled in.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: a set of ours.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: blocks signals for this thread and those that it makes.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut()) };
    ringmark::start_from_env();
    say("ready");
    loop {
        // SAFETY: zeros are valid, and are filled in.
        let mut about: libc::siginfo_t = unsafe { mem::zeroed() };
        // SAFETY: a set and a place of ours.
        let signal = unsafe { libc::sigwaitinfo(&raw const all, &raw mut about) };
        if signal < 0 {
            continue;
        }
        event!("sent.signal", signal = signal as u32);
        if signal == libc::SIGTERM {
            std::process::exit(3);
        }
        let value = match about.si_code {
            // SAFETY: a signal of `sigqueue` has a value.
            libc::SI_QUEUE => unsafe { about.si_value() }.sival_ptr as usize,
            _ => 0,
        };
        say(&format!("{signal} {value}"));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("standard output");
}
