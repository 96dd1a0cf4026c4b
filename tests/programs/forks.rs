//! A traced program that has children, one way or another: `forks HOW [COUNT]`. Every event carries
//! the pid of the process that emitted it, and its number there.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{env, thread};

use ringmark::{Session, event};

const EVENTS: u64 = 100;

fn emit(events: u64) {
    static SEQ: AtomicU64 = AtomicU64::new(0);
    for _ in 0..events {
        let (pid, seq) = (std::process::id(), SEQ.fetch_add(1, Relaxed));
        event!("forks.tick", pid = pid, seq = seq);
    }
}

/// Forks; the child does its part and ends, by a clean exit or at once.
fn fork(is_clean: bool, child: impl FnOnce()) -> i32 {
    // SAFETY: the child calls what the library promises to work after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        child();
        if is_clean {
            std::process::exit(0);
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    pid
}

fn wait(pid: i32) {
    let mut status = 0;
    // SAFETY: `status` is a place for the status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "a child did not end well");
}

fn plain() {
    emit(EVENTS);
    let pid = fork(true, || emit(EVENTS));
    emit(EVENTS);
    wait(pid);
    emit(EVENTS);
}

fn nested() {
    emit(EVENTS);
    let pid = fork(true, || {
        emit(EVENTS);
        wait(fork(false, || emit(EVENTS)));
        emit(EVENTS);
    });
    wait(pid);
}

/// Other threads emit while one forks, again and again; each child emits from two threads.
fn threaded(count: u64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    emit(1);
                    thread::sleep(Duration::from_micros(20));
                }
            });
        }
        for _ in 0..count {
            wait(fork(true, || {
                let other = thread::spawn(|| emit(EVENTS));
                emit(EVENTS);
                other.join().expect("a thread");
            }));
        }
        stop.store(true, Relaxed);
    });
}

fn storm(count: u64) {
    emit(EVENTS);
    let children: Vec<_> = (0..count)
        .map(|n| fork(n % 2 == 0, || emit(EVENTS)))
        .collect();
    emit(EVENTS);
    children.into_iter().for_each(wait);
}

/// A child that the C library knows nothing of: no handler runs in it.
fn raw_clone() {
    emit(EVENTS);
    let flags = libc::SIGCHLD as libc::c_long;
    // SAFETY: as fork(2), past the C library; the child only emits, writes and ends.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if pid == 0 {
        emit(EVENTS);
        let foreign = format!("{}\n", Session::foreign_events());
        let _ = std::io::stdout().write_all(foreign.as_bytes());
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    wait(pid as i32);
    emit(EVENTS);
}

#[derive(ringmark::Event)]
#[repr(C)]
#[event(name = "forks.reserved")]
struct Reserved {
    value: u64,
}

/// Forks while another thread starts the session, at many moments; says how many children could
/// not start theirs.
fn starting(count: u64) {
    let mut stuck = 0;
    for n in 0..count {
        let pid = fork(false, || {
            thread::spawn(|| ringmark::start_from_env().is_some());
            thread::sleep(Duration::from_micros(n * 37 % 4000));
            let child = fork(false, || {
                // SAFETY: ends this process should it never come back.
                unsafe { libc::alarm(30) };
                ringmark::start_from_env();
            });
            wait(child);
        });
        let mut status = 0;
        // SAFETY: `status` is a place for the status.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        stuck += u64::from(status != 0);
    }
    println!("{stuck}");
}

/// A record is reserved before the fork; the child commits it when the parent has long gone on, and
/// says good-bye with its parent's handle. Says how many bytes of the parent's file changed.
fn reserved(session: Session) {
    emit(EVENTS);
    let reserved = ringmark::reserve::<Reserved>();
    let (mut told, mut tell) = std::io::pipe().expect("a pipe");
    let pid = fork(false, || {
        told.read_exact(&mut [0]).expect("a word of the parent");
        if let Some(place) = reserved {
            place.write(&Reserved { value: u64::MAX }).commit();
        }
        let _ = session.set_filter("error");
        session.close();
    });
    emit(50_000); // Several times around the ring.
    let before = std::fs::read(session.path()).expect("the ring file");
    tell.write_all(b"!").expect("a child that listens");
    wait(pid);
    let after = std::fs::read(session.path()).expect("the ring file, still");
    let pairs = before.iter().zip(&after).enumerate();
    let changed: Vec<_> = pairs.filter(|(_, (b, a))| b != a).collect();
    println!("{}", changed.len());
    if !changed.is_empty() {
        eprintln!("place, before and after: {changed:x?}");
    }
}

/// Starts itself again as another program (`vfork` and `exec` below it).
fn command() {
    emit(EVENTS);
    let exe = env::current_exe().expect("a path");
    let status = Command::new(exe).arg("leaf").status().expect("a child");
    assert!(status.success());
    emit(EVENTS);
}

/// Becomes another program: the same pid, another session.
fn exec() {
    emit(EVENTS);
    let exe = env::current_exe().expect("a path");
    let error = Command::new(exe).arg("leaf").exec();
    panic!("{error}");
}

/// A child that holds everything open, silently, until its input ends.
fn silent() {
    emit(EVENTS);
    fork(false, || {
        let mut byte = [0_u8; 1];
        // SAFETY: reads into a byte of ours.
        unsafe { libc::read(0, byte.as_mut_ptr().cast(), 1) };
    });
    println!("ready");
    thread::sleep(Duration::from_secs(60));
}

/// Closes every descriptor that it did not open itself, as daemons do.
fn close_all() {
    emit(EVENTS);
    // SAFETY: nothing here uses a descriptor above 2 afterwards; the ring is mapped.
    let closed = unsafe { libc::close_range(3, u32::MAX, 0) };
    assert_eq!(closed, 0);
    thread::spawn(|| emit(EVENTS)).join().expect("a thread");
    emit(EVENTS);
    thread::sleep(Duration::from_secs(60));
}

/// Goes into another directory, and has a child there.
fn moved() {
    emit(EVENTS);
    env::set_current_dir("elsewhere").expect("a directory");
    wait(fork(true, || emit(EVENTS)));
    emit(EVENTS);
}

fn main() {
    let mut arguments = env::args().skip(1);
    let how = arguments.next().expect("a way");
    let count = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(20);
    if how == "starting" {
        return starting(count);
    }
    let session = ringmark::start_from_env();
    match how.as_str() {
        "plain" => plain(),
        "nested" => nested(),
        "threaded" => threaded(count),
        "storm" => storm(count),
        "clone" => raw_clone(),
        "command" => command(),
        "exec" => exec(),
        "silent" => silent(),
        "close" => close_all(),
        "moved" => moved(),
        "reserved" => reserved(session.expect("a session")),
        "leaf" => emit(EVENTS),
        _ => panic!("unknown way {how}"),
    }
}
