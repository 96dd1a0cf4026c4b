//! Exit codes, and errors that carry one.

use std::fmt;
use std::io;

use ringmark_decoder::store::Unreadable;
use ringmark_reader::ReaderError;

use crate::terminal::{note, printable};

/// The exit code of a command, 0 to 255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exit(pub u8);

impl Exit {
    /// Everything is fine.
    pub const FINE: Self = Self(0);
    /// Done, but events were lost or damaged.
    pub const LOST: Self = Self(1);
    /// The command line is wrong.
    pub const USAGE: Self = Self(2);
    /// The input cannot be read.
    pub const UNREADABLE: Self = Self(3);
    /// The target is not there, or we are not permitted.
    pub const NO_TARGET: Self = Self(4);

    /// Each with what it means, for the reference.
    pub const ALL: [(Self, &str); 5] = [
        (Self::FINE, "done"),
        (Self::LOST, "done, but events were lost or damaged"),
        (Self::USAGE, "wrong usage"),
        (Self::UNREADABLE, "the input cannot be read"),
        (Self::NO_TARGET, "the target is not there, or not permitted"),
    ];

    /// [`Exit::LOST`] if something was lost or damaged.
    pub fn lost_if(lost: bool) -> Self {
        if lost { Self::LOST } else { Self::FINE }
    }
}

/// An error with its exit code. The text says what is wrong and where, what was found, and what
/// is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// How the command ends.
    pub exit: Exit,
    /// What a person reads.
    pub text: String,
}

impl Failure {
    /// An error of the command line, [`Exit::USAGE`].
    pub fn usage(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            exit: Exit::USAGE,
            text,
        }
    }

    /// An error of the input, [`Exit::UNREADABLE`].
    pub fn unreadable(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            exit: Exit::UNREADABLE,
            text,
        }
    }

    /// An error of the target, [`Exit::NO_TARGET`].
    pub fn no_target(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            exit: Exit::NO_TARGET,
            text,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<Unreadable> for Failure {
    fn from(Unreadable(text): Unreadable) -> Self {
        Self::unreadable(text)
    }
}

/// Whether the reader of our output went away. A pipe such as `| head` ends commands this way.
fn closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let direct = cause.downcast_ref::<io::Error>();
        direct.is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Prints on standard error what went wrong, and returns the exit code.
pub fn report(error: &anyhow::Error) -> Exit {
    if closed_pipe(error) {
        return Exit::FINE;
    }
    note(&printable(&text(error)));
    exit_of(error)
}

/// The error and its causes in one line. Texts that hold those of their causes are not repeated.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = text + colon + &cause;
        }
    }
    text
}

fn exit_of(error: &anyhow::Error) -> Exit {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.exit;
    }
    match error.downcast_ref::<ReaderError>() {
        Some(
            ReaderError::Output { .. }
            | ReaderError::NextFile { .. }
            // Something may have been done.
            | ReaderError::Unfinished { .. },
        ) => Exit::LOST,
        Some(ReaderError::RingFile { .. } | ReaderError::Truncated { .. }) => Exit::UNREADABLE,
        Some(_) => Exit::NO_TARGET,
        None => Exit::UNREADABLE,
    }
}
