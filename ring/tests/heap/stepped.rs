//! Atomics before each access of which a test runs, as a signal handler may. Only under `--cfg steps`, as a part of
//! the crate: `sync` gives them to the protocol in place of those of `core`.
//!
//! A real signal comes between any two instructions. What a handler can tell apart are the places before and after
//! each access to a word that it uses as well: those are the steps.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{self as real, Ordering};

type Handler = Rc<dyn Fn()>;

thread_local! {
    static HANDLER: RefCell<Option<Handler>> = const { RefCell::new(None) };
}

/// Sets what this thread calls before each access; `None`: nothing. The handler may emit events,
/// and is then itself called between their steps: the test bounds the depth.
pub fn set_handler(handler: Option<Handler>) {
    HANDLER.with(|h| *h.borrow_mut() = handler);
}

fn between() {
    let handler = HANDLER.with(|h| h.borrow().clone());
    if let Some(handler) = handler {
        handler();
    }
}

/// A step, and the fence.
pub fn fence(order: Ordering) {
    between();
    real::fence(order);
}

/// As that of `core`, each access after a step.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct AtomicU64(real::AtomicU64);

/// As that of `core`, each access after a step.
#[repr(transparent)]
#[derive(Debug)]
pub struct AtomicPtr<T>(real::AtomicPtr<T>);

macro_rules! accesses {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => { $(
        /// As that of `core`, after a step.
        pub fn $name(&self $(, $argument: $type)*) $(-> $result)? {
            between();
            self.0.$name($($argument),*)
        }
    )* };
}

impl AtomicU64 {
    /// As that of `core`.
    pub const fn new(value: u64) -> Self {
        Self(real::AtomicU64::new(value))
    }

    accesses! {
        as_ptr() -> *mut u64;
        load(order: Ordering) -> u64;
        store(value: u64, order: Ordering);
        swap(value: u64, order: Ordering) -> u64;
        fetch_add(value: u64, order: Ordering) -> u64;
        fetch_or(value: u64, order: Ordering) -> u64;
        compare_exchange(old: u64, new: u64, then: Ordering, or: Ordering) -> Result<u64, u64>;
        fetch_update(then: Ordering, or: Ordering, to: impl FnMut(u64) -> Option<u64>) -> Result<u64, u64>;
    }
}

impl<T> AtomicPtr<T> {
    /// As that of `core`.
    pub const fn new(value: *mut T) -> Self {
        Self(real::AtomicPtr::new(value))
    }

    accesses! {
        load(order: Ordering) -> *mut T;
        store(value: *mut T, order: Ordering);
    }
}
