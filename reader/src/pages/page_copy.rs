//! One page, copied out of a ring into a batch.
//!
//! A page may change while it is copied: its writer goes on in an open page, and in overwrite mode
//! it reuses any page. The functions of [`ringmark_ring::observe`] check the page's number before
//! and after the copy; what changed is reported as not there.

use ringmark_format::block::PageState;
use ringmark_format::codec::{crc32, write};
use ringmark_format::page::PageHeader;
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_ring::observe::{copy_open, copy_sealed, ends_at};
use ringmark_ring::sync::AtomicU64;
use ringmark_ring::{PageCopy, PageRead, RingFile, SlotGeometry};
use zerocopy::{FromBytes, IntoBytes};

use crate::pages::batch::Batch;

/// How far the records of an open page were walked. It exists only where no record before its end
/// can change any more, so that one look at the next word says whether the page has grown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walk {
    page: u64,
    words: usize,
}

impl Walk {
    /// The walk that made a copy of `page`; `None`: a record in it was still being written.
    pub(crate) fn of(page: u64, copied: &PageCopy) -> Option<Self> {
        let words = copied.words;
        copied.settled.then_some(Self { page, words })
    }
}

/// Which pages a slot has, as of one look at its shared words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotPages {
    /// Where the pages lie, validated.
    pub(crate) geometry: SlotGeometry,
    /// First page that is not sealed; the pages from the reader's position up to it are.
    pub(crate) sealed_end: u64,
    /// Pages produced, the open one included.
    pub(crate) produced: u64,
    /// The thread has ended: all its pages are sealed.
    pub(crate) ended: bool,
}

/// A visit of a pass to one slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) file: &'a RingFile,
    /// The session's uuid for the blocks that the pages become.
    pub(crate) session: Uuid,
    pub(crate) there: SlotPages,
    /// First page that was not sealed when the visit began; see [`crate::pages::pass`].
    pub(crate) end: u64,
}

/// Why a page was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// It was overwritten, does not exist yet, or holds nothing new.
    Gone,
    /// The batch has no room for it: it waits.
    BatchFull,
}

/// How a page is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copying {
    /// All its words at once: it is sealed.
    Whole,
    /// Record by record, up to the first one that is not committed.
    Walked,
}

/// Copies one page to the batch's page place.
pub(crate) fn copy_page(
    file: &RingFile,
    geometry: SlotGeometry,
    number: u64,
    batch: &mut Batch,
    copying: Copying,
) -> Result<PageCopy, NotTaken> {
    let page = page_words(file, geometry, number).ok_or(NotTaken::Gone)?;
    let place = batch
        .page_place(geometry.page_bytes)
        .ok_or(NotTaken::BatchFull)?;
    let copy = match copying {
        Copying::Whole => copy_sealed,
        Copying::Walked => copy_open,
    };
    match copy(page, PageNumber(number), place) {
        PageRead::Copied(copied) => Ok(copied),
        PageRead::NotThere => Err(NotTaken::Gone),
    }
}

/// The words of the ring's place for page `number`; another page may lie there by now.
pub(crate) fn page_words(
    file: &RingFile,
    geometry: SlotGeometry,
    number: u64,
) -> Option<&[AtomicU64]> {
    let words = geometry.page_bytes as usize / 8;
    let first = (number % u64::from(geometry.pages)) as usize * words;
    file.pages(geometry)?.get(first..first + words)
}

/// Whether page `number` still ends where `walk` ended. One word is loaded.
pub(crate) fn is_as_walked(
    file: &RingFile,
    geometry: SlotGeometry,
    number: u64,
    walk: Option<Walk>,
) -> bool {
    let walk = walk.filter(|walk| walk.page == number);
    let page = page_words(file, geometry, number);
    walk.zip(page)
        .is_some_and(|(walk, page)| ends_at(page, walk.words))
}

/// The header of the page at the batch's page place.
pub(crate) fn page_header(batch: &mut Batch, geometry: SlotGeometry) -> Option<PageHeader> {
    let place = batch.page_place(geometry.page_bytes)?;
    let (header, _) = PageHeader::read_from_prefix(place.as_bytes()).ok()?;
    Some(header)
}

/// Checksum of the first `words` words at the batch's page place.
pub(crate) fn page_sum(batch: &mut Batch, geometry: SlotGeometry, words: usize) -> Option<u32> {
    let place = batch.page_place(geometry.page_bytes)?;
    Some(crc32(place.get(..words)?.as_bytes()))
}

/// Reservations of the slot up to the end of the page at the batch's page place: those before the
/// page, which its header states, and its own records. `None`: the copy did not count records.
pub(crate) fn events_through(
    batch: &mut Batch,
    geometry: SlotGeometry,
    copied: &PageCopy,
) -> Option<u64> {
    let header = page_header(batch, geometry)?;
    header.first_event.checked_add(copied.records?)
}

/// Makes a PAGE block of the page that was copied to the batch's page place.
pub(crate) fn push_page(
    visit: &Visit<'_>,
    number: u64,
    copied: PageCopy,
    state: PageState,
    batch: &mut Batch,
) {
    let geometry = visit.there.geometry;
    let ring = page_header(batch, geometry).map_or(0, |header| header.ring_id);
    let (ring, number) = (RingId(ring), PageNumber(number));
    let header = write::page_header(visit.session, ring, number, 0, geometry.page_bytes, state);
    batch.finish_page(header, copied.words);
}
