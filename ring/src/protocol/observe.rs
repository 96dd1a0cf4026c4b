//! Reading pages out of a live ring: copy, then keep the copy only if the page was not turned.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::PageNumber;
use ringmark_format::page::{self, PageHeader};
use ringmark_format::record::{self, Header};

use crate::protocol::order;
use crate::protocol::single_instruction;
use crate::protocol::sync::AtomicU64;

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
    /// Records in it, if they were walked: committed, busy and cancelled ones.
    pub records: Option<u64>,
    /// A record's length was impossible; the copy ends before it.
    pub damaged: bool,
    /// The records were walked, and no record in the copy can change any more.
    pub settled: bool,
}

/// How far a walk over records came.
#[derive(Debug, Default)]
struct Walked {
    words: usize,
    records: u64,
    damaged: bool,
    /// Where the first record lay that was not committed.
    first_busy: Option<usize>,
}

/// Copies a page that its writer has left (`number + 1 < produced`, or the claim has ended), as
/// it is, into `copy`, which must be as large as the page.
pub fn copy_sealed(page: &[AtomicU64], number: PageNumber, copy: &mut [u64]) -> PageRead {
    if page.len() != copy.len() || !is_at(page, number) {
        return PageRead::NotThere;
    }
    single_instruction::copy(page, copy);
    keep(
        page,
        number,
        PageCopy {
            words: copy.len(),
            records: None,
            damaged: false,
            settled: false,
        },
    )
}

/// Copies the committed records of a page that may still be written to.
///
/// A record that is not committed yet keeps its BUSY header in the copy and has no payload. One that
/// was committed before another one in the copy is there: what the walk found BUSY is looked at
/// again, once. The headers in the copy are the values that were loaded last; loading them again
/// would tear.
pub fn copy_open(page: &[AtomicU64], number: PageNumber, copy: &mut [u64]) -> PageRead {
    if page.len() != copy.len() || page.len() < HEADER_WORDS || !is_at(page, number) {
        return PageRead::NotThere;
    }
    for (to, from) in copy.iter_mut().zip(&page[..HEADER_WORDS]) {
        *to = from.load(Relaxed);
    }
    let (page_records, records) = (&page[HEADER_WORDS..], &mut copy[HEADER_WORDS..]);
    let mut walked = walk(page_records, records);
    look_again(page_records, records, &mut walked);
    let copied = PageCopy {
        words: HEADER_WORDS + walked.words,
        records: Some(walked.records),
        damaged: walked.damaged,
        settled: walked.first_busy.is_none() && !walked.damaged,
    };
    keep(page, number, copied)
}

/// Whether the records of a page that may still be written to end behind `words` words, as they
/// did when a copy of as many words was made.
#[must_use]
pub fn ends_at(page: &[AtomicU64], words: usize) -> bool {
    page.get(words).is_none_or(|word| word.load(Relaxed) == 0)
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
            settled: false,
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
fn walk(page: &[AtomicU64], copy: &mut [u64]) -> Walked {
    let mut walked = Walked::default();
    while walked.words < page.len() {
        let at = walked.words;
        let header = page[at].load(order::header_acquire()); // [R2]
        let Some(words) = copied_words(header, &page[at..]) else {
            walked.damaged = header != 0;
            break;
        };
        copy[at] = header;
        if record::unpack(header) == Header::Pad {
            walked.words += 1;
            break;
        }
        copy_payload(header, &page[at..at + words], &mut copy[at..at + words]);
        walked.records += u64::from(!is_time_extend(header));
        if let Header::Busy(_) = record::unpack(header) {
            walked.first_busy.get_or_insert(at);
        }
        walked.words += words;
    }
    walked
}

/// Walks what was BUSY once more. A walk takes time: a record may be committed, and others behind
/// it, before it comes to those.
fn look_again(page: &[AtomicU64], copy: &mut [u64], walked: &mut Walked) {
    let mut at = walked.first_busy.unwrap_or(walked.words);
    while at < walked.words {
        let words = words_in(&copy[at..]);
        if let Header::Busy(_) = record::unpack(copy[at])
            && at.saturating_add(words) < walked.words
        {
            let again = walk(&page[at..at + words], &mut copy[at..at + words]);
            walked.records = walked.records.saturating_sub(1) + again.records;
            if again.damaged || again.words != words {
                (walked.words, walked.damaged) = (at + again.words, true);
                return;
            }
        }
        at = at.saturating_add(words);
    }
}

/// Words of the record at the start of a copy. Its lengths were bounded when it was made, but for a
/// LONG one whose length somebody changed meanwhile.
fn words_in(copy: &[u64]) -> usize {
    let words = match record::unpack(copy[0]) {
        Header::Empty | Header::Pad => 1,
        header => header.words(|| copy.get(1).copied()).unwrap_or(u64::MAX),
    };
    usize::try_from(words).unwrap_or(usize::MAX)
}

/// Words of the record that `header` starts; `None` for no record, or one that does not fit.
fn copied_words(header: u64, rest: &[AtomicU64]) -> Option<usize> {
    let words = match record::unpack(header) {
        Header::Pad => 1,
        header => header.words(|| Some(rest.get(1)?.load(Relaxed)))?,
    };
    let words = usize::try_from(words).ok()?;
    (words <= rest.len()).then_some(words)
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
