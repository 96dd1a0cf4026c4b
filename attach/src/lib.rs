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
#![warn(missing_docs)]

mod asked_filters;
mod attempts;
mod calls;
mod entered;
mod error;
mod filter;
mod injection;
mod loaded;
mod maps;
mod memory;
mod module;
mod options;
mod permission;
mod plan;
mod ptrace;
mod sandbox;
mod source;
mod survey;
mod system_calls;
mod target;
mod trampoline;
mod unwind;

use std::path::Path;

pub use error::LoadError;
pub use loaded::{Loaded, Way};
pub use options::Options;
pub use permission::Permission;
pub use system_calls::{Need, SYSTEM_CALLS, SystemCall};

/// Loads `library`, a full path, into the process `pid`.
///
/// # Errors
/// Why it was not loaded; the target is as it was then.
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
pub fn examine(pid: i32, library: &Path, options: &Options<'_>) -> Result<(), LoadError> {
    on_own_thread(pid, || {
        injection::Injection::new(pid, library, options)?.examine()
    })
}

/// What a thread traces, the kernel lets go of when it ends.
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
