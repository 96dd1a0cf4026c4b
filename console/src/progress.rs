//! The line on a terminal that says how far a long command is.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line changes.
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// One line of standard error, if that is a terminal; it is replaced as often as it is shown.
#[derive(Debug)]
pub struct ProgressLine {
    is_on: bool,
    shown_at: Instant,
    is_shown: bool,
}

impl ProgressLine {
    /// A line that is shown if `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self {
            is_on: wanted && io::stderr().is_terminal(),
            shown_at: Instant::now(),
            is_shown: false,
        }
    }

    /// The time since the line was shown, if it is time for the next one.
    pub fn due(&self) -> Option<Duration> {
        let since = self.shown_at.elapsed();
        (self.is_on && since >= SHOW_EVERY).then_some(since)
    }

    /// Replaces the line; what does not fit the terminal is cut.
    pub fn show(&mut self, text: &str) {
        self.clear();
        put(&text.chars().take(columns()).collect::<String>());
        self.shown_at = Instant::now();
        self.is_shown = true;
    }

    /// Takes the line away, before other text is printed.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            put("\r\x1b[2K");
        }
    }
}

/// Writes to the terminal. A terminal that is gone is no reason to fail.
fn put(text: &str) {
    let mut terminal = io::stderr();
    let _ = terminal.write_all(text.as_bytes());
    let _ = terminal.flush();
}

/// Columns for the text and the terminal's `^C`: a line that wraps cannot be cleared.
fn columns() -> usize {
    let columns = super::columns(io::stderr()).unwrap_or(80);
    columns.saturating_sub(3)
}
