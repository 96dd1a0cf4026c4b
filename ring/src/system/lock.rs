//! File locks on one byte: a record lock says "this process lives" (not inherited by fork), a lock
//! of the open file excludes a second consumer or controller.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Takes this process's record lock on the byte at `at`. The kernel gives it back at death, at
/// exec, and when the process closes any descriptor of the file.
///
/// # Errors
/// `EAGAIN` or `EACCES`: somebody else holds it.
pub fn hold_record(file: &File, at: u64) -> io::Result<()> {
    set(file, libc::F_SETLK, at, libc::F_WRLCK)
}

/// The other process that holds a lock on the byte at `at`, as this process's pid namespace
/// numbers it: 0 if it is out of sight, -1 if an open file holds the lock and no process.
#[must_use]
pub fn holder(file: &File, at: u64) -> Option<i32> {
    let mut range = byte_range(at, libc::F_WRLCK);
    // SAFETY: the descriptor is open and the kernel writes one `flock` to the pointer.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut range) };
    let is_held = done == 0 && range.l_type != libc::F_UNLCK as libc::c_short;
    is_held.then_some(range.l_pid)
}

/// Takes the exclusive lock of this open file on the byte at `at`; it ends with the file.
/// The file must be open for writing.
///
/// # Errors
/// `EAGAIN` or `EACCES`: somebody else holds it.
pub fn hold_exclusive(file: &File, at: u64) -> io::Result<()> {
    set(file, libc::F_OFD_SETLK, at, libc::F_WRLCK)
}

/// Takes a shared lock of this open file on the byte at `at`; it ends with the file. The file must
/// be open for reading.
///
/// # Errors
/// As [`hold_exclusive`].
pub fn hold_shared(file: &File, at: u64) -> io::Result<()> {
    set(file, libc::F_OFD_SETLK, at, libc::F_RDLCK)
}

/// Whether an error of taking a lock says that somebody else holds it.
#[must_use]
pub fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

/// Whether a process, or another open file, holds a lock on the byte at `at`.
#[must_use]
pub fn is_held_by_other_file(file: &File, at: u64) -> bool {
    let mut range = byte_range(at, libc::F_WRLCK);
    // SAFETY: the descriptor is open and the kernel writes one `flock` to the pointer.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut range) };
    done == 0 && range.l_type != libc::F_UNLCK as libc::c_short
}

/// Gives the lock of [`hold_exclusive`] back.
///
/// # Errors
/// What `fcntl` said.
pub fn release_exclusive(file: &File, at: u64) -> io::Result<()> {
    set(file, libc::F_OFD_SETLK, at, libc::F_UNLCK)
}

fn set(file: &File, command: libc::c_int, at: u64, kind: libc::c_int) -> io::Result<()> {
    let range = byte_range(at, kind);
    // SAFETY: the descriptor is open and the pointer is to a whole `flock` that the kernel reads.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const range) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn byte_range(at: u64, kind: libc::c_int) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: at as libc::off_t,
        l_len: 1,
        l_pid: 0,
    }
}
