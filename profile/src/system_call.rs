//! The system call that a thread is in, as `/proc/PID/task/TID/syscall` says it.

/// Where a thread stands that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemCall {
    /// Its number; `None`: it stands in none, as in a page fault.
    pub(crate) number: Option<u64>,
    /// Its arguments.
    pub(crate) arguments: [u64; 6],
    pub(crate) stack_pointer: u64,
    pub(crate) instruction: u64,
}

impl SystemCall {
    /// Reads the line; `None`: the thread runs, or the line is none.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        match words.as_slice() {
            ["-1", sp, pc] => Some(Self {
                number: None,
                arguments: [0; 6],
                stack_pointer: hex(sp)?,
                instruction: hex(pc)?,
            }),
            [number, given @ .., sp, pc] if given.len() == 6 => {
                let mut arguments = [0; 6];
                for (argument, word) in arguments.iter_mut().zip(given) {
                    *argument = hex(word)?;
                }
                Some(Self {
                    number: Some(number.parse().ok()?),
                    arguments,
                    stack_pointer: hex(sp)?,
                    instruction: hex(pc)?,
                })
            }
            _ => None,
        }
    }
}

/// What a system call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// The descriptor that is its first argument.
    Descriptor,
    /// The lock of the file of that descriptor, of the kind that `/proc/locks` calls so.
    Lock(&'static str),
    /// A word of memory.
    Futex,
    /// Descriptors in an array of `pollfd`.
    Poll,
    /// Nothing but time.
    Time,
    /// What its name says.
    Named,
}

