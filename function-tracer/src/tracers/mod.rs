//! Function tracers. Each has a name, a number, a kind, a selection of functions and options.
//!
//! From the selections of all tracers follows what is wanted of each patch site, from that its
//! function type and its stub. A site that no tracer wants is disabled. A call that several tracers
//! want is recorded once, with a type that names them.
//!
//! 1. `registry`: the tracers of the process, by name. `error`: why a change was not made.
//! 2. `tracer`: one tracer. [`selection`]: its functions. `call_selection`: which of their calls.
//!    `triggers`: what starts and stops it, `trigger_places`: where.
//! 3. `wants`: what all tracers want of each function, and the stub that does it.
//! 4. `schema`: numbers of function types, and schema entries; `numbered_modules`: numbers of
//!    functions. `profile_cells`: numbers for profile tracers.
//! 5. `traced_sites`: how patch sites change, in the order of `switch_order`; `site_uses`: what they
//!    do now.
//! 6. `budget`: what tracing costs, and which functions a budget does not allow. `call_costs`:
//!    measures a call.
//!
//! For example, `graph` selects `pool::*`, and the callback tracer `mine` selects `pool::work`:
//!
//! - The site of `pool::work` gets a type that names both tracers. Its plan records entry and exit
//!   and calls the callback; no stub does that alone, so its calls take the slow way.
//! - The site of `pool::idle` gets a type that names `graph` only, and the stub for plain calls.
//! - When `mine` stops, `pool::work` gets the type and the stub of a function that only `graph`
//!   wants. The site stays enabled; only the word of its target changes.
//! - When `graph` stops, both sites are disabled.

#[cfg(target_arch = "x86_64")]
mod budget;
#[cfg(target_arch = "x86_64")]
mod call_costs;
#[cfg(target_arch = "x86_64")]
mod call_selection;
#[cfg(target_arch = "x86_64")]
mod error;
#[cfg(target_arch = "x86_64")]
mod numbered_modules;
#[cfg(target_arch = "x86_64")]
mod profile_cells;
#[cfg(target_arch = "x86_64")]
mod registry;
#[cfg(target_arch = "x86_64")]
mod schema;
pub mod selection;
#[cfg(target_arch = "x86_64")]
mod site_uses;
#[cfg(target_arch = "x86_64")]
mod switch_order;
#[cfg(target_arch = "x86_64")]
mod traced_sites;
#[cfg(target_arch = "x86_64")]
mod tracer;
#[cfg(target_arch = "x86_64")]
mod trigger_places;
mod triggers;
#[cfg(target_arch = "x86_64")]
mod wants;

#[cfg(target_arch = "x86_64")]
pub use call_selection::CallSelection;
#[cfg(target_arch = "x86_64")]
pub use error::TracerError;
#[cfg(target_arch = "x86_64")]
pub(crate) use profile_cells::{CellOfFunction, Names};
#[cfg(target_arch = "x86_64")]
pub use registry::Tracers;
pub use ringmark_format::function::TracerKind;
pub(crate) use selection::candidate;
pub use selection::{Candidate, PatternError, PatternFault, Selection, Syntax};
#[cfg(target_arch = "x86_64")]
pub use traced_sites::{ChangeOutcome, RefusedFunction};
#[cfg(target_arch = "x86_64")]
pub use tracer::{GivenUp, Tracer, TracerOptions};
pub use triggers::{Action, Moment, Trigger, TriggerError, TriggerFault};
