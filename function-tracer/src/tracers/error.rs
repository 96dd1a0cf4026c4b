//! Why something was not done.

use ringmark_format::function::TRACERS_MAX;

use super::triggers::PAUSING_MAX;
use crate::record::thread_memory::LANES;

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TracerError {
    /// There is no tracer at all, or none that is the default.
    #[error("no tracer available")]
    NoTracer,
    /// No tracer of this name.
    #[error("no tracer {name:?}; there are: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names of all.
        known: String,
    },
    /// A second tracer of this name.
    #[error("there is a tracer {name:?} already")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Numbers are not used again.
    #[error("{TRACERS_MAX} tracers were registered, no more fit")]
    TooMany,
    /// Each function would need too many types.
    #[error("{PAUSING_MAX} tracers have triggers that start or stop them, no more can")]
    TooManyPausing,
    /// Each profile tracer needs a place in every thread's table.
    #[error("{LANES} profile tracers are there, no more fit: remove one")]
    TooManyProfiles,
    /// It is of another kind.
    #[error("the tracer {name:?} is of kind {kind}")]
    OtherKind {
        /// Its name.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
    /// The table of types could not be made.
    #[error("no memory for the table of sites")]
    NoMemory,
}
