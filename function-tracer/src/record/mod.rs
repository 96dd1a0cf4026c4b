//! From a call to its records, in the order of a call:
//!
//! 1. `x86_64/`: the straight line. A trampoline jumps to a stub there, which does all that follows
//!    in the common case and calls nothing.
//! 2. [`site_tables`]: the function type of each patch site, and where the function of a site
//!    inside it has its return address.
//! 3. [`slow_way`]: everything that the stubs leave to Rust. [`call_records`]: the records that it
//!    writes.
//! 4. [`call_plan`]: what is done with the calls of a function type. [`trigger_actions`]: what
//!    triggers do at an entry or exit. [`callbacks`]: the functions of callback tracers.
//! 5. [`open_calls`]: opens and closes a thread's calls and keeps their return addresses.
//!    [`nodes`]: the list of all threads' memory, whose layout is in [`thread_memory`].
//!    [`own_memory`]: maps all of it. [`own_stack`]: finds where the thread's stack lies. [`alternate_stack`]: tells that of signal
//!    handlers from others. [`true_returns`]: what unwinders read. [`elsewhere`]: the open calls on
//!    other stacks, which [`calls_elsewhere`] opens and ends.
//! 6. [`count_calls`]: counts calls for profiles, in place of a record, in [`profile_tables`].
//!    [`profile_sum`]: adds up the tables of all threads.
//! 7. The record goes into the thread's ring, by the stub or by [`slow_way`]. [`unwritten`] counts
//!    calls that leave no record.
//! 8. At the return another stub, or the slow way, closes the call and records its end.
//!
//! [`levels`]: which calls are selected by the open calls around them, which the stubs decide, too.
//! [`least_time`]: which are too short for all tracers.
//!
//! [`own_calls`]: functions that none of this may have traced.
//!
//! [`by_type`] holds tables by the number of a function type, for several of these.
//!
//! # Invariants
//!
//! `SAFETY` lines of this folder cite these as *record invariant n*.
//!
//! 1. Memory that a pointer here was published for is never unmapped or freed: nodes, tables,
//!    chunks, plans, callbacks. Such a pointer is null or valid while the process lives.
//! 2. New mappings are zero, and zero is a valid value of every type here: all consist of words.
//! 3. A new anonymous mapping overlaps no other memory.
//! 4. Blocks, nodes, places and tables are accessed through atomics and shared references only.
//! 5. A node lies `FRONT` bytes before its first place; its places follow it in the same mapping.
//! 6. The `top` of a block with a node lies after that node's sentinels and not after its last
//!    place.
//! 7. The slot of an open call is a word on the stack of the thread that opened it. The stack is
//!    mapped while that thread runs, and only that thread writes the word.
//! 8. A stub hands Rust the stack laid out as the frame type says, and nothing else refers to it.
//! 9. Stubs keep to the rules for targets. They are part of this library, which is never unloaded.
//! 10. `fs:0` holds the thread pointer, and `ringmark_open_calls` lies at a fixed distance from it
//!     (initial-exec model).
//! 11. A slot lies on a stack, in a page of the system that can be read. All aligned words of that page
//!     can.

mod alternate_stack;
mod by_type;
pub(crate) mod call_plan;
mod call_records;
pub(crate) mod callbacks;
mod calls_elsewhere;
mod count_calls;
mod elsewhere;
pub(crate) mod least_time;
pub(crate) mod levels;
pub(crate) mod nodes;
pub(crate) mod open_calls;
pub(crate) mod own_calls;
mod own_memory;
mod own_stack;
pub(crate) mod profile_sum;
pub(crate) mod profile_tables;
pub(crate) mod site_tables;
pub(crate) mod slow_way;
pub(crate) mod thread_memory;
pub(crate) mod trigger_actions;
mod true_returns;
pub(crate) mod unwritten;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{MEASURED_SITE, Stub, call_measured, find_in_library, has_shadow_stack};
