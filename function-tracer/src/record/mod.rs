//! From a call to its records, in the order of the way:
//!
//! 1. The straight line (`x86_64`): a site's pad jumps to a stub, which does all that follows where
//!    the case is a common one, and calls nothing.
//! 2. [`site_tables`]: the function type of the site, and where its function has its return
//!    address.
//! 3. [`slow_way`]: everything that the stubs leave to Rust. It asks [`call_plan`] what is wanted
//!    of the type's calls, runs [`trigger_actions`] and [`callbacks`], and opens the call.
//! 4. [`open_calls`]: the calls of a thread that will be seen to return, with their return
//!    addresses. Their memory is a node of [`nodes`], for the stack that [`own_stack`] finds.
//! 5. [`count_calls`]: for profiles, in place of a record, into the tables of [`profile_tables`];
//!    [`profile_sum`] adds up those of all threads.
//! 6. The record, in the thread's ring. [`unwritten`] counts calls that leave none.
//! 7. The return, by another stub or the slow way: the call is closed, its end recorded.
//!
//! [`by_type`] is what several of these keep by the number of a function type.

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
