//! Why a function tracer was not changed.

use ringmark_format::function::TRACERS_MAX;

use super::triggers::PAUSING_MAX;
use crate::record::thread_memory::LANES;

/// Why a function tracer was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TracerError {
    /// There is no tracer, or no default one.
    #[error("no tracer available")]
    NoTracer,
    /// No tracer has this name.
    #[error("no tracer {name:?}; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of all tracers.
        known: String,
    },
    /// A tracer with this name exists.
    #[error("there is a tracer {name:?} already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// All numbers are used; a removed tracer's number is not used again.
    #[error("{TRACERS_MAX} tracers were registered, no more fit")]
    TooMany,
    /// Too many tracers can pause: each function would need too many types.
    #[error("{PAUSING_MAX} tracers have triggers that start or stop them, no more can")]
    TooManyPausing,
    /// Too many profile tracers: each needs a lane in every thread's table.
    #[error("{LANES} profile tracers are there, no more fit: remove one")]
    TooManyProfiles,
    /// The tracer is of another kind.
    #[error("the tracer {name:?} is of kind {kind}")]
    OtherKind {
        /// The tracer's name.
        name: String,
        /// The tracer's kind.
        kind: &'static str,
    },
    /// The table of types could not be made.
    #[error("no memory for the table of sites")]
    NoMemory,
}
