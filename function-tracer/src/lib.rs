//! Ringmark's function tracer: finds the places in a running process that its compiler left for
//! calls, switches them while all threads run, and records the calls.
//!
//! # The way of a switch
//!
//! ```text
//! request → tracers → engine → patch → bytes
//! ```
//!
//! - [`control`] reads a request and answers it; requests come from the command line, or from the
//!   program itself.
//! - [`tracers`] say what is wanted: the [`tracers::selection`] of each tracer, what all of them
//!   want of a site, and the stub that does it.
//! - An [`Engine`] knows the modules with their sites ([`sites`] finds them, and says why the rest
//!   cannot be traced) and makes each site call a [`Target`], or nothing.
//! - `patch` makes the pads, prepares the changes and writes them in batches.
//! - `arch` says what the bytes of a site are on this processor, and in which steps they change.
//!
//! # The way of a call
//!
//! ```text
//! site → pad → stub → open call → record ⇢ function ⇢ stub → open call → record → caller
//!               ↓                                        ↓
//!            slow way                                 slow way
//! ```
//!
//! - An open site calls its pad, which pushes the site's number and jumps to a stub.
//! - The stub is a straight line of assembly. It looks up the function type of the site, opens a
//!   call: notes it in the thread's own memory and replaces its return address; then it writes the
//!   record of the entry into the thread's ring and returns into the function.
//! - The function returns to another stub, which finds the open call, puts the true return address
//!   back, writes the record of the end and returns to the caller. Where the exits of a function
//!   are sites its return address stays, and the sites lead to that stub.
//! - What is not the common case goes the slow way, through Rust: a thread's first call, tail
//!   calls, calls that were unwound, a full page, and all that a tracer wants beyond entry and
//!   exit.
//!
//! All of it lies in `record`, whose files are listed there in this order.
//!
//! # Rules for targets
//!
//! A target is entered with the number of the site ([`SiteId`]) at `[rsp]`, the address after
//! the site ([`Site::return_address`]) at `[rsp + 8]` and, at an entry, the function's own return
//! address at `[rsp + 16]`. It must leave every register as it was but the arithmetic flags, take
//! the number from the stack and return to the address after it. At an exit ([`Kind::Exit`]) the
//! site has jumped: at `[rsp + 8]` is the function's return address, and the target returns there.
//!
//! - A target is entered on any thread, in signal handlers, on any stack, before a thread's
//!   runtime is set up and after it is gone.
//! - It stays where it is for as long as the process lives. A thread may enter it for a while after
//!   its site was given another one, or none: it was on its way already.
//! - It must not enter a function whose site is open, or it is entered again.

mod arch;
pub mod control;
mod engine;
mod fork_locks;
mod patch;
mod record;
pub mod sites;
pub mod tracers;

pub use arch::UnfitCode;
pub use engine::{Changes, Engine, Report, with_engine};
pub use patch::{Refusal, Target, Threads};
pub use record::callbacks::Callback;
pub use sites::{Function, Kind, Module, ModuleId, Reason, Refused, Site, SiteId};
pub use tracers::selection;
