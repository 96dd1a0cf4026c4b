//! Loads a shared object into a running process that was not prepared for it: one thread, at a
//! place where it holds no lock of the C library or the loader, calls `dlopen`; all others run on.
//!
//! ```text
//! refuse what can be seen → ask the seccomp filters → read the modules → for one thread after the other:
//!   stop it (microseconds) → who called whom? → the program's own code: send it to our code
//!                                             → a library: let it return into our code
//!                                             → neither: let it go on
//! ```
//!
//! Our code lies in the unused rest of a page of text. It keeps all registers, blocks signals, takes
//! a stack of its own and goes back by itself. Each thread is changed by one write, its
//! registers or one return address, so the tool may be killed at any moment.
//!
//! Where the target does not see the library's file, our code makes a memfd, and the tool fills it.
//!
//! All of it is for x86-64. Elsewhere the crate says what may be attached to, and refuses to load: see `elsewhere`.
#![warn(missing_docs)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, reason = "what only loading uses")
)]

#[cfg(target_arch = "x86_64")]
mod asked_filters;
#[cfg(target_arch = "x86_64")]
mod attempts;
#[cfg(target_arch = "x86_64")]
mod calls;
#[cfg(not(target_arch = "x86_64"))]
mod elsewhere;
#[cfg(target_arch = "x86_64")]
mod entered;
mod error;
#[cfg(target_arch = "x86_64")]
mod filter;
#[cfg(target_arch = "x86_64")]
mod injection;
mod jump;
#[cfg(target_arch = "x86_64")]
mod jumps;
mod loaded;
#[cfg(target_arch = "x86_64")]
mod maps;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod module;
mod options;
mod permission;
#[cfg(target_arch = "x86_64")]
mod plan;
#[cfg(target_arch = "x86_64")]
mod ptrace;
#[cfg(target_arch = "x86_64")]
mod sandbox;
#[cfg(target_arch = "x86_64")]
mod source;
#[cfg(target_arch = "x86_64")]
mod stopped_process;
#[cfg(target_arch = "x86_64")]
mod survey;
#[cfg(target_arch = "x86_64")]
mod system_calls;
mod target;
#[cfg(target_arch = "x86_64")]
mod trampoline;
#[cfg(target_arch = "x86_64")]
mod unwind;

#[cfg(target_arch = "x86_64")]
use std::path::Path;

#[cfg(not(target_arch = "x86_64"))]
pub use elsewhere::{examine, load, put_jumps};
pub use error::LoadError;
pub use jump::{JUMP_BYTES, Jump, PutJumps};
pub use loaded::{Loaded, Way};
pub use options::Options;
pub use permission::Permission;
#[cfg(target_arch = "x86_64")]
pub use system_calls::{Need, SYSTEM_CALLS, SystemCall};

/// Loads `library`, a full path, into the process `pid`.
///
/// # Errors
/// Why it was not loaded; the target is as it was then.
#[cfg(target_arch = "x86_64")]
pub fn load(pid: i32, library: &Path, options: &Options<'_>) -> Result<Loaded, LoadError> {
    on_own_thread(pid, || {
        injection::Injection::new(pid, library, options)?.run()
    })
}

/// Looks whether `library` could be loaded into the process `pid`, and loads nothing. Only a thread with
/// a seccomp filter is stopped, for as long as it takes to read the filter.
///
/// # Errors
/// Why it cannot be loaded. Whether a thread comes to a place where loading is safe shows only then.
#[cfg(target_arch = "x86_64")]
pub fn examine(pid: i32, library: &Path, options: &Options<'_>) -> Result<(), LoadError> {
    on_own_thread(pid, || {
        injection::Injection::new(pid, library, options)?.examine()
    })
}

/// Puts jumps in the place of several instructions of the process `pid`: all its threads are stopped for that, and none may be
/// between those instructions.
///
/// # Errors
/// Its threads cannot be stopped together, or what they do cannot be read. No jump was put then, or some were.
#[cfg(target_arch = "x86_64")]
pub fn put_jumps(pid: i32, jumps: &[Jump]) -> Result<PutJumps, LoadError> {
    on_own_thread(pid, || jumps::put(pid, jumps))
}

/// What a thread traces, the kernel lets go of when it ends.
#[cfg(target_arch = "x86_64")]
fn on_own_thread<T: Send>(
    pid: i32,
    work: impl FnOnce() -> Result<T, LoadError> + Send,
) -> Result<T, LoadError> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(work);
        thread.join().unwrap_or_else(|_| {
            let error = std::io::Error::other("a mistake of the tool");
            Err(LoadError::Failed {
                pid,
                what: "loading",
                error,
            })
        })
    })
}
