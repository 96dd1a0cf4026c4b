//! A child that is traced: one instruction at a time, one thread at a time, on one processor.

use std::io;
use std::mem;
use std::ptr;

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
/// take turns need no wake-up between processors, and steps are four times as fast.
pub(crate) fn pin(number: usize) {
    // SAFETY: zeros are an empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: the kernel writes at most `bytes` bytes to the set.
    let got = unsafe { libc::sched_getaffinity(0, bytes, &raw mut set) };
    assert_eq!(got, 0, "{}", io::Error::last_os_error());
    // SAFETY: reads bits of a set, within its size.
    let is_in = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let allowed: Vec<_> = (0..libc::CPU_SETSIZE as usize).filter(is_in).collect();
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: sets one bit, within the set's size.
    unsafe { libc::CPU_SET(allowed[number % allowed.len()], &mut one) };
    // SAFETY: the kernel reads `bytes` bytes of the set.
    unsafe { libc::sched_setaffinity(0, bytes, &raw const one) };
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

/// A register of a stopped thread, by its offset in `user`.
fn register(tid: i32, offset: usize) -> u64 {
    // SAFETY: returns a word of the kernel's picture of the thread; a bad offset is an error.
    let word = unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, tid, offset, ptr::null_mut::<u8>()) };
    word as u64
}

/// Address of the next instruction.
pub(crate) fn instruction(tid: i32) -> u64 {
    register(tid, mem::offset_of!(libc::user_regs_struct, rip))
}

/// The stack pointer.
pub(crate) fn stack(tid: i32) -> u64 {
    register(tid, mem::offset_of!(libc::user_regs_struct, rsp))
}
