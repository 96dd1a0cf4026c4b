//! A table by the number of a function type, in chunks, so that few types take little memory.

use core::array::from_fn;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use ringmark_format::function::LAST_NUMBER;

const CHUNK: usize = 4096;
const CHUNKS: usize = (LAST_NUMBER as usize + 1) / CHUNK;

/// A cell for each function type, made in chunks when one of a chunk is first set.
pub(super) struct Cells<C: 'static>([AtomicPtr<[C; CHUNK]>; CHUNKS]);

impl<C: Default> Cells<C> {
    pub(super) const fn new() -> Self {
        Self([const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS])
    }

    /// The cell of the type with this number, if its chunk was made.
    pub(super) fn get(&self, number: u32) -> Option<&'static C> {
        let place = (number & LAST_NUMBER) as usize;
        let chunk = self.0[place / CHUNK].load(Acquire);
        // SAFETY: record invariants 1 and 4.
        unsafe { chunk.as_ref() }.map(|chunk| &chunk[place % CHUNK])
    }

    /// The same, made before if need be. Called by the control path only, by one thread at a time.
    pub(super) fn make(&self, number: u32) -> Option<&'static C> {
        let pointer = &self.0[(number & LAST_NUMBER) as usize / CHUNK];
        if pointer.load(Acquire).is_null() {
            let fresh: Box<[C; CHUNK]> = Box::new(from_fn(|_| C::default()));
            pointer.store(Box::into_raw(fresh), Release);
        }
        self.get(number)
    }
}

/// A value for each function type that has one. A read costs one load more than in an array.
pub(super) struct ByType<T: 'static>(Cells<AtomicPtr<T>>);

impl<T> ByType<T> {
    pub(super) const fn new() -> Self {
        Self(Cells::new())
    }

    /// The value of the type with this number, if it has one.
    pub(super) fn get(&self, number: u32) -> Option<&'static T> {
        let found = self.0.get(number)?.load(Acquire);
        // SAFETY: record invariant 1: null, or a reference that `set` was given.
        unsafe { found.as_ref() }
    }

    /// Sets the value of the type with this number. Called by the control path only, by one thread
    /// at a time.
    pub(super) fn set(&self, number: u32, value: &'static T) {
        if let Some(cell) = self.0.make(number) {
            cell.store(ptr::from_ref(value).cast_mut(), Release);
        }
    }
}
