//! What a writer does to the words of a page: mark a record, pad the rest, open the next page.
//!
//! The words of a page are in shared memory, and another process may have damaged them. Nothing
//! here believes a length that it finds: a step that would lead out of the page ends the page.
//!
//! ```text
//!  │ header │ record │ record │ BUSY … │ record │ 0 0 0 0 0 0 │   open
//!                                               ▲ cursor      ▲ end
//!  │ header │ record │ record │ BUSY … │ record │ PAD ······· │   closed
//! ```

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::page::{self, PageHeader};
use ringmark_format::record;

use crate::protocol::observe::HEADER_WORDS;
use crate::protocol::order;
use crate::protocol::single_instruction;
use crate::protocol::sync::AtomicU64;

/// Steps over records from `at` and marks the first empty word BUSY, if `words` fit from there on.
///
/// The records that are stepped over are those of handlers: `at` is the writer's cursor, which is
/// a hint (invariant 4 of the writer). `None`: nothing was marked.
///
/// # Safety
/// `at..end` lies within one page that is mapped for as long as the result is used, or `end` is
/// null (invariants 1 and 5 of the writer).
pub(crate) unsafe fn mark<'p>(
    mut at: *mut AtomicU64,
    end: *mut AtomicU64,
    words: u64,
) -> Option<&'p AtomicU64> {
    loop {
        let next = at.wrapping_add(words as usize);
        if next > end || next < at {
            return None;
        }
        // SAFETY: the caller's range, and `at` only moves forward to at most `end`.
        let header = unsafe { &*at };
        match single_instruction::mark_if_empty(header, record::pack_span(record::BUSY, words)) {
            0 => return Some(header),
            found => at = step_over(at, end, found),
        }
    }
}

/// Closes a page: the first empty word from `at` becomes a PAD over all words up to the end.
///
/// A record that is BUSY stays so, and may be committed later: closing takes no record away. In a
/// page without an empty word nothing is stored.
///
/// # Safety
/// As for [`mark`].
pub(crate) unsafe fn pad(mut at: *mut AtomicU64, end: *mut AtomicU64) {
    while at < end {
        // SAFETY: the caller's range, and `at < end`.
        let header = unsafe { &*at };
        // SAFETY: the caller's range: both point into the same page.
        let words = unsafe { end.offset_from(at) } as u64;
        match single_instruction::mark_if_empty(header, record::pack_span(record::PAD, words)) {
            0 => break,
            found => at = step_over(at, end, found),
        }
    }
}

/// Where the record after the one with header word `found` starts; `end` if its length is
/// impossible, which only another process can have caused.
fn step_over(at: *mut AtomicU64, end: *mut AtomicU64, found: u64) -> *mut AtomicU64 {
    let next = || {
        (at.wrapping_add(1) < end).then(|| {
            // SAFETY: the caller's range: `at + 1` lies before `end`.
            let length = unsafe { &*at.wrapping_add(1) };
            length.load(Relaxed)
        })
    };
    let Some(words) = record::unpack(found).words(next) else {
        return end;
    };
    // SAFETY: the caller's range: both point into the open page.
    let left = unsafe { end.offset_from(at) } as u64;
    if words > left {
        end
    } else {
        at.wrapping_add(words as usize)
    }
}

/// Opens a page in this place: BUSY, zeros, the header, and last its number. The same in both
/// modes; whether the page may be taken was decided before.
///
/// A process that is killed in here leaves BUSY, and readers take the page as not there. No record
/// of the page before survives, because all words are zeroed before the number is stored (`[W2]`).
pub(crate) fn open(page: &[AtomicU64], header: &PageHeader) {
    const GENERATION: usize = offset_of!(PageHeader, generation) / 8;
    debug_assert!(!matches!(header.generation, 0 | page::BUSY) && page.len() > HEADER_WORDS);
    // Readers throw away a copy that is in work.
    page[GENERATION].store(page::BUSY, Relaxed);
    order::switch_fence(); // [W1]
    single_instruction::zero(&page[HEADER_WORDS..]);
    let fields: [u64; size_of::<PageHeader>() / 8] = zerocopy::transmute!(*header);
    for (word, field) in page[..HEADER_WORDS].iter().zip(fields).skip(1) {
        word.store(field, Relaxed);
    }
    page[GENERATION].store(header.generation, order::page_open_release()); // [W2]
}
