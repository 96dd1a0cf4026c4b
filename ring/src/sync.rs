//! The atomics of shared words: the processor's, or loom's model of them.

#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, fence};
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, fence};
