//! Standard output: buffered, through the pager on a terminal, in its width; or standard error.

use std::io::{self, BufWriter, Stderr, Stdout, Write};
use std::process::{Child, ChildStdin};

use crate::pager;
use crate::width::wrap;

/// Where a command prints.
pub struct Sink {
    out: Out,
    /// Lines that are wider than the terminal are wrapped.
    wrapped: Option<Wrapped>,
}

enum Out {
    /// Written as it is.
    Direct(BufWriter<Stdout>),
    /// To standard error.
    Error(BufWriter<Stderr>),
    /// Written through a pager, which is waited for in the end.
    Paged(Option<BufWriter<ChildStdin>>, Child),
}

/// Lines on their way to a terminal.
struct Wrapped {
    columns: usize,
    /// The beginning of a line whose end was not written yet.
    line: Vec<u8>,
}

impl Sink {
    /// Standard output as it is.
    pub fn direct() -> Self {
        Self::of(Out::Direct(BufWriter::with_capacity(
            64 << 10,
            io::stdout(),
        )))
    }

    /// Standard error: standard output belongs to the program that the command has started.
    pub fn error() -> Self {
        Self::of(Out::Error(BufWriter::new(io::stderr())))
    }

    /// Through the pager if standard output is a terminal and there is one.
    pub fn paged() -> Self {
        let Some((child, stdin)) = pager::start() else {
            return Self::direct();
        };
        let stdin = BufWriter::with_capacity(64 << 10, stdin);
        Self::of(Out::Paged(Some(stdin), child))
    }

    const fn of(out: Out) -> Self {
        Self { out, wrapped: None }
    }

    /// The same with lines of at most that many columns; `None`: of any.
    pub fn within(mut self, columns: Option<usize>) -> Self {
        self.wrapped = columns.map(|columns| Wrapped {
            columns,
            line: Vec::new(),
        });
        self
    }

    /// Writes what is buffered and waits for the pager.
    ///
    /// # Errors
    /// Those of writing; a closed pipe is [`io::ErrorKind::BrokenPipe`].
    pub fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}

impl Wrapped {
    /// The line so far, in lines of the right width.
    fn take(&mut self) -> Vec<u8> {
        let bytes = std::mem::take(&mut self.line);
        // A character has at least as many bytes as columns.
        if bytes.len() <= self.columns {
            return bytes;
        }
        let text = String::from_utf8_lossy(&bytes);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut lines = wrap(line, self.columns);
        if line.len() < text.len() {
            lines.push('\n');
        }
        lines.into_bytes()
    }
}

impl Write for Sink {
    // Each event of `cat` comes through here, out of another crate.
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(wrapped) = &mut self.wrapped else {
            return self.out.write(bytes);
        };
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            wrapped.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.out.write_all(&wrapped.take())?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(wrapped) = &mut self.wrapped {
            self.out.write_all(&wrapped.take())?;
        }
        self.out.flush()
    }
}

impl Write for Out {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Direct(out) => out.write(bytes),
            Self::Error(out) => out.write(bytes),
            Self::Paged(Some(out), _) => out.write(bytes),
            Self::Paged(None, _) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Direct(out) => out.flush(),
            Self::Error(out) => out.flush(),
            Self::Paged(Some(out), _) => out.flush(),
            Self::Paged(None, _) => Ok(()),
        }
    }
}

impl Drop for Out {
    /// The pager owns the terminal until it ends, however this command ends.
    fn drop(&mut self) {
        if let Self::Paged(out, child) = self {
            drop(out.take());
            let _ = child.wait();
        }
    }
}
