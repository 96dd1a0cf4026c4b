//! A place for something that one thread lays out and all others find, such as the running session.
//!
//! An atomic pointer to something that is never freed. So a thread that has found it may use it for
//! as long as it likes, also after another one was published, and no reader counts references. The
//! price is that a value is leaked each time one is published: a session, a table, not an event.
//!
//! # Invariant
//!
//! 1. The pointer is null, or was made from a `&'static T` or from a box that is never freed.

use core::ptr;

use crate::protocol::order;
use crate::protocol::sync::{AtomicPtr, const_unless_loom};

/// An atomic `Option<&'static T>`: nothing, or something that is never freed.
///
/// Never waits and never locks: for signal handlers and for forked children as well.
#[derive(Debug)]
pub struct Published<T: 'static> {
    place: AtomicPtr<T>,
}

impl<T: Sync + 'static> Published<T> {
    const_unless_loom! {
        /// A place where nothing was published yet.
        pub fn new() -> Self {
            Self {
                place: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// What was published last, with everything that was written before that (`[L3]`). `None`:
    /// nothing yet, or it was forgotten.
    #[inline]
    pub fn current(&self) -> Option<&'static T> {
        let found = self.place.load(order::current_acquire()); // [L3] pairs with [L4]
        // SAFETY: invariant 1.
        unsafe { found.as_ref() }
    }

    /// Lets all threads find `value` from now on, in place of what they found before.
    pub fn publish(&self, value: &'static T) {
        let place = ptr::from_ref(value).cast_mut();
        self.place.store(place, order::current_release()); // [L4] pairs with [L3]
    }

    /// What was published first, by this call or by another thread's.
    ///
    /// Threads that come at the same time each make a value; one is published, and the others drop
    /// theirs and return that one. No thread waits for another, so a forked child never finds a
    /// place that a thread of its parent was filling.
    pub fn get_or_publish(&self, make: impl FnOnce() -> Box<T>) -> &'static T {
        if let Some(found) = self.current() {
            return found;
        }
        let own = Box::into_raw(make());
        let found = self.place.compare_exchange(
            ptr::null_mut(),
            own,
            order::current_release(), // [L4] pairs with [L3]
            order::current_acquire(), // [L3] pairs with [L4]
        );
        let first = match found {
            Ok(_) => own,
            Err(first) => {
                // SAFETY: made by this call, and no other thread has found it.
                drop(unsafe { Box::from_raw(own) });
                first
            }
        };
        // SAFETY: invariant 1: not null, this call's own box or another call's.
        unsafe { &*first }
    }

    /// Lets no thread find it any more. Threads that have found it go on using it.
    pub fn forget(&self) {
        self.place.store(ptr::null_mut(), order::current_release()); // [L4] pairs with [L3]
    }
}

impl<T: Sync + 'static> Default for Published<T> {
    fn default() -> Self {
        Self::new()
    }
}
