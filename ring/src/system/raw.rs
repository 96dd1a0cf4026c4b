//! System calls past the C library.
//!
//! A program may define functions by the names that the library has, such as `clock_gettime`, and
//! have them traced. Code that records a call of such a function must not call it again: it would
//! record that call, too, without an end. A system call that is an instruction of our own cannot be
//! replaced by a program.
//!
//! No `errno` is touched, so a signal handler need not save it.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::arch;

/// Makes a system call of at most four arguments; those that it does not have are ignored.
///
/// Returns the kernel's result: from -4095 to -1 it is an error, `errno` negated.
///
/// # Safety
/// As the call requires: an argument that is a pointer must be good for what the call does with it.
#[must_use]
pub unsafe fn syscall(number: i64, arguments: [u64; 4]) -> i64 {
    // SAFETY: the caller keeps to the rules of the call.
    unsafe { arch::syscall(number, arguments) }
}

/// Whether this program runs with more rights than its caller: by a setuid bit, capabilities of its file, or
/// a change of its security context.
#[must_use]
pub fn is_secure() -> bool {
    // SAFETY: no pointer is given.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Bytes of a page of this system. The C library is asked at most once, where the processor leaves a choice: a thread that
/// records comes here, too.
#[must_use]
pub fn page_size() -> usize {
    static FOUND: AtomicUsize = AtomicUsize::new(arch::PAGE_BYTES);
    match FOUND.load(Relaxed) {
        0 => {
            // SAFETY: no pointer is given.
            let found = unsafe { libc::getauxval(libc::AT_PAGESZ) as usize };
            FOUND.store(found, Relaxed);
            found
        }
        found => found,
    }
}

/// `PIDFD_GET_INFO` of Linux 6.13 and later, for a struct of 64 bytes.
const PIDFD_GET_INFO: u64 = 0xC040_FF0B;
/// The kernel is asked for the exit status, and says that it gave it (Linux 6.15 and later).
const PIDFD_INFO_EXIT: u64 = 1 << 3;

/// The wait status of the process of a pidfd, from when its parent has waited for it. `None`: not
/// yet, or this kernel does not tell.
#[must_use]
pub fn pidfd_exit_status(pidfd: BorrowedFd<'_>) -> Option<i32> {
    // `struct pidfd_info`: the mask first, the status in the last 4 bytes.
    let mut info = [PIDFD_INFO_EXIT, 0, 0, 0, 0, 0, 0, 0];
    let arguments = [
        pidfd.as_raw_fd() as u64,
        PIDFD_GET_INFO,
        info.as_mut_ptr() as u64,
        0,
    ];
    // SAFETY: the kernel writes at most the 64 bytes that the request's number states.
    let result = unsafe { syscall(libc::SYS_ioctl, arguments) };
    (result == 0 && info[0] & PIDFD_INFO_EXIT != 0).then_some((info[7] >> 32) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "no system calls there")]
    fn what_the_kernel_says_comes_back() {
        // SAFETY: no arguments.
        let own = unsafe { syscall(libc::SYS_getpid, [0; 4]) };
        assert_eq!(own, i64::from(std::process::id()));
        // SAFETY: closes nothing.
        let error = unsafe { syscall(libc::SYS_close, [u64::MAX, 0, 0, 0]) };
        assert_eq!(error, -i64::from(libc::EBADF));
    }
}
