//! Why the bridge was not installed.

use std::fmt;

/// What could not be installed. A session that the environment asks for runs all the same.
///
/// ```
/// use ringmark::tracing::{InitError, init};
///
/// assert!(init().is_ok(), "the first bridge");
/// let error = init().unwrap_err();
/// assert_eq!(error, InitError::SubscriberIsSet);
/// assert!(error.to_string().contains("add ringmark::tracing::layer() to it"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitError {
    /// The program has a global subscriber for `tracing` already.
    SubscriberIsSet,
    /// The program has a logger for `log` already; `tracing` is bridged.
    LoggerIsSet,
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SubscriberIsSet => "tracing: the program has set another global subscriber; add ringmark::tracing::layer() to it",
            Self::LoggerIsSet => "log: another logger is set already",
        })
    }
}

impl std::error::Error for InitError {}
