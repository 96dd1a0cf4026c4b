//! Loads a shared object into a running process that was not prepared for it: one thread, at a
//! place where it holds no lock of the C library or the loader, calls `dlopen`; all others run on.
//!
//! ```text
//! refuse what can be seen → read the modules → for one thread after the other:
//!   stop it (microseconds) → who called whom? → the program's own code: send it to our code
//!                                             → a library: let it return into our code
//!                                             → neither: let it go on
//! ```
//!
//! Our code lies in the unused rest of a page of text. It keeps all registers, blocks signals, takes
//! a stack of its own and goes back by itself. Each thread is changed by one write, its
//! registers or one return address, so the tool may be killed at any moment.
#![warn(missing_docs)]

mod calls;
mod entered;
mod error;
mod inject;
mod maps;
mod memory;
mod module;
mod plan;
mod ptrace;
mod survey;
mod target;
mod trampoline;
mod unwind;

use std::ffi::CStr;
use std::path::Path;
use std::time::Duration;

pub use error::LoadError;

/// How to load.
#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// How long to look for a thread that may load. Later the target is as it was.
    pub limit: Duration,
    /// A function `int name(const char *)` of the library to call once it is loaded, and its argument.
    pub call: Option<(&'a CStr, &'a CStr)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(5),
            call: None,
        }
    }
}

/// How a thread came to load the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It ran in the program's own code.
    Running,
    /// It waited in a system call that holds no lock, and waits there again.
    Waiting,
    /// It returned from a library into the program's own code.
    Returned,
}

/// A library that was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The thread that has loaded it.
    pub tid: i32,
    /// How it came to that.
    pub way: Way,
    /// What the called function returned, 0 without one; nothing if the thread could not be asked.
    pub result: Option<i32>,
    /// The longest time that any thread was stopped.
    pub stopped: Duration,
    /// How long the loading thread was away from its own work, at most.
    pub held: Duration,
}

/// Loads `library`, a full path, into the process `pid`.
///
/// # Errors
/// Why it was not loaded; the target is as it was then.
pub fn load(pid: i32, library: &Path, options: &Options<'_>) -> Result<Loaded, LoadError> {
    // A thread of its own: what it traces, the kernel lets go of when it ends.
    let work = || inject::Injection::new(pid, library, options)?.run();
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
