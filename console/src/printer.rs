//! Lines of a command that must go on also without a reader: a thread prints, and what finds
//! no room is counted.

use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread;
use std::time::Duration;

use crate::note;
use crate::units::counted;

/// Lines that wait to be printed; more are counted.
const WAITING_MAX: usize = 1000;

/// Prints on a thread of its own.
#[derive(Debug)]
pub struct Printer {
    lines: SyncSender<Line>,
    left_out: u64,
    /// Closed when everything is printed.
    done: Receiver<()>,
}

/// What is printed, and how.
type Line = Box<dyn FnOnce() + Send>;

impl Printer {
    /// A printer with its thread.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start() -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel::<Line>(WAITING_MAX);
        let (printing, done) = channel::<()>();
        let print = move || {
            let _printing = printing;
            waiting.into_iter().for_each(|line| line());
        };
        thread::Builder::new()
            .name("printer".to_owned())
            .spawn(print)?;
        Ok(Self {
            lines,
            left_out: 0,
            done,
        })
    }

    /// Has this print something. It never waits.
    pub fn print(&mut self, line: impl FnOnce() + Send + 'static) {
        if self.left_out > 0 {
            let text = format!(
                "{} left out, they had no reader",
                counted(self.left_out, "line")
            );
            match self.lines.try_send(Box::new(move || note(&text))) {
                Ok(()) => self.left_out = 0,
                Err(_) => return self.left_out += 1,
            }
        }
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Box::new(line)) {
            self.left_out += 1;
        }
    }

    /// Ends when everything is printed, or after this time.
    pub fn end_within(self, time: Duration) {
        let Self { lines, done, .. } = self;
        drop(lines);
        let ended = done.recv_timeout(time);
        debug_assert!(matches!(
            ended,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected)
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn lines_without_a_reader_are_counted_and_hold_nothing_up() {
        let mut printer = Printer::start().unwrap();
        let (go, wait) = mpsc::channel::<()>();
        let (said, heard) = mpsc::channel();
        let (begun, has_begun) = mpsc::channel();
        printer.print(move || {
            begun.send(()).unwrap();
            assert!(wait.recv().is_err());
        });
        // The printer's thread has taken it: from now on no line does.
        has_begun.recv().unwrap();
        for n in 0..3 * WAITING_MAX {
            let said = said.clone();
            printer.print(move || said.send(n).unwrap());
        }
        assert!(printer.left_out >= WAITING_MAX as u64);
        drop(go);
        assert_eq!(heard.recv(), Ok(0));
        drop(said);
        printer.end_within(Duration::from_secs(60));
        let printed = heard.iter().count();
        assert!(
            (WAITING_MAX - 2..=WAITING_MAX).contains(&printed),
            "{printed}"
        );
    }
}
