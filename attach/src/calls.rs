//! System calls that a stopped thread was in: how it goes on with them as if nothing had been.

use crate::ptrace::{self, Late, Registers, Stopped};

/// Waits that a signal, and so a stop, ends with `EINTR` instead of going on by themselves:
/// epoll_wait, epoll_pwait, epoll_pwait2, rt_sigtimedwait, semop, semtimedop, msgrcv, msgsnd,
/// io_getevents, recvfrom, recvmsg, sendto, sendmsg, accept, accept4 and connect with a time limit.
const STARTED_AGAIN: [u64; 16] = [
    232, 281, 441, 128, 65, 220, 70, 69, 208, 45, 47, 44, 46, 43, 288, 42,
];
/// Waits in which no lock of the C library is held, if the program itself has called them by name,
/// and that no allocator uses.
const SERVER_WAITS: [&str; 17] = [
    "poll",
    "__poll",
    "ppoll",
    "select",
    "__select",
    "pselect",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "accept",
    "accept4",
    "recv",
    "recvfrom",
    "recvmsg",
    "pause",
    "sigsuspend",
    "sigwait",
];
/// Such waits that an allocator may use, too.
const OTHER_WAITS: [&str; 26] = [
    "recvmmsg",
    "send",
    "sendto",
    "sendmsg",
    "connect",
    "read",
    "readv",
    "write",
    "writev",
    "nanosleep",
    "clock_nanosleep",
    "sleep",
    "usleep",
    "sigwaitinfo",
    "sigtimedwait",
    "wait",
    "waitpid",
    "wait4",
    "waitid",
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_clockwait",
    "pthread_mutex_lock",
    "sem_wait",
    "pthread_join",
    "syscall",
];
/// Functions that return twice, or whose return address is kept elsewhere than on the stack.
const TWICE: [&str; 17] = [
    "fork",
    "_Fork",
    "__fork",
    "vfork",
    "__vfork",
    "clone",
    "__clone",
    "setjmp",
    "_setjmp",
    "__sigsetjmp",
    "getcontext",
    "setcontext",
    "swapcontext",
    "makecontext",
    "posix_spawn",
    "posix_spawnp",
    "system",
];

const RESTART_SYSCALL: u64 = 219;

pub(crate) fn is_wait(name: &str, brings_allocator: bool) -> bool {
    SERVER_WAITS.contains(&name) || (!brings_allocator && OTHER_WAITS.contains(&name))
}

pub(crate) fn returns_twice(name: &str) -> bool {
    TWICE.contains(&name)
}

/// Whether a stop ends this call, so that a tool killed in the stop leaves it with `EINTR`.
pub(crate) fn is_fragile(number: u64) -> bool {
    STARTED_AGAIN.contains(&number)
}

/// Whether the thread was in a system call that waits.
pub(crate) fn is_waiting(registers: &Registers) -> bool {
    again(registers).is_some()
}

/// What makes the thread go into its system call again, where the stop took it out of one:
/// address of the instruction and number of the call.
pub(crate) fn again(registers: &Registers) -> Option<(u64, u64)> {
    let number = registers.orig_rax;
    if number.cast_signed() < 0 {
        return None;
    }
    let number = match -registers.rax.cast_signed() {
        512..=514 => number,
        516 => RESTART_SYSCALL,
        4 if STARTED_AGAIN.contains(&number) => number,
        _ => return None,
    };
    // `syscall` has two bytes.
    Some((registers.rip - 2, number))
}

/// Whether the kernel itself sends the thread back into the call when it goes on.
pub(crate) fn is_again_by_itself(registers: &Registers) -> bool {
    registers.rax.cast_signed() != -4
}

/// Has a thread go into its system call again, where the call would end with an error now.
pub(crate) fn begin_again(stopped: &Stopped, registers: &Registers) {
    if !is_again_by_itself(registers)
        && let Some((rip, number)) = again(registers)
    {
        let mut begun = *registers;
        (begun.rip, begun.rax, begun.orig_rax) = (rip, number, u64::MAX);
        // It has been killed if this fails.
        let _ = stopped.set_registers(&begun);
    }
}

/// Lets go of a thread that did not stop in time, if it has stopped since. `false`: not yet.
pub(crate) fn let_go_late(tid: i32) -> bool {
    match ptrace::look_late(tid) {
        Late::NotYet => false,
        Late::Gone => true,
        Late::Stopped(stopped) => {
            if let Ok(registers) = stopped.registers() {
                begin_again(&stopped, &registers);
            }
            let _ = stopped.let_go(); // It has been killed if this fails.
            true
        }
    }
}
