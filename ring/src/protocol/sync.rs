//! The atomics of shared words: the processor's, or loom's model of them.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};

/// A `const fn`, which loom's atomics do not know.
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
