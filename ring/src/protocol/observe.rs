//! Reading pages out of a live ring: copy, then keep the copy only if the page was not switched.
//!
//! A reader stores nothing here, so it can neither stop nor slow the writer, and any number of
//! readers may copy the same page. It does not lock the page either: it loads *generation*, copies,
//! and loads *generation* again. Equal numbers mean that all words in the copy belong to that page.
//!
//! ```text
//!   reader                          writer that switches the page under it
//!   load generation == n + 1 [R1]
//!   copy words                      generation := BUSY, fence [W1]
//!   copy words                      zero the words
//!   fence [R4]
//!   load generation == BUSY         ▶ NotThere: the copy is thrown away
//! ```
//!
//! Two ways to copy. A page that its writer has left is copied as a block: no header in it can
//! change. A page that may still be written to is walked record by record, because a payload may
//! be copied only after its header was seen committed (`[R2]`).
//!
//! Nothing that is loaded is believed: lengths are bounded by the page, a record that would end
//! outside it ends the copy, and no input makes these functions panic. The words of the copy are
//! for a decoder that bounds them again.

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
/// doubles the states of a copy and shows nothing new.
#[cfg(loom)]
pub const HEADER_WORDS: usize = 3;
const GENERATION: usize = offset_of!(PageHeader, generation) / 8;

/// What became of an attempt to copy a page. Neither case is an error: in overwrite mode pages go
/// while they are read, and the reader takes the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum PageRead {
    /// The copy is whole.
    Copied(PageCopy),
    /// The page with this number is not there: not opened yet, being switched, or overwritten. What
    /// `copy` holds then is a mixture and must not be used.
    NotThere,
}

/// What a kept copy holds, for the reader that writes it on as a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageCopy {
    /// Words of the page that are in the copy, from its start, header included: at most a page.
    pub words: usize,
    /// Records in it, if they were walked: committed, busy and cancelled ones. `first_event` of the
    /// page plus this number is what was reserved so far. A TIME_EXTEND is not counted for itself.
    pub records: Option<u64>,
    /// A record's length was impossible; the copy ends before it. Only another process can have
    /// caused it, by writing to the file.
    pub damaged: bool,
    /// The records were walked, and no record in the copy can change any more: what it holds need
    /// not be copied again, only what was reserved after it.
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
/// it is, into `copy`, which must be as large as the page, else nothing is copied.
///
/// The caller has loaded *produced* or the state with Acquire before (`[R3]`, `[T2]`): that makes
/// the last records of the page visible here. Records that are BUSY in it will not be committed.
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
/// A record that is not committed yet keeps its BUSY header in the copy and has no payload.
///
/// The copy is a cut through the thread's history: a record that was committed before another one
/// in the copy is in it as committed, too. To that end, what the walk found BUSY is looked at
/// again, once. The headers in the copy are the values that were loaded last; loading them again
/// would tear.
///
/// `copy` must be as large as the page. Words after the last record are left as they were.
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

/// Whether the records of a page that may still be written to end after `words` words, as they
/// did when a copy of that length was made: then a new copy would be the same, if the last one was
/// settled.
#[must_use]
pub fn ends_at(page: &[AtomicU64], words: usize) -> bool {
    page.get(words).is_none_or(|word| word.load(Relaxed) == 0)
}

/// The header of a page, if the page with this number is there: what a reader needs to count the
/// events of a page that it does not copy.
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

/// Walks what was BUSY once more. A walk takes time: a record may be committed after the walk has
/// passed it, and then others, which the walk still finds.
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

/// Words of the record at the start of a copy. Its lengths were bounded when it was made, except
/// that of a LONG record whose second word another process changed since.
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
