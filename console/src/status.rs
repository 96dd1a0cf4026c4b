//! How a command that runs on is doing, as JSON: each second on standard output, at the end in a
//! file.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;

use crate::json::Line;

/// How often an object is printed.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// Objects on standard output, one each second.
#[derive(Debug)]
pub struct Lines {
    is_on: bool,
    next: Instant,
}

impl Lines {
    /// Prints if `wanted`.
    pub fn new(wanted: bool) -> Self {
        Self {
            is_on: wanted,
            next: Instant::now() + SHOW_EVERY,
        }
    }

    /// Prints what `status` gives, if it is time for that.
    pub fn show(&mut self, status: impl FnOnce() -> Value) {
        if self.is_due() {
            self.print(&status());
        }
    }

    /// Whether it is time for the next one.
    pub fn is_due(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.is_on && now >= self.next;
        if is_due {
            self.next = now + SHOW_EVERY;
        }
        is_due
    }

    /// Prints one now. A pipe that was closed ends the printing, not the command.
    pub fn print(&mut self, status: &Value) {
        self.is_on &= print(status);
    }
}

/// Prints an object now; returns whether there is a reader.
pub fn print(status: &Value) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", Line(status.clone()))
        .and_then(|()| out.flush())
        .is_ok()
}

/// Writes the file of `--status-file`, if one is wanted.
///
/// # Errors
/// It cannot be written.
pub fn write_line(path: Option<&Path>, status: &Value) -> anyhow::Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    fs::write(path, format!("{}\n", Line(status.clone())))
        .with_context(|| path.display().to_string())
}
