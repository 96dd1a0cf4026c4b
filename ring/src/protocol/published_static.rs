//! A place for something that one thread lays out and all others find, such as the running session.

use core::ptr;

use crate::protocol::order;
use crate::protocol::sync::{AtomicPtr, const_unless_loom};

/// Nothing, or something that lives for ever.
#[derive(Debug)]
pub struct Published<T: 'static> {
    place: AtomicPtr<T>,
}

impl<T: Sync + 'static> Published<T> {
    const_unless_loom! {
        /// Nothing yet.
        pub fn new() -> Self {
            Self {
                place: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// What was published last, and everything written before that.
    #[inline]
    pub fn current(&self) -> Option<&'static T> {
        let found = self.place.load(order::current_acquire()); // [L3] pairs with [L4]
        // SAFETY: null, or set by `publish` from a reference that lives for ever.
        unsafe { found.as_ref() }
    }

    /// Lets everybody find it.
    pub fn publish(&self, value: &'static T) {
        let place = ptr::from_ref(value).cast_mut();
        self.place.store(place, order::current_release()); // [L4] pairs with [L3]
    }

    /// What was published first. A thread that comes second drops its own and takes the other's:
    /// nobody waits, so a forked child never finds a place half filled.
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
                // SAFETY: made by this call and shown to nobody.
                drop(unsafe { Box::from_raw(own) });
                first
            }
        };
        // SAFETY: not null; this call's own box, which nobody frees now, or published by another one.
        unsafe { &*first }
    }

    /// Lets nobody find it any more.
    pub fn forget(&self) {
        self.place.store(ptr::null_mut(), order::current_release()); // [L4] pairs with [L3]
    }
}

impl<T: Sync + 'static> Default for Published<T> {
    fn default() -> Self {
        Self::new()
    }
}
