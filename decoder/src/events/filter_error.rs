//! Why a filter could not be read.

use std::error::Error;
use std::fmt;

/// A part of a filter that could not be read, and what is understood there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError {
    /// Which part of the filter: "time", "thread", …
    pub what: &'static str,
    /// The text, as given.
    pub text: String,
    /// Where in the text the wrong part begins, in bytes; `None`: all of it is wrong.
    pub at: Option<usize>,
    /// What is understood.
    pub expected: &'static str,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            text,
            at,
            expected,
        } = self;
        write!(f, "{what} {text:?}: ")?;
        if let Some((before, rest)) = at.and_then(|at| text.split_at_checked(at)) {
            let place = before.chars().count() + 1;
            match rest {
                "" => write!(f, "it ends at character {place}, ")?,
                rest => write!(f, "found {rest:?} at character {place}, ")?,
            }
        }
        write!(f, "expected {expected}")
    }
}

impl Error for FilterError {}
