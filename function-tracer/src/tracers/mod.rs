//! Tracers: each has a name, a number, a selection of functions and what it wants to know of them.
//!
//! selections → what is wanted of each site → its type → its stub. A site that no tracer wants does
//! nothing; one that several want is recorded once, under a type that says who they are.
//!
//! - `registry`: the tracers of the process, and what is asked of them.
//! - `tracer`, with [`selection`], `triggers` and `error`: one tracer, and what it wants.
//! - `wants`: what all together want of each function; `stubs`: which stub does that.
//! - `schema`, with `profile_cells`: the numbers of what is wanted, and what they mean.
//! - `traced_sites`, in the order of `switch_order`: what sites do now, and how that changes.
//! - `budget`, with `call_costs`: what tracing costs, and which functions a budget does not allow.

mod budget;
mod call_costs;
mod error;
mod profile_cells;
mod registry;
mod schema;
pub mod selection;
mod switch_order;
mod traced_sites;
mod tracer;
mod triggers;
mod wants;

pub use error::TracerError;
pub(crate) use profile_cells::Names;
pub use registry::Tracers;
pub use ringmark_format::function::TracerKind;
pub(crate) use selection::candidate;
pub use selection::{Candidate, PatternError, Selection, Syntax};
pub use traced_sites::{ChangeOutcome, RefusedFunction};
pub use tracer::{GivenUp, Tracer, TracerOptions};
pub use triggers::{Action, Moment, Trigger, TriggerError};
