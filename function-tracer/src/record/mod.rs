//! From a call to its records: entry → open call → return. The straight line is assembly, in the
//! processor's folder; everything else comes here.

mod by_type;
pub(crate) mod callbacks;
pub(crate) mod nodes;
pub(crate) mod open_calls;
mod own_stack;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod profile_tables;
pub(crate) mod slow_way;
pub(crate) mod triggers;
pub(crate) mod types;
pub(crate) mod unwritten;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{MEASURED_SITE, Stub, call_measured, has_shadow_stack};
