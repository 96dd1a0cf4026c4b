//! Signals that are read, not handled: whoever sent them is known, and nothing is interrupted.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

use super::given;

/// A signal that was sent to this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub signal: i32,
    /// How it was sent, as in `siginfo_t`.
    code: i32,
    /// The value that came with it.
    value: u64,
}

/// Signals that terminals send to all processes of a group.
const OF_TERMINALS: [c_int; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGWINCH];

impl Taken {
    /// Whether a terminal sent it, and so to the programs of our group as well.
    #[must_use]
    pub fn is_from_terminal(&self) -> bool {
        self.code == libc::SI_KERNEL && OF_TERMINALS.contains(&self.signal)
    }

    /// Sends it on, with its value if it has one. The process may have ended, but not been waited for.
    pub fn pass_to(&self, pid: u32) {
        let pid = pid.cast_signed();
        if self.code == libc::SI_QUEUE {
            let value = libc::sigval {
                sival_ptr: ptr::without_provenance_mut(self.value as usize),
            };
            // SAFETY: the value is a number for the receiver, and leads to no memory of ours.
            unsafe { libc::sigqueue(pid, self.signal, value) };
        } else {
            // SAFETY: a call that uses no memory.
            unsafe { libc::kill(pid, self.signal) };
        }
    }
}

/// Signals that wait until they are read.
#[derive(Debug)]
pub struct TakenSignals(OwnedFd);

impl TakenSignals {
    /// Takes these signals from now on, whatever was to be done on them. To be called before other threads are
    /// made: they would handle them.
    ///
    /// # Errors
    /// Those of `signalfd`.
    pub fn take(signals: impl IntoIterator<Item = c_int>) -> io::Result<Self> {
        let set = given::set_of(signals);
        // SAFETY: a set that was filled in; threads that are made from here on have the mask, too.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()) };
        // SAFETY: the same set.
        let descriptor = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC) };
        if descriptor == -1 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was made just now, and nobody else knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Waits for the next one.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn next(&self) -> io::Result<Taken> {
        let mut about = MaybeUninit::<libc::signalfd_siginfo>::zeroed();
        let bytes = size_of::<libc::signalfd_siginfo>();
        // SAFETY: memory of ours, as long as is said.
        let read = unsafe { libc::read(self.0.as_raw_fd(), about.as_mut_ptr().cast(), bytes) };
        if read < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: numbers, which zeros are valid for.
        let about = unsafe { about.assume_init() };
        Ok(Taken {
            signal: about.ssi_signo.cast_signed(),
            code: about.ssi_code,
            value: about.ssi_ptr,
        })
    }
}
