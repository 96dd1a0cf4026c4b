//! Reading pages out of a live ring: copy, then keep the copy only if the page was not turned.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::PageNumber;
use ringmark_format::page::{self, PageHeader};
use ringmark_format::record::{self, Header};

use crate::cross;
use crate::order;
use crate::sync::AtomicU64;

/// Words of a page header.
#[cfg(not(loom))]
pub const HEADER_WORDS: usize = size_of::<PageHeader>() / 8;
/// Words of a page header in the models: generation, ring id and tick base. Every further word
/// doubles the states of a copy and adds nothing.
#[cfg(loom)]
pub const HEADER_WORDS: usize = 3;
const GENERATION: usize = offset_of!(PageHeader, generation) / 8;

/// What became of an attempt to copy a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum PageRead {
    /// The copy is whole.
    Copied(PageCopy),
    /// The page with this number is not there: not turned yet, being turned, or overwritten.
    NotThere,
}

/// What a kept copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCopy {
    /// Words of the page that are in the copy, from its start.
    pub words: usize,
    /// Records in it, if they were walked: committed, busy and discarded ones.
    pub records: Option<u64>,
    /// A record's length was impossible; the copy ends before it.
    pub damaged: bool,
}

/// Copies a page that its writer has left (`number + 1 < produced`, or the claim has ended), as
/// it is, into `copy`, which must be as large as the page.
pub fn copy_sealed(page: &[AtomicU64], number: PageNumber, copy: &mut [u64]) -> PageRead {
    if page.len() != copy.len() || !is_at(page, number) {
        return PageRead::NotThere;
    }
    cross::copy(page, copy);
    keep(
        page,
        number,
        PageCopy {
            words: copy.len(),
            records: None,
            damaged: false,
        },
    )
}

/// Copies the committed records of a page that may still be written to.
///
/// A record that is not committed yet keeps its BUSY header in the copy and has no payload. The
/// headers in the copy are the values that the walk loaded; loading them again would tear.
pub fn copy_open(page: &[AtomicU64], number: PageNumber, copy: &mut [u64]) -> PageRead {
    if page.len() != copy.len() || page.len() < HEADER_WORDS || !is_at(page, number) {
        return PageRead::NotThere;
    }
    for (to, from) in copy.iter_mut().zip(&page[..HEADER_WORDS]) {
        *to = from.load(Relaxed);
    }
    let walked = walk(page, copy);
    keep(page, number, walked)
}

/// The header of a page, if the page with this number is there.
#[cfg(not(loom))]
#[must_use]
pub fn header(page: &[AtomicU64], number: PageNumber) -> Option<PageHeader> {
    let words = page.first_chunk::<HEADER_WORDS>()?;
    if !is_at(page, number) {
        return None;
    }
    let copy: [u64; HEADER_WORDS] = core::array::from_fn(|i| words[i].load(Relaxed));
    match keep(
        page,
        number,
        PageCopy {
            words: HEADER_WORDS,
            records: None,
            damaged: false,
        },
    ) {
        PageRead::Copied(_) => Some(zerocopy::transmute!(copy)),
        PageRead::NotThere => None,
    }
}

fn is_at(words: &[AtomicU64], number: PageNumber) -> bool {
    let Some(generation) = words.get(GENERATION) else {
        return false;
    };
    let expected = number.0.wrapping_add(1);
    // A damaged *produced* can ask for the pages whose generation would say "never used", "busy".
    let possible = !matches!(expected, 0 | page::BUSY);
    possible && generation.load(order::page_open_acquire()) == expected // [R1]
}

fn keep(page: &[AtomicU64], number: PageNumber, copied: PageCopy) -> PageRead {
    order::recheck_fence(); // [R4]
    if page[GENERATION].load(Relaxed) == number.0.wrapping_add(1) {
        PageRead::Copied(copied)
    } else {
        PageRead::NotThere
    }
}

/// Copies record by record; returns how far it came.
fn walk(page: &[AtomicU64], copy: &mut [u64]) -> PageCopy {
    let mut at = HEADER_WORDS;
    let mut records = 0;
    let mut damaged = false;
    while at < page.len() {
        let header = page[at].load(order::header_acquire()); // [R2]
        let Some(words) = copied_words(header, &page[at..]) else {
            damaged = header != 0;
            break;
        };
        copy[at] = header;
        if record::unpack(header) == Header::Pad {
            at += 1;
            break;
        }
        copy_payload(header, &page[at..at + words], &mut copy[at..at + words]);
        records += u64::from(!is_time_extend(header));
        at += words;
    }
    PageCopy {
        words: at,
        records: Some(records),
        damaged,
    }
}

/// Words of the record that `header` starts; `None` for no record, or one that does not fit.
fn copied_words(header: u64, rest: &[AtomicU64]) -> Option<usize> {
    let words = match record::unpack(header) {
        Header::Empty => return None,
        Header::Pad => 1,
        Header::Busy(words) | Header::Discard(words) => words,
        Header::Record {
            payload_words: Some(words),
            ..
        } => 1 + words,
        Header::Record {
            payload_words: None,
            ..
        } => rest.get(1)?.load(Relaxed).checked_add(2)?,
    };
    let words = usize::try_from(words).ok()?;
    (words >= 1 && words <= rest.len()).then_some(words)
}

fn copy_payload(header: u64, from: &[AtomicU64], to: &mut [u64]) {
    let committed = matches!(record::unpack(header), Header::Record { .. });
    for (to, from) in to.iter_mut().zip(from).skip(1) {
        *to = if committed { from.load(Relaxed) } else { 0 };
    }
}

fn is_time_extend(header: u64) -> bool {
    matches!(record::unpack(header), Header::Record { type_id, .. } if type_id.0 == record::TIME_EXTEND)
}
