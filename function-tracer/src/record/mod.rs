//! From a call to its records: entry → open call → return. The straight line is assembly, in the
//! processor's folder; everything else comes here.

mod by_type;
pub(crate) mod call_plan;
pub(crate) mod callbacks;
mod count_calls;
pub(crate) mod nodes;
pub(crate) mod open_calls;
mod own_stack;
pub(crate) mod profile_sum;
pub(crate) mod profile_tables;
pub(crate) mod site_tables;
pub(crate) mod slow_way;
pub(crate) mod trigger_actions;
pub(crate) mod unwritten;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{MEASURED_SITE, Stub, call_measured, has_shadow_stack};
