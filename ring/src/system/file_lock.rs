//! File locks on one byte: a record lock says "this process lives", a lock of the open file
//! excludes a second consumer or controller.
//!
//! | lock | belongs to | ends at | used for |
//! | --- | --- | --- | --- |
//! | record lock, `F_SETLK` | the process | its death, `exec`, any close of the file | liveness |
//! | lock of the open file, `F_OFD_SETLK` | the open file, shared by fork | the last close of it | one consumer, one controller, one remover |
//!
//! They live in different places of the kernel but exclude each other on the same byte, so each use
//! has a byte of its own. All calls return at once: no lock is ever waited for. The kernel gives
//! them back when a process is killed, which no lock file would.
//!
//! Every call passes an open descriptor and a whole `flock` that lives until the call returns: that
//! is reason 1 of the SAFETY lines here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use crate::system::raw;

/// Takes this process's record lock on the byte at `at`. The kernel gives it back at death, at
/// exec, and when the process closes any descriptor of the file.
///
/// # Errors
/// `EAGAIN` or `EACCES`: another process holds it; see [`is_taken`].
pub fn hold_record(file: &File, at: u64) -> io::Result<()> {
    set(file, libc::F_SETLK, at, libc::F_WRLCK)
}

/// The other process that holds a lock on the byte at `at`, as this process's pid namespace
/// numbers it: 0 if it is out of sight, -1 if an open file holds the lock and no process.
#[must_use]
pub fn holder(file: &File, at: u64) -> Option<i32> {
    let mut range = byte_range(at, libc::F_WRLCK);
    // SAFETY: reason 1: the kernel writes one `flock`.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut range) };
    let is_held = done == 0 && range.l_type != libc::F_UNLCK as libc::c_short;
    is_held.then_some(range.l_pid)
}

/// Takes the exclusive lock of this open file on the byte at `at`; it ends with the file.
/// The file must be open for writing.
///
/// # Errors
/// `EAGAIN` or `EACCES`: another open file holds it; see [`is_taken`].
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

/// Whether an error of taking a lock means that it is held, and not that locks do not work here.
#[must_use]
pub fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES))
}

/// Whether a process, or another open file, holds a lock on the byte at `at`. Past the C library: a
/// producer asks between two events of its program.
#[must_use]
pub fn is_held_by_other_file(file: &File, at: u64) -> bool {
    let mut range = byte_range(at, libc::F_WRLCK);
    let place = (&raw mut range).expose_provenance() as u64;
    let arguments = [file.as_raw_fd() as u64, libc::F_OFD_GETLK as u64, place, 0];
    // SAFETY: reason 1: the kernel writes one `flock`.
    let done = unsafe { raw::syscall(libc::SYS_fcntl, arguments) };
    done == 0 && range.l_type != libc::F_UNLCK as libc::c_short
}

/// Gives the lock of [`hold_exclusive`] back.
///
/// # Errors
/// The error of `fcntl`.
pub fn release_exclusive(file: &File, at: u64) -> io::Result<()> {
    set(file, libc::F_OFD_SETLK, at, libc::F_UNLCK)
}

fn set(file: &File, command: libc::c_int, at: u64, kind: libc::c_int) -> io::Result<()> {
    let range = byte_range(at, kind);
    // SAFETY: reason 1: the kernel reads one `flock`.
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
