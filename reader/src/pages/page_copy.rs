//! Pages copied out of a ring into a batch.

use ringmark_format::codec::{crc32, write};
use ringmark_format::page::PageHeader;
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_ring::observe::{copy_open, copy_sealed, ends_at};
use ringmark_ring::sync::AtomicU64;
use ringmark_ring::{PageCopy, PageRead, RingFile, SlotGeometry};
use zerocopy::{FromBytes, IntoBytes};

use crate::pages::batch::Batch;

/// How far a page that may still be written to was walked, if nothing before that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walk {
    page: u64,
    words: usize,
}

impl Walk {
    /// Of a page that was walked.
    pub(crate) fn of(page: u64, copied: &PageCopy) -> Option<Self> {
        let words = copied.words;
        copied.settled.then_some(Self { page, words })
    }
}

/// Pages that wait in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) geometry: SlotGeometry,
    /// First page that is not sealed; pages before it and from `next` on are.
    pub(crate) sealed_end: u64,
    pub(crate) produced: u64,
    pub(crate) ended: bool,
}

/// A pass that comes by a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit<'a> {
    pub(crate) file: &'a RingFile,
    pub(crate) session: Uuid,
    pub(crate) waiting: Waiting,
    /// First page that was not sealed when the pass came by: a fast writer must not keep it here.
    pub(crate) end: u64,
}

/// Why a page was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// It is not there, or holds nothing new.
    Gone,
    /// The batch is full.
    BatchFull,
}

/// How a page is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copying {
    /// Whole: it is sealed.
    Whole,
    /// Record by record, up to the first that is not committed.
    Walked,
}

/// Whether a page will get more records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageState {
    Sealed,
    Open,
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

/// The words of the place where page `number` lies.
pub(crate) fn page_words(
    file: &RingFile,
    geometry: SlotGeometry,
    number: u64,
) -> Option<&[AtomicU64]> {
    let words = geometry.page_bytes as usize / 8;
    let first = (number % u64::from(geometry.pages)) as usize * words;
    file.pages(geometry)?.get(first..first + words)
}

/// Whether page `number` was walked and nothing was added to it since: one word is looked at.
pub(crate) fn stands(
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
fn page_header(batch: &mut Batch, geometry: SlotGeometry) -> Option<PageHeader> {
    let place = batch.page_place(geometry.page_bytes)?;
    let (header, _) = PageHeader::read_from_prefix(place.as_bytes()).ok()?;
    Some(header)
}

/// Checksum of the first `words` words at the batch's page place.
pub(crate) fn page_sum(batch: &mut Batch, geometry: SlotGeometry, words: usize) -> Option<u32> {
    let place = batch.page_place(geometry.page_bytes)?;
    Some(crc32(place.get(..words)?.as_bytes()))
}

/// Reservations of the slot through the page at the batch's page place.
pub(crate) fn events_through(
    batch: &mut Batch,
    geometry: SlotGeometry,
    copied: &PageCopy,
) -> Option<u64> {
    let header = page_header(batch, geometry)?;
    header.first_event.checked_add(copied.records?)
}

/// Makes a block of the page that was copied to the batch's page place.
pub(crate) fn push_page(
    visit: &Visit<'_>,
    number: u64,
    copied: PageCopy,
    state: PageState,
    batch: &mut Batch,
) {
    let geometry = visit.waiting.geometry;
    let ring = page_header(batch, geometry).map_or(0, |header| header.ring_id);
    let (ring, number) = (RingId(ring), PageNumber(number));
    let sealed = state == PageState::Sealed;
    let header = write::page_header(visit.session, ring, number, 0, geometry.page_bytes, sealed);
    batch.finish_page(header, copied.words);
}
