//! A table by the number of a function type, in chunks, so that few types take little memory.

use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use ringmark_format::function::LAST_NUMBER;

const CHUNK: usize = 4096;
const CHUNKS: usize = (LAST_NUMBER as usize + 1) / CHUNK;

type Chunk<T> = [AtomicPtr<T>; CHUNK];

/// A value for each function type that has one. A read costs one load more than in an array.
pub(super) struct ByType<T: 'static>([AtomicPtr<Chunk<T>>; CHUNKS]);

impl<T> ByType<T> {
    pub(super) const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS])
    }

    /// The value of the type with this number, if it has one.
    pub(super) fn get(&self, number: u32) -> Option<&'static T> {
        let place = (number & LAST_NUMBER) as usize;
        let chunk = self.0[place / CHUNK].load(Acquire);
        // SAFETY: record invariants 1 and 4.
        let chunk = unsafe { chunk.as_ref() }?;
        let found = chunk[place % CHUNK].load(Acquire);
        // SAFETY: record invariant 1: null, or a reference that `set` was given.
        unsafe { found.as_ref() }
    }

    /// Sets the value of the type with this number. Called by the control path only, by one thread
    /// at a time.
    pub(super) fn set(&self, number: u32, value: &'static T) {
        let place = (number & LAST_NUMBER) as usize;
        let pointer = &self.0[place / CHUNK];
        if pointer.load(Acquire).is_null() {
            let fresh: Chunk<T> = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNK];
            pointer.store(Box::into_raw(Box::new(fresh)), Release);
        }
        // SAFETY: record invariants 1 and 4; it was set above or before.
        if let Some(chunk) = unsafe { pointer.load(Acquire).as_ref() } {
            chunk[place % CHUNK].store(ptr::from_ref(value).cast_mut(), Release);
        }
    }
}
