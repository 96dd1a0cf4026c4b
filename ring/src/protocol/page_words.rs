//! What a writer does to the words of a page: mark a record, pad the rest, open the next page.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::page::{self, PageHeader};
use ringmark_format::record;

use crate::protocol::observe::HEADER_WORDS;
use crate::protocol::order;
use crate::protocol::planted::{self, Bug};
use crate::protocol::single_instruction;
use crate::protocol::sync::AtomicU64;

/// Steps over records from `at` and marks the first empty word BUSY, if `words` fit behind it.
///
/// # Safety
/// `at..end` lies within one page that is mapped for as long as the result is used, or `end` is
/// null.
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

/// Closes a page to its end: the first empty word from `at` becomes a PAD.
///
/// # Safety
/// As for [`mark`].
pub(crate) unsafe fn pad(mut at: *mut AtomicU64, end: *mut AtomicU64) {
    while at < end {
        // SAFETY: the caller's range, and `at < end`.
        let header = unsafe { &*at };
        // SAFETY: both point into the same page.
        let words = unsafe { end.offset_from(at) } as u64;
        match single_instruction::mark_if_empty(header, record::pack_span(record::PAD, words)) {
            0 => break,
            found => at = step_over(at, end, found),
        }
    }
}

/// Where the record after the one with header word `found` starts; `end` if it says nonsense.
fn step_over(at: *mut AtomicU64, end: *mut AtomicU64, found: u64) -> *mut AtomicU64 {
    let next = || {
        (at.wrapping_add(1) < end).then(|| {
            // SAFETY: `at + 1` lies in the open page.
            let length = unsafe { &*at.wrapping_add(1) };
            length.load(Relaxed)
        })
    };
    let Some(words) = record::unpack(found).words(next) else {
        return end;
    };
    // SAFETY: both point into the open page.
    let left = unsafe { end.offset_from(at) } as u64;
    if words > left {
        end
    } else {
        at.wrapping_add(words as usize)
    }
}

/// Readers let go of the page: its words are about to change.
fn mark_busy(generation: &AtomicU64) {
    if !planted::is(Bug::PageReusedWithoutBusy) {
        generation.store(page::BUSY, Relaxed);
    }
}

/// One turn, the same in both modes.
pub(crate) fn open(page: &[AtomicU64], header: &PageHeader) {
    const GENERATION: usize = offset_of!(PageHeader, generation) / 8;
    mark_busy(&page[GENERATION]);
    order::turn_fence(); // [W1]
    single_instruction::zero(&page[HEADER_WORDS..]);
    let fields: [u64; size_of::<PageHeader>() / 8] = zerocopy::transmute!(*header);
    for (word, field) in page[..HEADER_WORDS].iter().zip(fields).skip(1) {
        word.store(field, Relaxed);
    }
    page[GENERATION].store(header.generation, order::page_open_release()); // [W2]
}
