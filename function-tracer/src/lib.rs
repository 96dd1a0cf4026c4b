//! Ringmark's function tracer. It finds the patch sites of a running process: places that its
//! compiler left for calls. It enables and disables them while all threads run, and records the
//! calls.
//!
//! A *function tracer* has a name and a kind: `function` records entries with their callers,
//! `graph` entries and exits, `profile` counts calls and their times, `callback` calls a function
//! of the program.
//!
//! # The way of a switch
//!
//! From a request to the bytes of patch sites:
//!
//! ```text
//! request → tracers → wants → plan → batch → patch
//! ```
//!
//! 1. `control.rs` reads a request of the command line, or of the program itself, and answers it.
//! 2. `tracers/registry.rs` finds the function tracer by its name and changes it.
//! 3. `tracers/selection.rs` says which functions that tracer selects.
//! 4. `tracers/wants.rs` joins what all tracers want of a function, and chooses the stub for it.
//! 5. `tracers/traced_sites.rs` compares that with what each site does now.
//! 6. `engine.rs` knows the modules with their sites, which `sites/` finds, and takes targets.
//! 7. `patch/prepare.rs` plans which bytes of which sites change.
//! 8. `patch/trampolines.rs` makes the code that those sites call.
//! 9. `patch/batch.rs` does the steps of many sites together.
//! 10. `patch/code_writes.rs` writes the bytes.
//!
//! # The way of a call
//!
//! From an enabled patch site to its records:
//!
//! ```text
//! patch site → trampoline → stub → open call → record → function
//!                            ↓ ↑
//!                          slow way
//!
//! function → stub → open call closed → record → caller
//! ```
//!
//! 1. `arch/x86_64/trampoline_code.rs`: the site calls its trampoline, which pushes the site's
//!    number and jumps to a stub.
//! 2. `record/x86_64/call_stubs.rs`: the stub is a straight line of assembly without calls.
//! 3. `record/site_tables.rs`: the stub finds the function type of the site by its number.
//! 4. `record/x86_64/into_slow_way.rs`: whatever is not the common case leaves the stub here.
//! 5. `record/slow_way.rs`: Rust does the rest. Such cases are a thread's first call, tail calls,
//!    calls that were unwound, a full page, and all that a tracer wants beyond entry and exit.
//! 6. `record/call_plan.rs`: what is wanted of the calls of a function type.
//! 7. `record/open_calls.rs`: the call is noted in the thread's own memory, and its return address
//!    replaced. Where the exits of a function are sites its return address stays.
//! 8. The record of the entry goes into the thread's ring (crate `ringmark`), and the function
//!    runs.
//! 9. The function returns to another stub of `call_stubs.rs`. It finds the open call, restores
//!    the return address, writes the record of the end and returns to the caller.
//!
//! # Rules for targets
//!
//! A target is entered with these words on the stack:
//!
//! - `[rsp]`: the number of the site ([`SiteId`]);
//! - `[rsp + 8]`: the address after the site ([`Site::return_address`]);
//! - `[rsp + 16]`, at an entry: the function's own return address.
//!
//! It must preserve every register but the arithmetic flags, take the number from the stack and
//! return to the address after it. At an exit ([`SiteKind::Exit`]) the site has jumped: at
//! `[rsp + 8]` is the function's return address, and the target returns there.
//!
//! - A target is entered on any thread, in signal handlers, on any stack, before a thread's
//!   runtime is set up and after it is gone.
//! - It stays in memory while the process lives. A thread may enter it for a while after its site
//!   was given another target or was disabled, because it was on its way.
//! - It must not enter a function whose site is enabled, or it is entered again.
//!
//! # Other processors
//!
//! Functions are traced on x86-64. Elsewhere the crate reads files of x86-64 ([`sites`]) and understands
//! what is asked of a tracer ([`selection`], [`tracers::Trigger`]): that is what commands need that
//! look at traces and not at running code.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(
        dead_code,
        unused_imports,
        reason = "what only a tracer of running code uses"
    )
)]

mod arch;
#[cfg(target_arch = "x86_64")]
pub mod control;
#[cfg(target_arch = "x86_64")]
mod engine;
mod fork_locks;
#[cfg(target_arch = "x86_64")]
mod loader_watch;
#[cfg(target_arch = "x86_64")]
mod patch;
#[cfg(target_arch = "x86_64")]
mod record;
pub mod sites;
pub mod tracers;

pub use arch::UnfitCode;
#[cfg(target_arch = "x86_64")]
pub use engine::{Engine, ModuleChanges, SiteTarget, SwitchReport, with_engine};
#[cfg(target_arch = "x86_64")]
pub use patch::{Refusal, RefusedSite, Target, Threads};
#[cfg(target_arch = "x86_64")]
pub use record::callbacks::Callback;
pub use sites::{FileError, Function, Module, ModuleId, Reason, Refused, Site, SiteId, SiteKind};
pub use tracers::selection;
