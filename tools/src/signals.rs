//! Ctrl-C once: finish the dump. Twice: end now.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Signals that were met since [`Signals::watch`].
#[derive(Debug, Clone)]
pub(crate) struct Signals {
    /// A signal asked for the end.
    pub(crate) stop: Arc<AtomicBool>,
    /// Number of the signal, 0 before.
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// From now on SIGINT, SIGTERM and SIGHUP set a flag; a second one ends the program with
    /// 128 + its number.
    ///
    /// # Errors
    /// What `sigaction` said.
    pub(crate) fn watch() -> io::Result<Self> {
        let signals = Self {
            stop: Arc::default(),
            number: Arc::default(),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the first signal finds the flag unset and sets it afterwards.
            flag::register_conditional_shutdown(signal, 128 + signal, signals.stop.clone())?;
            flag::register_usize(signal, signals.number.clone(), signal as usize)?;
            flag::register(signal, signals.stop.clone())?;
        }
        Ok(signals)
    }

    /// The signal that asked for the end, if one did.
    pub(crate) fn received(&self) -> Option<i32> {
        let number = self.number.load(Ordering::Relaxed) as i32;
        (number != 0).then_some(number)
    }
}
