//! The straight line of a call on x86-64, in the order of a call:
//!
//! 1. `stub`: which code a trampoline jumps to.
//! 2. `call_stubs`, `inside_stub`, `profile_stubs` and `timed_stubs`: that code. `handler_safe`: the same counter
//!    instructions for Rust. `select_stubs`: what comes before it where calls are selected.
//! 3. `into_slow_way`: leads from a stub into Rust. `vectors`: saves the vector registers for it.
//! 4. `return_pads`: where functions on other stacks return to. `second_frames`: what unwinders find there in
//!    programs with libunwind.
//! 5. `stub_frames`: the stack that Rust finds. `processor`: what Rust asks the processor
//!    and the kernel.
//!
//! `measured_function` is a function with a patch site whose calls show what a stub costs.
//!
//! | stub | entered at | what it does |
//! | --- | --- | --- |
//! | `ringmark_enter` | an entry | opens the call, replaces its return address, records the entry |
//! | `ringmark_enter_inside` | a site inside a function | the same |
//! | `ringmark_enter_sleds` | an entry whose exits are sites | the same, and leaves the return address |
//! | `ringmark_enter_called` | an entry | records the entry with caller and CPU |
//! | `ringmark_enter_any` | an entry | takes the slow way |
//! | `ringmark_enter_timed`, `_leading` | an entry | opens the call and notes its tick; its return closes it unless it may be recorded |
//! | `ringmark_select_*` | an entry | ends here unless the call is selected, else goes on to one of the above |
//! | `ringmark_leave_sled` | an exit in the place of a return | closes the call, records its end |
//! | `ringmark_leave_called` | an exit in front of a return | the same |
//! | `ringmark_leave_tail` | an exit in front of a jump | the same, without a return value |
//! | `ringmark_return` | a replaced return address | the same, and returns to the true address |
//! | `ringmark_return_pads` | one on another stack | the same by the slow way |

mod call_stubs;
mod handler_safe;
mod inside_stub;
mod into_slow_way;
mod measured_function;
mod processor;
mod profile_stubs;
mod return_pads;
mod second_frames;
mod select_stubs;
mod stub;
mod stub_frames;
mod timed_stubs;
mod vectors;

pub(crate) use handler_safe::{add, raise};
pub(crate) use into_slow_way::find_in_library;
pub(in crate::record) use into_slow_way::{get_thread_id, set_cancel_state};
pub(crate) use measured_function::{MEASURED_SITE, call_measured};
pub(crate) use processor::{alternate_stack, current_cpu, has_shadow_stack, trap};
pub(crate) use stub::Stub;
pub(crate) use stub_frames::{EntryFrame, ExitFrame, SledFrame, return_address};
