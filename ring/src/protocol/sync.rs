//! The atomics of words that others may change: the processor's, or a test's.
//!
//! Every word that a second thread or process looks at has a type from here, so that loom's models
//! explore it. Words that are [`private`] to a thread and its signal handlers stay those of `core` there:
//! loom knows no signal handlers, and their states would only multiply its executions.
//!
//! Under `--cfg steps` both are such that a test runs before each access, as a signal handler may.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};
#[cfg(not(any(loom, steps)))]
pub use core::sync::atomic::{AtomicU64, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(steps)]
pub use stepped::{AtomicU64, fence};

#[cfg(steps)]
#[path = "../../tests/heap/stepped.rs"]
pub mod stepped;

/// Words of one thread and its signal handlers.
pub mod private {
    #[cfg(steps)]
    pub use super::stepped::{AtomicPtr, AtomicU64};
    #[cfg(not(steps))]
    pub use core::sync::atomic::{AtomicPtr, AtomicU64};
}

/// A `const fn` in every build but loom's, whose atomics register themselves when they are made
/// and so cannot be made in a constant.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* pub fn $($rest:tt)*) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        pub const fn $($rest)*

        $(#[$meta])*
        #[cfg(loom)]
        pub fn $($rest)*
    };
}

pub(crate) use const_unless_loom;
