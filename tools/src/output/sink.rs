//! Standard output: buffered, through `$PAGER` on a terminal, in colour if that is wanted.

use std::env;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

/// Standard output of a command.
pub(crate) enum Sink {
    /// Written as it is.
    Direct(BufWriter<Stdout>),
    /// Written through a pager, which is waited for in the end.
    Paged(Option<BufWriter<ChildStdin>>, Child),
}

impl Sink {
    /// Standard output as it is.
    pub(crate) fn direct() -> Self {
        Self::Direct(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    /// Through `$PAGER` if standard output is a terminal and `$PAGER` is set and starts.
    pub(crate) fn paged() -> Self {
        start_pager().unwrap_or_else(Self::direct)
    }

    /// Writes what is buffered and waits for the pager.
    ///
    /// # Errors
    /// Those of writing; a closed pipe is [`io::ErrorKind::BrokenPipe`].
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}

fn start_pager() -> Option<Sink> {
    let pager = env::var("PAGER").ok().filter(|p| !p.trim().is_empty())?;
    if !io::stdout().is_terminal() {
        return None;
    }
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if env::var_os("LESS").is_none() {
        // Quit if it fits one screen, keep colours, leave the screen as it is.
        command.env("LESS", "FRX");
    }
    // Ctrl-C is for the pager, which ends when it wants; we end with it. The flag is never read.
    signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::default()).ok()?;
    let mut child = command.spawn().ok()?;
    let stdin = child.stdin.take()?;
    let stdin = BufWriter::with_capacity(64 << 10, stdin);
    Some(Sink::Paged(Some(stdin), child))
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Direct(out) => out.write(bytes),
            Self::Paged(Some(out), _) => out.write(bytes),
            Self::Paged(None, _) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Direct(out) => out.flush(),
            Self::Paged(Some(out), _) => out.flush(),
            Self::Paged(None, _) => Ok(()),
        }
    }
}

impl Drop for Sink {
    /// The pager owns the terminal until it ends, however this command ends.
    fn drop(&mut self) {
        if let Self::Paged(out, child) = self {
            drop(out.take());
            let _ = child.wait();
        }
    }
}

/// Escape sequences of colours for a terminal; empty strings elsewhere and with `NO_COLOR`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    on: bool,
}

impl Style {
    /// Colours if standard output is a terminal and `NO_COLOR` is not set.
    pub(crate) fn detect() -> Self {
        let refused = env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|t| t == "dumb");
        Self {
            on: !refused && !dumb && io::stdout().is_terminal(),
        }
    }

    /// No colours.
    pub(crate) const fn none() -> Self {
        Self { on: false }
    }

    fn code(self, code: &'static str) -> &'static str {
        if self.on { code } else { "" }
    }

    /// Begins a heading.
    pub(crate) fn heading(self) -> &'static str {
        self.code("\x1b[1m")
    }

    /// Begins what is lost, damaged or dead.
    pub(crate) fn alarm(self) -> &'static str {
        self.code("\x1b[31m")
    }

    /// Ends a heading or an alarm.
    pub(crate) fn plain(self) -> &'static str {
        self.code("\x1b[0m")
    }

    /// Whether colours are used.
    pub(crate) fn is_on(self) -> bool {
        self.on
    }
}
