//! Signals to this process while it records a program: they are meant for the program, which gets them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use ringmark_console::given::was_ignored;
use ringmark_console::signals::{ONE_SIGNAL, Signals};
use ringmark_console::taken_signals::{Taken, TakenSignals};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use signal_hook::consts::{
    SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGURG, SIGUSR1, SIGUSR2,
    SIGVTALRM, SIGWINCH,
};
use signal_hook::low_level::exit;

/// Signals after which a recording ends, when its program has ended.
const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// The others that are passed on, but those with a number that has no name here: SIGSTKFLT, SIGPWR and the
/// real-time signals, of which the C library has the first two for itself. Not here: what a fault of this
/// process itself brings, SIGCHLD, SIGPIPE, limits of this process, and what stops and continues it.
const OTHERS: [i32; 10] = [
    SIGABRT, SIGALRM, SIGIO, SIGPROF, SIGQUIT, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH,
];
const SIGSTKFLT: i32 = 16;
const SIGPWR: i32 = 30;
const REAL_TIME: std::ops::RangeInclusive<i32> = 34..=64;

/// The pid of a program that was not waited for yet: no other process has this number.
pub(super) type RunningPid = Arc<Mutex<Option<u32>>>;

/// Signals that wait for the program to be started.
#[derive(Debug)]
pub(super) struct PassedSignals(TakenSignals);

impl PassedSignals {
    /// Takes the signals from now on. The program starts with the mask that this process was given.
    ///
    /// # Errors
    /// Those of `signalfd`.
    pub(super) fn take() -> io::Result<Self> {
        let all = ENDS.into_iter().chain(OTHERS).chain([SIGSTKFLT, SIGPWR]);
        TakenSignals::take(all.chain(REAL_TIME)).map(Self)
    }

    /// Passes them on from now on. What is returned says that the recording is to end with the program, or
    /// to end, if the program has; another such signal ends this process.
    ///
    /// # Errors
    /// Those of making a thread.
    pub(super) fn pass_to(self, program: RunningPid) -> io::Result<Signals> {
        let signals = Signals::default();
        let noted = signals.clone();
        let pass = move || self.pass(&program, &noted);
        thread::Builder::new().spawn(pass)?;
        Ok(signals)
    }

    fn pass(&self, program: &RunningPid, signals: &Signals) {
        // The last one that ends, and when it came.
        let mut last: Option<(i32, Instant)> = None;
        loop {
            let one = match self.0.next() {
                Ok(one) => one,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if !ENDS.contains(&one.signal) {
                pass_on(program, &one);
                continue;
            }
            let is_late = |(_, at): &(i32, Instant)| at.elapsed() >= ONE_SIGNAL;
            // `timeout` signals its child, then its process group.
            if last.is_some_and(|last| last.0 == one.signal && !is_late(&last)) {
                continue;
            }
            let runs = pass_on(program, &one);
            if !was_ignored(one.signal) {
                if !runs && last.as_ref().is_some_and(is_late) {
                    exit(128 + one.signal);
                }
                signals.note(one.signal);
            }
            last = Some((one.signal, Instant::now()));
        }
    }
}

/// Passes a signal on, unless the program has got it from its terminal. Returns whether the program runs.
fn pass_on(program: &RunningPid, one: &Taken) -> bool {
    let program = program.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(pid) = program.filter(|pid| is_running(*pid)) else {
        return false;
    };
    if !one.is_from_terminal() {
        one.pass_to(pid);
    }
    true
}

/// Whether a child that was not waited for has not ended.
fn is_running(pid: u32) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let pid = Pid::from_raw(pid.cast_signed());
    pid.is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
}
