//! Ctrl-C once: finish the trace file. Twice: end now.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

use super::given::was_ignored;

/// How often the first signal is looked for, and how long a signal may come again and count as the
/// same: `timeout` signals its child, then its process group.
pub const ONE_SIGNAL: Duration = Duration::from_millis(50);

/// The signals that came since [`Signals::watch`]; by default none comes.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    /// Set by the first signal.
    pub stop: Arc<AtomicBool>,
    /// Set by SIGHUP where that asks for new options.
    pub reload: Arc<AtomicBool>,
    /// Number of the last signal; 0: none came.
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Watches SIGINT, SIGTERM and SIGHUP from now on: the first sets the flag, one that comes a
    /// moment later ends this process with 128 + its number. A signal that was ignored at the start
    /// stays ignored, for us and for programs that are started from here: `nohup` and the background
    /// jobs of scripts rely on that.
    ///
    /// # Errors
    /// Those of `sigaction` and of making a thread.
    pub fn watch() -> io::Result<Self> {
        Self::watch_for(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// The same, but SIGHUP asks for new options, also where it was ignored at the start.
    ///
    /// # Errors
    /// As [`Signals::watch`].
    pub fn watch_and_reload() -> io::Result<Self> {
        let signals = Self::watch_for(&[SIGINT, SIGTERM])?;
        flag::register(SIGHUP, signals.reload.clone())?;
        Ok(signals)
    }

    fn watch_for(ends: &[i32]) -> io::Result<Self> {
        let signals = Self::default();
        let armed = Arc::new(AtomicBool::new(false));
        for signal in ends.iter().copied().filter(|one| !was_ignored(*one)) {
            flag::register_conditional_shutdown(signal, 128 + signal, armed.clone())?;
            flag::register_usize(signal, signals.number.clone(), signal as usize)?;
            flag::register(signal, signals.stop.clone())?;
        }
        arm_later(signals.stop.clone(), armed)?;
        Ok(signals)
    }

    /// Notes a signal that asks for the end.
    pub fn note(&self, signal: i32) {
        self.number.store(signal as usize, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Number of the signal that asked for the end, if one did.
    pub fn received(&self) -> Option<i32> {
        let number = self.number.load(Ordering::Relaxed) as i32;
        (number != 0).then_some(number)
    }
}

/// A flag that each SIGUSR1 sets: the user asks for what the rings hold.
///
/// # Errors
/// Those of `sigaction`.
pub fn upload_requests() -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::default();
    flag::register(SIGUSR1, Arc::clone(&asked))?;
    Ok(asked)
}

/// Sets `armed` a moment after the first signal.
fn arm_later(stop: Arc<AtomicBool>, armed: Arc<AtomicBool>) -> io::Result<()> {
    let wait = move || {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(ONE_SIGNAL);
        }
        thread::sleep(ONE_SIGNAL);
        armed.store(true, Ordering::Relaxed);
    };
    thread::Builder::new().spawn(wait).map(drop)
}
