//! A traced program that emits and then ends in the way it is asked for: `ways_to_end WAY [wait]`.
//! With `wait` it ends when its standard input does.

use std::hint::black_box;
use std::io::{Read, stdin};
use std::panic::{catch_unwind, set_hook};
use std::process::{ExitCode, abort, exit};
use std::thread;

use ringmark::event;

/// Each call needs more of the stack, which ends the process.
fn without_end(depth: u64) -> u64 {
    let here = black_box([depth; 64]);
    if here[0] == u64::MAX {
        return 0;
    }
    without_end(depth + 1) + here[(depth % 64) as usize]
}

/// Takes memory until the kernel kills the process.
fn take_memory() -> ! {
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        taken.push(black_box(vec![1; 1 << 20]));
    }
}

fn kill_with(signal: i32) -> ! {
    // SAFETY: sends a signal to this very process.
    unsafe { libc::raise(signal) };
    unreachable!("signal {signal} ends the process")
}

fn read_null() {
    let nowhere = black_box(std::ptr::null::<u64>());
    // SAFETY: none: this is the fault that ends the process.
    let _ = black_box(unsafe { nowhere.read_volatile() });
}

/// A hook that does not call the one before.
fn set_silent_hook() {
    set_hook(Box::new(|_| ()));
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next().expect("a way");
    if way == "panic-hook-before" {
        set_silent_hook();
    }
    let _session = ringmark::start_from_env();
    event!("ends.begin", way = way.as_str());
    if arguments.next().is_some() {
        stdin()
            .read_to_end(&mut Vec::new())
            .expect("standard input");
    }
    match way.as_str() {
        "return-0" => {}
        "return-2" => return ExitCode::from(2),
        "exit-1" => exit(1),
        // SAFETY: ends the process.
        "_exit-0" => unsafe { libc::_exit(0) },
        "abort" => abort(),
        "segv" => read_null(),
        "kill" => kill_with(libc::SIGKILL),
        "panic" | "panic-hook-before" => panic!("the pool is empty"),
        "panic-string" => panic!("the pool has {} of {}", black_box(0), 4),
        "panic-other" => std::panic::panic_any(7_u8),
        "panic-hook-after" => {
            set_silent_hook();
            panic!("the pool is empty");
        }
        "caught" => assert!(catch_unwind(|| panic!("a request failed")).is_err()),
        "caught-goes-on" => {
            assert!(catch_unwind(|| panic!("a request failed")).is_err());
            event!("request.failed", id = 7_u64);
            let _ = stdin().read_to_end(&mut Vec::new());
        }
        "caught-exit-1" => {
            assert!(thread::spawn(|| panic!("a request failed")).join().is_err());
            exit(1);
        }
        "close-return-0" => _session.expect("a session").close(),
        "close-segv" => {
            _session.expect("a session").close();
            read_null();
        }
        "overflow" => drop(black_box(without_end(0))),
        "memory" => take_memory(),
        _ => panic!("unknown way {way}"),
    }
    ExitCode::SUCCESS
}
