//! Event types that are registered while the program runs, with or without a session.
//!
//! The hooks for fork are in place before the registry's lock is first taken: a child that is forked
//! at that moment must not inherit it as taken.

#[cfg(feature = "tracing")]
use ringmark_ring::published_static::Published;

#[cfg(feature = "tracing")]
use super::core::Core;
#[cfg(feature = "tracing")]
use super::process;
use super::{life, registry};
use crate::description::Description;

/// Registers an event type that was found at run time. Without a session it waits for one; its
/// program may have children before that.
pub(crate) fn register_dynamic(description: &Description<'_>) {
    life::install_fork_hooks();
    registry::register(description);
}

/// Whether this is the first call with this number.
pub(crate) fn is_first(number: usize) -> bool {
    life::install_fork_hooks();
    registry::is_first(number)
}

/// As [`register_dynamic`], for the first thread that comes, which fills `place`. Under
/// the lock, which a fork holds: its child finds both or neither. It has a session of its own first.
#[cfg(feature = "tracing")]
pub(crate) fn register_once<T: Sync>(
    description: &Description<'_>,
    place: &Published<T>,
    done: impl FnOnce() -> Box<T>,
) -> &'static T {
    life::install_fork_hooks();
    if Core::current().is_none() {
        process::session_after_fork();
    }
    registry::register_once(description, place, done)
}
