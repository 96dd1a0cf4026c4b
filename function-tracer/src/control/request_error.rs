//! Why a request was not done.

use ringmark_format::tracer_text::WrongLine;

use crate::tracers::{PatternError, TracerError, TriggerError};

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The function tracers refuse it.
    #[error(transparent)]
    Tracer(#[from] TracerError),
    /// A pattern of function names cannot be understood.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// A trigger cannot be understood.
    #[error(transparent)]
    Trigger(#[from] TriggerError),
    /// A line cannot be understood.
    #[error(transparent)]
    Text(#[from] WrongLine),
    /// After the change the function tracer would select no function.
    #[error("{found:?} matches no function; the filter stays {stays:?}")]
    NoMatch {
        /// The filter that was requested.
        found: String,
        /// The filter that stays.
        stays: String,
    },
    /// Sites are given and their module is not.
    #[error("no module was named for these sites: expected module=BASE BUILD-ID")]
    NoModule,
    /// Sites are given for another module than the one that is loaded.
    #[error("these sites are of another file: {0}")]
    Module(String),
    /// A start names no functions, and none were named before.
    #[error("no functions were named: give filter=PATTERN, or filter=* for all")]
    NoFilter,
}
