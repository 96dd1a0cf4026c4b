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
    /// Calls are selected by their ends, and the tracer acts where they begin.
    #[error(
        "a tracer of kind {kind} acts where a call begins: expected kind graph or function for calls \
         by their duration (--min-time) or by what they lead to (--caller)"
    )]
    ActsAtEntry {
        /// The tracer's kind.
        kind: &'static str,
    },
    /// Calls outside a function are not followed, so no trigger can act at their ends.
    #[error(
        "calls outside the functions of --inside are not followed to their end: expected triggers at \
         entries only"
    )]
    ExitOutside,
    /// Two tracers are on, and one of them selects calls.
    #[error(
        "the tracer {selecting:?} selects calls by those around them (--max-depth, --inside, --caller), \
         which only one tracer can that is on alone: stop {beside:?} first, or select functions only"
    )]
    SelectsAlone {
        /// The tracer that selects calls.
        selecting: String,
        /// The one that is on already.
        beside: String,
    },
    /// The processor checks return addresses, so the ends of calls are not seen.
    #[error(
        "the processor checks return addresses here, so no call is followed to its end: calls cannot \
         be selected by --max-depth, --inside or --caller"
    )]
    NoLevels,
    /// The table of types could not be made.
    #[error("no memory for the table of sites")]
    NoMemory,
}