/// Calls that wait and that later processors have under their newer names alone.
#[cfg(target_arch = "x86_64")]
const OLDER_CALLS: &[(i64, &str, Object)] = &[
    (libc::SYS_epoll_wait, "epoll_wait", Object::Descriptor),
    (libc::SYS_poll, "poll", Object::Poll),
    (libc::SYS_pause, "pause", Object::Named),
    (libc::SYS_select, "select", Object::Named),
    (libc::SYS_open, "open", Object::Named),
    (libc::SYS_unlink, "unlink", Object::Named),
    (libc::SYS_rename, "rename", Object::Named),
    (libc::SYS_vfork, "vfork", Object::Named),
    (libc::SYS_rmdir, "rmdir", Object::Named),
    (libc::SYS_mkdir, "mkdir", Object::Named),
    (libc::SYS_lstat, "lstat", Object::Named),
    (libc::SYS_stat, "stat", Object::Named),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_CALLS: &[(i64, &str, Object)] = &[];

/// Calls that wait, by number.
const CALLS: &[(i64, &str, Object)] = &[
    (libc::SYS_read, "read", Object::Descriptor),
    (libc::SYS_write, "write", Object::Descriptor),
    (libc::SYS_pread64, "pread64", Object::Descriptor),
    (libc::SYS_pwrite64, "pwrite64", Object::Descriptor),
    (libc::SYS_readv, "readv", Object::Descriptor),
    (libc::SYS_writev, "writev", Object::Descriptor),
    (libc::SYS_preadv, "preadv", Object::Descriptor),
    (libc::SYS_pwritev, "pwritev", Object::Descriptor),
    (libc::SYS_sendfile, "sendfile", Object::Descriptor),
    (libc::SYS_splice, "splice", Object::Descriptor),
    (libc::SYS_fsync, "fsync", Object::Descriptor),
    (libc::SYS_fdatasync, "fdatasync", Object::Descriptor),
    (
        libc::SYS_sync_file_range,
        "sync_file_range",
        Object::Descriptor,
    ),
    (libc::SYS_fallocate, "fallocate", Object::Descriptor),
    (libc::SYS_ftruncate, "ftruncate", Object::Descriptor),
    (libc::SYS_getdents64, "getdents64", Object::Descriptor),
    (libc::SYS_flock, "flock", Object::Lock("FLOCK")),
    (libc::SYS_fcntl, "fcntl", Object::Lock("POSIX")),
    (libc::SYS_ioctl, "ioctl", Object::Descriptor),
    (libc::SYS_connect, "connect", Object::Descriptor),
    (libc::SYS_accept, "accept", Object::Descriptor),
    (libc::SYS_accept4, "accept4", Object::Descriptor),
    (libc::SYS_recvfrom, "recvfrom", Object::Descriptor),
    (libc::SYS_recvmsg, "recvmsg", Object::Descriptor),
    (libc::SYS_recvmmsg, "recvmmsg", Object::Descriptor),
    (libc::SYS_sendto, "sendto", Object::Descriptor),
    (libc::SYS_sendmsg, "sendmsg", Object::Descriptor),
    (libc::SYS_sendmmsg, "sendmmsg", Object::Descriptor),
    (libc::SYS_epoll_pwait, "epoll_pwait", Object::Descriptor),
    (libc::SYS_epoll_pwait2, "epoll_pwait2", Object::Descriptor),
    (
        libc::SYS_io_uring_enter,
        "io_uring_enter",
        Object::Descriptor,
    ),
    (libc::SYS_futex, "futex", Object::Futex),
    (libc::SYS_ppoll, "ppoll", Object::Poll),
    (libc::SYS_nanosleep, "nanosleep", Object::Time),
    (libc::SYS_clock_nanosleep, "clock_nanosleep", Object::Time),
    (libc::SYS_pselect6, "pselect6", Object::Named),
    (libc::SYS_wait4, "wait4", Object::Named),
    (libc::SYS_waitid, "waitid", Object::Named),
    (libc::SYS_rt_sigtimedwait, "rt_sigtimedwait", Object::Named),
    (libc::SYS_rt_sigsuspend, "rt_sigsuspend", Object::Named),
    (libc::SYS_restart_syscall, "restart_syscall", Object::Named),
    (libc::SYS_semtimedop, "semtimedop", Object::Named),
    (libc::SYS_semop, "semop", Object::Named),
    (libc::SYS_msgrcv, "msgrcv", Object::Named),
    (libc::SYS_msgsnd, "msgsnd", Object::Named),
    (libc::SYS_mq_timedreceive, "mq_timedreceive", Object::Named),
    (libc::SYS_io_getevents, "io_getevents", Object::Named),
    (libc::SYS_openat, "openat", Object::Named),
    (libc::SYS_mmap, "mmap", Object::Named),
    (libc::SYS_munmap, "munmap", Object::Named),
    (libc::SYS_mprotect, "mprotect", Object::Named),
    (libc::SYS_madvise, "madvise", Object::Named),
    (libc::SYS_msync, "msync", Object::Named),
    (libc::SYS_clone, "clone", Object::Named),
    (libc::SYS_execve, "execve", Object::Named),
    (libc::SYS_sync, "sync", Object::Named),
    (libc::SYS_membarrier, "membarrier", Object::Named),
    (libc::SYS_sched_yield, "sched_yield", Object::Named),
    (libc::SYS_mlock, "mlock", Object::Named),
    (libc::SYS_mlockall, "mlockall", Object::Named),
    (libc::SYS_mremap, "mremap", Object::Named),
    (libc::SYS_brk, "brk", Object::Named),
    (libc::SYS_newfstatat, "newfstatat", Object::Named),
    (libc::SYS_statx, "statx", Object::Named),
    (libc::SYS_openat2, "openat2", Object::Named),
    (libc::SYS_unlinkat, "unlinkat", Object::Named),
    (libc::SYS_renameat2, "renameat2", Object::Named),
    (libc::SYS_mount, "mount", Object::Named),
    (libc::SYS_umount2, "umount2", Object::Named),
    (libc::SYS_clone3, "clone3", Object::Named),
    (libc::SYS_kill, "kill", Object::Named),
    (libc::SYS_perf_event_open, "perf_event_open", Object::Named),
    (libc::SYS_bpf, "bpf", Object::Named),
    (
        libc::SYS_process_vm_readv,
        "process_vm_readv",
        Object::Named,
    ),
    (libc::SYS_exit_group, "exit_group", Object::Named),
];

/// The name of a system call, and what it waits for.
pub(crate) fn described(number: u64) -> (String, Object) {
    let known = CALLS
        .iter()
        .chain(OLDER_CALLS)
        .find(|call| u64::try_from(call.0) == Ok(number));
    match known {
        Some((_, name, object)) => ((*name).to_owned(), *object),
        None => (format!("system call {number}"), Object::Named),
    }
}

#[cfg(test)]
mod tests {
    use super::{Object, SystemCall, described};

    #[test]
    fn lines_of_threads() {
        let line = "202 0x7f1 0x80 0x2 0x0 0x0 0xffffffff 0x7ffe10 0x7f22\n";
        let call = SystemCall::parse(line).unwrap();
        assert_eq!(call.number, Some(202));
        assert_eq!(call.arguments, [0x7f1, 0x80, 2, 0, 0, 0xffff_ffff]);
        assert_eq!((call.stack_pointer, call.instruction), (0x7ffe10, 0x7f22));
        let fault = SystemCall::parse("-1 0x7ffe10 0x7f22").unwrap();
        assert_eq!((fault.number, fault.instruction), (None, 0x7f22));
        for line in ["running", "", "202 0x1 0x2", "x 1 2 3 4 5 6 7 8"] {
            assert_eq!(SystemCall::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn numbers_without_a_name_say_themselves() {
        let futex = libc::SYS_futex as u64;
        assert_eq!(described(futex), ("futex".to_owned(), Object::Futex));
        assert_eq!(
            described(9999),
            ("system call 9999".to_owned(), Object::Named)
        );
    }
}
