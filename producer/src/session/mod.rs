//! The running session: started once, found by every thread, never taken away.
//!
//! The files in the order of a session's life:
//!
//! 1. it is started: `life` checks the options of `crate::setup` and calls the others, at the end
//!    as well;
//! 2. its file is made: `create`, by the plan of `layout`, with the space that `memory` allows, the
//!    facts that `attributes` gathers and the clock of `other_copies` in this process; `core` is
//!    the session that this makes, `off_note` says why there is none;
//! 3. its types are described: `known` finds them, `registry` numbers and enables them, `schema`
//!    writes them; `registration` brings those that come while the program runs;
//! 4. its helper thread prepares rings and answers tools: `control`, for libraries by `helper`; `pin`
//!    keeps its code mapped;
//! 5. its threads get rings: `warm` holds those that wait, `attach` hands them out at the first
//!    event, with `held_signals`, `retry` says when to try again, `handler` what a signal handler may
//!    do, `reserve` gets a record in a ring that is there, `waits` says whether a thread waits for room
//!    in a full one, with what `wait_marks` and `own_files` know; `wait_record` tells of waits;
//!    `span_gate` knows what is recorded inside certain spans only;
//! 6. it is asked what was written: `sample`;
//! 7. its process forks and ends: `process`; with which status: `exit_status`.

// 1. Started, and closed.
mod life;

// 2. The file.
mod attributes;
mod core;
mod create;
mod layout;
mod memory;
mod off_note;
mod other_copies;

// 3. Types.
mod known;
mod registration;
mod registry;
mod schema;

// 4. The helper thread.
mod control;
pub mod helper;
mod pin;

// 5. Threads.
mod attach;
mod handler;
mod held_signals;
mod own_files;
mod reserve;
mod retry;
pub(crate) mod span_gate;
mod wait_marks;
mod wait_record;
mod waits;
mod warm;

// 6. What was written.
mod own_records;
mod own_types;
mod sample;

// 7. Forks and the end.
mod exit_status;
mod process;
pub mod raw;

#[cfg(feature = "tracing")]
pub(crate) use attach::payload_words_max;
pub(crate) use attach::{attach_for_span, reserve_slow, reserve_slow_from};
pub use attach::{attach_thread, does_own_work};
#[cfg(feature = "tracing")]
pub(crate) use core::count_lost;
pub(crate) use core::{now, now_at_once};
pub use life::Session;
pub(crate) use life::{start, start_from_env};
pub(crate) use pin::{is_in_program, keep_mapped};
#[cfg(feature = "tracing")]
pub(crate) use registration::register_once;
pub(crate) use registration::{is_first, register_dynamic};
pub(crate) use registry::{answer_requests, append_written};
#[cfg(feature = "tracing")]
pub(crate) use registry::{bits_wanted, level_max, listen};
pub use ringmark_ring::own_maps::at as mapping_at;
pub use sample::{RingCounts, without_trace};
pub use waits::Stack;
