//! The system calls that loading needs, and those that the function tracer makes afterwards on its
//! own thread and on the program's: what a seccomp filter is asked about.
//!
//! `tests/attach/attach_tool/filters.rs` runs all of it under a filter that kills for any other call.

use crate::filter::Asked;

/// What becomes of the loading where a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It does not work.
    Always,
    /// It does not work where the library or the ring file has to be a memfd.
    Memfd,
    /// It goes on: there is another way, or it was for more comfort.
    Never,
    /// It goes on where it fails with `ENOSYS` and `clone` is allowed.
    UnlessClone,
}

/// A system call with the arguments that are known before: flags and the like.
#[derive(Debug, Clone, Copy)]
pub struct SystemCall {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: &'static str,
    /// Index and value of each known argument.
    pub known: &'static [(usize, u64)],
    /// Whether it must be allowed.
    pub need: Need,
}

impl SystemCall {
    pub(crate) fn asked(&self) -> Asked {
        let mut arguments = [None; 6];
        for (index, value) in self.known {
            arguments[*index] = Some(*value);
        }
        Asked {
            number: self.number,
            arguments,
        }
    }
}

const fn call(
    number: u32,
    name: &'static str,
    known: &'static [(usize, u64)],
    need: Need,
) -> SystemCall {
    SystemCall {
        number,
        name,
        known,
        need,
    }
}

use Need::{Always, Memfd, Never, UnlessClone};

/// Flags of the C library's `pthread_create`.
pub(crate) const CLONE: SystemCall = call(56, "clone", &[(0, 0x3d_0f00)], Always);

/// All of them.
#[rustfmt::skip]
pub const SYSTEM_CALLS: &[SystemCall] = &[
    // The code that is put into the process.
    call(14, "rt_sigprocmask", &[(0, 2), (3, 8)], Always),
    call(9, "mmap", &[(2, 3), (3, 0x22)], Always),
    call(271, "ppoll", &[(0, 0), (1, 0), (3, 0), (4, 8)], Always),
    call(11, "munmap", &[], Always),
    call(319, "memfd_create", &[(1, 1)], Memfd),
    call(8, "lseek", &[(1, 0), (2, 2)], Memfd),
    // The loader: files read and mapped, relocated data made read-only.
    call(257, "openat", &[], Always),
    call(0, "read", &[], Always),
    call(17, "pread64", &[], Always),
    call(5, "fstat", &[], Always),
    call(262, "newfstatat", &[], Always),
    call(3, "close", &[], Always),
    call(9, "mmap", &[(2, 1), (3, 0x802)], Always),
    call(9, "mmap", &[(2, 1), (3, 0x812)], Always),
    call(9, "mmap", &[(2, 5), (3, 0x812)], Always),
    call(9, "mmap", &[(2, 3), (3, 0x812)], Always),
    call(9, "mmap", &[(2, 3), (3, 0x32)], Always),
    call(9, "mmap", &[(2, 1), (3, 2)], Never),
    call(10, "mprotect", &[(2, 1)], Always),
    // Threads of the tracer, and their memory.
    call(435, "clone3", &[], UnlessClone),
    call(9, "mmap", &[(2, 0), (3, 0x2_0022)], Always),
    call(9, "mmap", &[(2, 0), (3, 0x4022)], Always),
    call(10, "mprotect", &[(2, 3)], Always),
    call(14, "rt_sigprocmask", &[], Always),
    call(202, "futex", &[], Always),
    call(60, "exit", &[], Always),
    call(273, "set_robust_list", &[], Never),
    call(334, "rseq", &[], Never),
    call(157, "prctl", &[(0, 15)], Never),
    call(157, "prctl", &[(0, 16)], Never),
    call(157, "prctl", &[(0, 0x4155_5856)], Never),
    call(144, "sched_setscheduler", &[(0, 0), (1, 3)], Never),
    call(145, "sched_getscheduler", &[], Never),
    call(204, "sched_getaffinity", &[], Never),
    call(24, "sched_yield", &[], Never),
    call(35, "nanosleep", &[], Never),
    call(230, "clock_nanosleep", &[], Never),
    call(219, "restart_syscall", &[], Never),
    call(12, "brk", &[], Never),
    call(25, "mremap", &[], Never),
    call(28, "madvise", &[(2, 4)], Never),
    // The session: its ring file, and what it says of the process.
    call(319, "memfd_create", &[(1, 3)], Memfd),
    call(77, "ftruncate", &[], Always),
    call(285, "fallocate", &[], Never),
    call(18, "pwrite64", &[], Always),
    call(9, "mmap", &[(2, 3), (3, 1)], Always),
    call(28, "madvise", &[(2, 18)], Never),
    call(28, "madvise", &[(2, 9)], Never),
    call(28, "madvise", &[(2, 22)], Never),
    call(28, "madvise", &[(2, 23)], Never),
    call(72, "fcntl", &[(1, 5)], Never),
    call(72, "fcntl", &[(1, 6)], Never),
    call(72, "fcntl", &[(1, 36)], Never),
    call(72, "fcntl", &[(1, 37)], Never),
    call(72, "fcntl", &[(1, 1030)], Never),
    call(72, "fcntl", &[(1, 1033)], Memfd),
    call(39, "getpid", &[], Always),
    call(186, "gettid", &[], Always),
    call(107, "geteuid", &[], Always),
    call(110, "getppid", &[], Never),
    call(63, "uname", &[], Never),
    call(89, "readlink", &[], Never),
    call(318, "getrandom", &[], Never),
    call(228, "clock_gettime", &[], Never),
    call(302, "prlimit64", &[], Never),
    call(332, "statx", &[], Never),
    call(4, "stat", &[], Never),
    call(6, "lstat", &[], Never),
    call(137, "statfs", &[], Never),
    call(138, "fstatfs", &[], Never),
    call(217, "getdents64", &[], Never),
    call(2, "open", &[], Never),
    call(1, "write", &[], Never),
    call(83, "mkdir", &[], Never),
    call(90, "chmod", &[], Never),
    call(91, "fchmod", &[], Never),
    call(93, "fchown", &[], Never),
    call(82, "rename", &[], Never),
    call(316, "renameat2", &[], Never),
    call(87, "unlink", &[], Never),
    call(16, "ioctl", &[(1, 0xc068_6611)], Never),
    call(13, "rt_sigaction", &[], Never),
    call(131, "sigaltstack", &[], Never),
    // Patch sites: read from files, written in memory.
    call(8, "lseek", &[], Never),
    call(324, "membarrier", &[(0, 32)], Always),
    call(324, "membarrier", &[(0, 64)], Always),
    call(10, "mprotect", &[(2, 7)], Never),
    call(10, "mprotect", &[(2, 5)], Never),
    call(10, "mprotect", &[(2, 0)], Never),
    call(9, "mmap", &[(2, 0), (3, 0x4022)], Always),
    call(9, "mmap", &[(2, 0), (3, 0x10_4022)], Never),
    call(9, "mmap", &[(2, 5), (3, 0x12)], Never),
    call(158, "arch_prctl", &[], Never),
];
