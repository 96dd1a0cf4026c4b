//! A traced program that has children in every way that the system offers: `children HOW [COUNT]`.
//! Every event carries the pid of the process that emitted it.

use std::ffi::{CString, c_int, c_void};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::{env, mem, ptr, thread};

use ringmark::event;
use tracing::Subscriber;

const EVENTS: u64 = 100;
/// Events of handlers, in this process.
static HANDLED: AtomicU64 = AtomicU64::new(0);

fn emit(events: u64) {
    for seq in 0..events {
        event!("children.tick", pid = std::process::id(), seq = seq);
    }
}

extern "C" fn handler(_signal: c_int) {
    for _ in 0..10 {
        let seq = HANDLED.fetch_add(1, Relaxed);
        event!("children.handler", pid = std::process::id(), seq = seq);
    }
}

fn handle(signal: c_int, flags: c_int) {
    // SAFETY: zeros are a valid action to be filled in.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART | flags;
    // SAFETY: the handler emits and counts, no more.
    let set = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    assert_eq!(set, 0);
}

fn raise(signal: c_int) {
    // SAFETY: a signal to this thread, which has a handler.
    unsafe { libc::raise(signal) };
}

fn block(signal: c_int) {
    // SAFETY: zeros are a signal set to be filled in.
    let mut set: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is a signal set of ours.
    unsafe { libc::sigaddset(&raw mut set, signal) };
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
}

/// Forks; the child does its part and ends, by a clean exit or at once. One that hangs is killed.
fn fork(is_clean: bool, child: impl FnOnce()) -> i32 {
    // SAFETY: the child calls what the library promises to work after a fork.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: ends this process if it never comes back.
        unsafe { libc::alarm(60) };
        child();
        if is_clean {
            std::process::exit(0);
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    pid
}

/// How it ended.
fn wait(pid: i32) -> c_int {
    let mut status = 0;
    // SAFETY: `status` is a place for the status.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    status
}

fn say(number: u64) {
    // Past the buffer of standard output, which the child has for itself.
    let _ = std::io::stdout().write_all(format!("{number}\n").as_bytes());
}

/// The first event of the child is its handler's: `plain`, on an alternate stack, or a handler that
/// does not block its signal, in the main thread or another.
fn handler_first(flags: c_int, on_thread: bool) {
    emit(EVENTS);
    handle(libc::SIGUSR1, flags);
    let body = move || {
        let pid = fork(true, move || {
            let mut stack = vec![0_u8; 64 << 10];
            if flags & libc::SA_ONSTACK != 0 {
                use_stack(&mut stack);
            }
            raise(libc::SIGUSR1);
            emit(EVENTS);
            raise(libc::SIGUSR1);
            emit(EVENTS);
        });
        assert_eq!(wait(pid), 0);
    };
    match on_thread {
        true => thread::spawn(body).join().expect("a thread"),
        false => body(),
    }
}

fn use_stack(stack: &mut [u8]) {
    let alternate = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    // SAFETY: the stack lives until its process ends.
    let set = unsafe { libc::sigaltstack(&raw const alternate, ptr::null_mut()) };
    assert_eq!(set, 0);
}

/// The child allocates while a fast timer interrupts it with its first events.
fn handler_in_allocator() {
    emit(EVENTS);
    handle(libc::SIGPROF, 0);
    let pid = fork(true, || {
        HANDLED.store(0, Relaxed);
        let every = libc::timeval {
            tv_sec: 0,
            tv_usec: 100,
        };
        let mut timer = libc::itimerval {
            it_interval: every,
            it_value: every,
        };
        // SAFETY: reads a timer of ours.
        unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
        // Not one event of its own before handlers have come.
        while HANDLED.load(Relaxed) < 300 {
            drop(black_box(vec![0_u8; 100 + HANDLED.load(Relaxed) as usize]));
        }
        timer.it_value.tv_usec = 0;
        // SAFETY: as above.
        unsafe { libc::setitimer(libc::ITIMER_PROF, &raw const timer, ptr::null_mut()) };
        emit(EVENTS);
        say(HANDLED.load(Relaxed));
    });
    assert_eq!(wait(pid), 0);
}

/// A signal that has a handler is blocked, but no handler runs.
fn handled_and_blocked() {
    emit(EVENTS);
    handle(libc::SIGUSR1, 0);
    handle(libc::SIGUSR2, libc::SA_NODEFER);
    raise(libc::SIGUSR1);
    block(libc::SIGUSR1);
    let pid = fork(true, || emit(EVENTS));
    assert_eq!(wait(pid), 0);
    let body = || assert_eq!(wait(fork(true, || emit(EVENTS))), 0);
    thread::spawn(body).join().expect("a thread");
}

/// The key of the hook at thread exit is one for which the C library allocates; threads begin with
/// a handler's events.
fn many_keys() {
    for _ in 0..40 {
        let mut key = 0;
        // SAFETY: a place for the key; it has no destructor.
        assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, None) }, 0);
    }
    ringmark::start_from_env();
    handle(libc::SIGUSR1, 0);
    for _ in 0..10 {
        let body = || {
            raise(libc::SIGUSR1);
            emit(EVENTS);
            raise(libc::SIGUSR1);
        };
        thread::spawn(body).join().expect("a thread");
    }
}

