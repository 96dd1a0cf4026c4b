//! The atomics of shared words: the processor's, or loom's model of them.
//!
//! Every word that a second thread or process looks at has a type from here, so that a model
//! explores it. Words that are private to a thread and its signal handlers use the atomics of
//! `core`: loom knows no signal handlers, and their states would only multiply its executions.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};

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
