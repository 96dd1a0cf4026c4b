//! Memory that a forked child finds zeroed: the writers, and the word that marks their owner.
//!
//! Invariants that the SAFETY lines cite:
//!
//! 1. The mapping is anonymous, private and page-aligned, and holds one place more than there are
//!    slots. It is unmapped only in `map`, before a reference into it exists.
//! 2. All zeros are a valid mark and a valid writer, so a wiped mapping is valid, too.

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::io;

use ringmark_ring::Writer;

/// The writers of a session, one per slot, with the owner's mark in front.
pub(crate) struct Wiped {
    mark: &'static AtomicU64,
    writers: &'static [Writer],
}

impl Wiped {
    /// Maps memory for `slots` writers; it is never unmapped.
    pub(crate) fn map(slots: u32) -> io::Result<Self> {
        let bytes = size_of::<Writer>() * (slots as usize + 1);
        // SAFETY: asks for new anonymous memory, no address given.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: advises on the mapping made above (invariant 1).
        if unsafe { libc::madvise(start, bytes, libc::MADV_WIPEONFORK) } != 0 {
            let error = io::Error::last_os_error();
            // SAFETY: no reference into the mapping exists yet (invariant 1).
            unsafe { libc::munmap(start, bytes) };
            return Err(error);
        }
        let first = start.cast::<Writer>().wrapping_add(1);
        // SAFETY: aligned, valid and mapped for ever (invariants 1 and 2).
        let mark = unsafe { &*start.cast::<AtomicU64>() };
        // SAFETY: `slots` places after the first, valid and mapped for ever (invariants 1 and 2).
        let writers = unsafe { core::slice::from_raw_parts(first, slots as usize) };
        mark.store(1, Relaxed);
        Ok(Self { mark, writers })
    }

    /// Whether this is the process that mapped it, not a child of it.
    pub(crate) fn is_ours(&self) -> bool {
        self.mark.load(Relaxed) != 0
    }

    /// The writer of a slot.
    pub(crate) fn writer(&self, slot: u32) -> Option<&'static Writer> {
        self.writers.get(slot as usize)
    }
}
