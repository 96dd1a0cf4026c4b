//! Ringmark's function tracer: finds the places in a running process that its compiler left for
//! calls, and switches them while all threads run.
//!
//! sites ([`sites`]) → prepare → batch → text: an [`Engine`] looks through the program and its shared
//! objects, says what can be traced and why the rest cannot, and makes sites call a [`Target`].
//!
//! # Rules for targets
//!
//! A target is entered with the number of the site ([`SiteId`]) at `[rsp]`, the address behind
//! the site ([`Site::return_address`]) at `[rsp + 8]` and, at an entry, the function's own return
//! address at `[rsp + 16]`. It must leave every register as it was but the arithmetic flags, take
//! the number from the stack and return to the address behind it. At an exit ([`Kind::Exit`]) the
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
