//! A child that is traced: one instruction at a time, one thread at a time, on one processor.

use std::env;
use std::io;
use std::mem;
use std::process;
use std::ptr;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// What a thread did when it was let go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// One instruction.
    Stepped,
    /// It stopped itself.
    Marked,
    /// It made a thread, which waits for its first step.
    Cloned(i32),
    /// It has ended.
    Ended,
    /// Anything else: the wait status.
    Other(i32),
}

/// Keeps the calling thread, and what it starts, on one of the processors it may use: two that
/// take turns need no wake-up between processors, and steps are four times as fast. Tests that run
/// beside each other take different ones.
pub(crate) fn pin() {
    let allowed = sched_getaffinity(None).expect("the processors of this thread");
    let allowed: Vec<_> = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .collect();
    let mut one = CpuSet::new();
    one.set(allowed[place() % allowed.len()]);
    // A thread that may not is slower.
    let _ = sched_setaffinity(None, &one);
}

/// The runner's number for this test, which no other test has meanwhile.
fn place() -> usize {
    let slot = env::var("NEXTEST_TEST_GLOBAL_SLOT").ok();
    let slot = slot.and_then(|slot| slot.parse().ok());
    slot.unwrap_or(process::id() as usize)
}

fn request(what: libc::c_uint, tid: i32, data: usize) -> io::Result<()> {
    // SAFETY: these requests pass `data` by value and write nothing here.
    let done = unsafe { libc::ptrace(what, tid, ptr::null_mut::<u8>(), data) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn wait(tid: i32) -> io::Result<i32> {
    let mut status = 0;
    // SAFETY: writes one status.
    let found = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL) };
    match found {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(status),
    }
}

/// Waits for a child that has itself traced and then stops; it dies with this thread.
pub(crate) fn attach(pid: i32) -> io::Result<()> {
    let status = wait(pid)?;
    let stopped = libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGSTOP;
    if !stopped {
        return Err(io::Error::other(format!("it never stopped: {status:#x}")));
    }
    let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACECLONE;
    request(libc::PTRACE_SETOPTIONS, pid, options as usize)
}

/// One instruction of this thread, or with `signal` the way to the first one of its handler.
pub(crate) fn step(tid: i32, signal: i32) -> io::Result<Stop> {
    request(libc::PTRACE_SINGLESTEP, tid, signal as usize)?;
    let status = wait(tid)?;
    if !libc::WIFSTOPPED(status) {
        return Ok(if libc::WIFEXITED(status) {
            Stop::Ended
        } else {
            Stop::Other(status)
        });
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (libc::SIGTRAP, 0) => Ok(Stop::Stepped),
        (libc::SIGSTOP, 0) => Ok(Stop::Marked),
        (libc::SIGTRAP, libc::PTRACE_EVENT_CLONE) => {
            let made = new_thread(tid)?;
            wait(made)?;
            Ok(Stop::Cloned(made))
        }
        _ => Ok(Stop::Other(status)),
    }
}

fn new_thread(tid: i32) -> io::Result<i32> {
    let mut made: libc::c_ulong = 0;
    let (nowhere, place) = (ptr::null_mut::<u8>(), &raw mut made);
    // SAFETY: writes one number to the place it is given.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, nowhere, place) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(made as i32),
    }
}

/// Address of the next instruction.
pub(crate) fn instruction(tid: i32) -> u64 {
    let registers = registers(tid);
    #[cfg(target_arch = "x86_64")]
    return registers.rip;
    #[cfg(target_arch = "aarch64")]
    return registers.pc;
}

/// The stack pointer.
pub(crate) fn stack(tid: i32) -> u64 {
    let registers = registers(tid);
    #[cfg(target_arch = "x86_64")]
    return registers.rsp;
    #[cfg(target_arch = "aarch64")]
    return registers.sp;
}

/// Those of a stopped thread that are no vectors.
fn registers(tid: i32) -> libc::user_regs_struct {
    // SAFETY: zeros are registers.
    let mut registers: libc::user_regs_struct = unsafe { mem::zeroed() };
    let mut place = libc::iovec {
        iov_base: (&raw mut registers).cast(),
        iov_len: size_of_val(&registers),
    };
    let set = libc::NT_PRSTATUS as usize as *mut u8;
    // SAFETY: the kernel writes at most `iov_len` bytes to the registers.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, set, &raw mut place) };
    assert_eq!(done, 0, "registers: {}", io::Error::last_os_error());
    registers
}