/// Untraced; other threads ask the bridge from `tracing` what is on. Each child starts a session.
fn untraced_with_bridge(count: u64) {
    let stop = AtomicBool::new(false);
    let recorder = ringmark::tracing::recorder();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    black_box(recorder.max_level_hint());
                }
            });
        }
        let start = || _ = ringmark::start_from_env();
        let stuck = (0..count).filter(|_| wait(fork(false, start)) != 0).count();
        stop.store(true, Relaxed);
        say(stuck as u64);
    });
}

/// One child of a storm, and how it ends.
fn child_of_storm(number: u64) {
    emit(EVENTS);
    match number % 6 {
        0 => {}
        1 => assert_eq!(wait(fork(true, || emit(EVENTS))), 0),
        2 => _ = leaf().exec(),
        3 => raise(libc::SIGKILL),
        4 => std::process::abort(),
        // SAFETY: ends the child.
        _ => unsafe { libc::_exit(0) },
    }
}

/// Threads emit while children come and go.
fn storm(count: u64) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    emit(10);
                    thread::sleep(std::time::Duration::from_micros(50));
                }
            });
        }
        for number in 0..count {
            let status = wait(fork(true, || child_of_storm(number)));
            let expected = match number % 6 {
                3 => libc::SIGKILL,
                4 => libc::SIGABRT,
                _ => 0,
            };
            assert_eq!(status & 0x7F, expected, "child {number}: {status}");
        }
        stop.store(true, Relaxed);
    });
}

fn leaf() -> Command {
    let mut command = Command::new(env::current_exe().expect("a path"));
    command.arg("leaf");
    command
}

fn command_line() -> CString {
    let exe = env::current_exe().expect("a path");
    CString::new(format!("{} leaf", exe.display())).expect("a path")
}

/// Through the shell, twice.
fn shell() {
    emit(EVENTS);
    let line = command_line();
    // SAFETY: a string that ends with 0.
    assert_eq!(unsafe { libc::system(line.as_ptr()) }, 0);
    // SAFETY: two strings that end with 0.
    let pipe = unsafe { libc::popen(line.as_ptr(), c"r".as_ptr()) };
    assert!(!pipe.is_null());
    // SAFETY: the stream just opened, once.
    assert_eq!(unsafe { libc::pclose(pipe) }, 0);
    emit(EVENTS);
}

/// The parent ends inside this call, the child goes on.
fn daemon() {
    emit(EVENTS);
    // SAFETY: takes two numbers; the child calls what the library promises to work after a fork.
    #[allow(deprecated)]
    let done = unsafe { libc::daemon(1, 1) };
    assert_eq!(done, 0);
    emit(EVENTS);
    say(EVENTS);
}

/// A child past the C library that shares nothing.
fn clone3() {
    emit(EVENTS);
    let mut arguments = [0_u64; 11];
    arguments[4] = libc::SIGCHLD as u64;
    let bytes = size_of_val(&arguments);
    // SAFETY: as fork(2), past the C library; the child only emits, writes and ends.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, arguments.as_ptr(), bytes) };
    if pid == 0 {
        emit(EVENTS);
        say(ringmark::Session::foreign_events());
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    assert_eq!(wait(pid as i32), 0);
    emit(EVENTS);
}

extern "C" fn emit_and_end(_: *mut c_void) -> c_int {
    emit(EVENTS);
    0
}

/// A child that shares our memory, but is a process of its own. The thread that makes it has not
/// emitted before.
fn shared_memory(more: c_int) {
    thread::spawn(|| emit(EVENTS)).join().expect("a thread");
    let mut stack = vec![0_u8; 256 << 10];
    let top = stack.as_mut_ptr_range().end.cast();
    let flags = libc::CLONE_VM | libc::SIGCHLD | more;
    // SAFETY: the stack lives until the child has ended; the child emits, no more.
    let pid = unsafe { libc::clone(emit_and_end, top, flags, ptr::null_mut()) };
    assert!(pid > 0);
    assert_eq!(wait(pid), 0);
    emit(EVENTS);
}

/// `errno` stands between a call and the look at it; so may a child's first event.
fn keeps_errno() {
    emit(EVENTS);
    let first = || {
        // SAFETY: fails, as planned.
        assert_eq!(unsafe { libc::close(-1) }, -1);
        emit(1);
        let error = std::io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EBADF));
    };
    assert_eq!(wait(fork(true, first)), 0);
    thread::spawn(first).join().expect("a thread");
}

fn main() {
    let mut arguments = env::args().skip(1);
    let how = arguments.next().expect("a way");
    let count = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(20);
    match how.as_str() {
        "keys" => return many_keys(),
        "bridge" => return untraced_with_bridge(count),
        _ => _ = ringmark::start_from_env(),
    }
    match how.as_str() {
        "handler" => handler_first(0, false),
        "handler-thread" => handler_first(0, true),
        "handler-stack" => handler_first(libc::SA_ONSTACK, false),
        "handler-nodefer" => handler_first(libc::SA_NODEFER, true),
        "allocator" => handler_in_allocator(),
        "blocked" => handled_and_blocked(),
        "storm" => storm(count),
        "shell" => shell(),
        "daemon" => daemon(),
        "clone3" => clone3(),
        "vm" => shared_memory(0),
        "vm-vfork" => shared_memory(libc::CLONE_VFORK),
        "errno" => keeps_errno(),
        "leaf" => emit(EVENTS),
        _ => panic!("unknown way {how}"),
    }
}
