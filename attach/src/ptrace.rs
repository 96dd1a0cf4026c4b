//! One thread of the target, stopped for some microseconds. All of this belongs to the thread that
//! seized it: when that ends, however it ends, the kernel lets go of everything it held.

use std::io;
use std::mem;
use std::ptr;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use libc::user_regs_struct as Registers;

use crate::filter::Instruction;

/// How long a thread may take to stop. One that waits for a disk or for its `vfork` child does
/// not stop at all.
const STOP_LIMIT: Duration = Duration::from_millis(100);
/// A running thread stops in this time, as a rule.
const SPIN: Duration = Duration::from_micros(20);
const GLANCE: Duration = Duration::from_micros(5);

/// A thread that is stopped, and goes on when this is dropped.
#[derive(Debug)]
pub(crate) struct Stopped {
    tid: i32,
    since: Instant,
    is_let_go: bool,
}

/// Why a thread was not stopped.
#[derive(Debug)]
pub(crate) enum NotStopped {
    /// It has ended.
    Gone,
    /// It does not come back from the kernel.
    Stuck,
    /// It is stopped by a signal, for long.
    Halted,
    /// The kernel said no.
    Refused(io::Error),
}

fn request(what: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<usize> {
    // SAFETY: the requests made here pass numbers, or places that their callers own.
    match unsafe { libc::ptrace(what, tid, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result as usize),
    }
}

/// The thread's state, if it has changed.
fn poll(tid: i32) -> io::Result<Option<i32>> {
    let mut status = 0;
    let flags = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
    // SAFETY: writes one status.
    match unsafe { libc::waitpid(tid, &raw mut status, flags) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(status)),
    }
}

/// Stops one thread. All others go on.
pub(crate) fn stop(tid: i32) -> Result<Stopped, NotStopped> {
    ask_to_stop(tid)?.wait(STOP_LIMIT)
}

/// A thread that will stop soon, as a rule.
#[derive(Debug)]
pub(crate) struct AskedToStop {
    tid: i32,
    since: Instant,
}

/// Asks a thread to stop, and does not wait for it.
pub(crate) fn ask_to_stop(tid: i32) -> Result<AskedToStop, NotStopped> {
    request(libc::PTRACE_SEIZE, tid, 0, 0).map_err(refused)?;
    let since = Instant::now();
    request(libc::PTRACE_INTERRUPT, tid, 0, 0).map_err(refused)?;
    Ok(AskedToStop { tid, since })
}

impl AskedToStop {
    /// Waits until it has stopped, or has not within `limit`.
    pub(crate) fn wait(self, limit: Duration) -> Result<Stopped, NotStopped> {
        let Self { tid, since } = self;
        let mut stopped = Stopped {
            tid,
            since,
            is_let_go: true,
        };
        while since.elapsed() < limit {
            let Some(status) = poll(tid).map_err(refused)? else {
                // Sleeping, not yielding: who wakes up runs before the target's busy threads.
                if since.elapsed() > SPIN {
                    thread::sleep(GLANCE);
                }
                continue;
            };
            if !libc::WIFSTOPPED(status) {
                return Err(NotStopped::Gone);
            }
            stopped.is_let_go = false;
            match (libc::WSTOPSIG(status), status >> 16) {
                (libc::SIGTRAP, libc::PTRACE_EVENT_STOP) => return Ok(stopped),
                (_, libc::PTRACE_EVENT_STOP) => return Err(NotStopped::Halted),
                (signal, _) => {
                    request(libc::PTRACE_CONT, tid, 0, signal as usize).map_err(refused)?;
                    stopped.is_let_go = true;
                }
            }
        }
        Err(NotStopped::Stuck)
    }
}

/// What became of a thread that did not stop in time.
#[derive(Debug)]
pub(crate) enum Late {
    NotYet,
    Gone,
    Stopped(Stopped),
}

/// Looks whether such a thread has stopped since.
pub(crate) fn look_late(tid: i32) -> Late {
    match poll(tid) {
        Ok(None) => Late::NotYet,
        Ok(Some(status)) if libc::WIFSTOPPED(status) && status >> 16 == 0 => {
            let signal = libc::WSTOPSIG(status);
            // It has been killed if this fails.
            let _ = request(libc::PTRACE_DETACH, tid, 0, signal as usize);
            Late::Gone
        }
        Ok(Some(status)) if libc::WIFSTOPPED(status) => Late::Stopped(Stopped {
            tid,
            since: Instant::now(),
            is_let_go: false,
        }),
        _ => Late::Gone,
    }
}

fn refused(error: io::Error) -> NotStopped {
    match error.raw_os_error() {
        Some(libc::ESRCH | libc::ECHILD) => NotStopped::Gone,
        _ => NotStopped::Refused(error),
    }
}

impl Stopped {
    pub(crate) fn registers(&self) -> io::Result<Registers> {
        // SAFETY: zeros are valid registers.
        let mut registers: Registers = unsafe { mem::zeroed() };
        let place = &raw mut registers;
        request(libc::PTRACE_GETREGS, self.tid, 0, place as usize)?;
        Ok(registers)
    }

    pub(crate) fn set_registers(&self, registers: &Registers) -> io::Result<()> {
        let place = ptr::from_ref(registers);
        request(libc::PTRACE_SETREGS, self.tid, 0, place as usize).map(drop)
    }

    /// The programs of the thread's seccomp filters, the first that it put on first.
    pub(crate) fn filters(&self) -> io::Result<Vec<Vec<Instruction>>> {
        const GET_FILTER: libc::c_uint = 0x420c;
        let mut filters = Vec::new();
        loop {
            let index = filters.len();
            let length = match request(GET_FILTER, self.tid, index, 0) {
                Ok(length) => length,
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(filters),
                Err(error) => return Err(error),
            };
            let mut program = vec![Instruction::default(); length];
            request(GET_FILTER, self.tid, index, program.as_mut_ptr() as usize)?;
            filters.push(program);
        }
    }

    /// Where the thread's restartable sequences are registered, if they are.
    pub(crate) fn sequences(&self) -> Option<u64> {
        const GET_RSEQ_CONFIGURATION: libc::c_uint = 0x420f;
        let mut about = [0_u64; 3];
        let (length, place) = (mem::size_of_val(&about), about.as_mut_ptr());
        request(GET_RSEQ_CONFIGURATION, self.tid, length, place as usize).ok()?;
        Some(about[0]).filter(|at| *at != 0)
    }

    /// Lets it go on and says how long it was stopped.
    pub(crate) fn let_go(mut self) -> io::Result<Duration> {
        self.is_let_go = true;
        request(libc::PTRACE_DETACH, self.tid, 0, 0)?;
        Ok(self.since.elapsed())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if !self.is_let_go {
            // It has been killed if this fails.
            let _ = request(libc::PTRACE_DETACH, self.tid, 0, 0);
        }
    }
}
