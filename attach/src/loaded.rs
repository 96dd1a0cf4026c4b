//! A library that was loaded, and how.

use std::time::Duration;

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
