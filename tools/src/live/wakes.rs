//! What ends a wait: a key, a signal, a request that was done, the end of a process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::{flag, low_level};

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caught {
    /// The program is to end.
    End,
    /// Ctrl-Z: it is to stand still.
    Stop,
    /// It goes on.
    GoOn,
    /// The terminal has another size.
    Resized,
}

const SIGNALS: [(i32, Caught); 6] = [
    (SIGTERM, Caught::End),
    (SIGINT, Caught::End),
    (SIGHUP, Caught::End),
    (SIGTSTP, Caught::Stop),
    (SIGCONT, Caught::GoOn),
    (SIGWINCH, Caught::Resized),
];

/// The signals that came, and a pipe that tells of them.
pub(super) struct Wakes {
    flags: Vec<(Caught, Arc<AtomicBool>)>,
    reading: UnixStream,
    writing: UnixStream,
}

impl Wakes {
    /// Watches signals from now on.
    ///
    /// # Errors
    /// Those of `sigaction` and of making a pipe.
    pub(super) fn watch() -> io::Result<Self> {
        let (reading, writing) = UnixStream::pair()?;
        reading.set_nonblocking(true)?;
        let mut flags = Vec::new();
        for (signal, meaning) in SIGNALS {
            let came = Arc::new(AtomicBool::new(false));
            flag::register(signal, came.clone())?;
            low_level::pipe::register(signal, writing.try_clone()?)?;
            flags.push((meaning, came));
        }
        Ok(Self {
            flags,
            reading,
            writing,
        })
    }

    /// Something that ends a wait when it is written to.
    ///
    /// # Errors
    /// There are no more descriptors.
    pub(super) fn bell(&self) -> io::Result<UnixStream> {
        self.writing.try_clone()
    }

    /// A signal that came since the last call.
    pub(super) fn caught(&self) -> Option<Caught> {
        let mut came = self.flags.iter();
        let found = came.find(|(_, came)| came.swap(false, Ordering::Relaxed));
        found.map(|(meaning, _)| *meaning)
    }

    /// Waits for this time, or until there is a key, a signal, or one of `others` can be read. Returns
    /// whether the terminal is still there.
    pub(super) fn wait(
        &self,
        keys: BorrowedFd<'_>,
        others: &[BorrowedFd<'_>],
        time: Duration,
    ) -> bool {
        let all = [keys, self.reading.as_fd()];
        let all = all.iter().chain(others);
        let mut fds: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let time = Timespec {
            tv_sec: time.as_secs() as i64,
            tv_nsec: time.subsec_nanos().into(),
        };
        // A signal ends it, too; its flag says so.
        let _ = poll(&mut fds, Some(&time));
        let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
        let is_there = !fds[0].revents().intersects(gone);
        let mut bytes = [0; 64];
        while matches!(io::Read::read(&mut &self.reading, &mut bytes), Ok(1..)) {}
        is_there
    }
}
