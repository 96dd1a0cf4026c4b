//! One slot, page by page: which pages are there, where they lie, how far we are.

use ringmark_format::codec::{crc32, write};
use ringmark_format::page::PageHeader;
use ringmark_format::slot::state;
use ringmark_format::{PageNumber, RingId, Uuid};
use ringmark_ring::observe::{copy_open, copy_sealed, ends_at, header};
use ringmark_ring::sync::AtomicU64;
use ringmark_ring::{PageCopy, PageRead, RingFile, SlotGeometry, SlotView};
use zerocopy::{FromBytes, IntoBytes};

use crate::batch::Batch;

/// Private state of a slot. Nothing in it is read again from shared memory once validated.
#[derive(Debug, Default, Clone)]
pub(crate) struct SlotReader {
    index: u32,
    claims: u32,
    geometry: Option<SlotGeometry>,
    /// Next page to take.
    next: u64,
    /// Nothing was looked at yet: start at the oldest page.
    at_oldest: bool,
    /// Pages before this are written.
    written: u64,
    /// Pages that were gone before they could be copied.
    pub(crate) skipped: u64,
    /// The same when `written` moved last: what is taken again is skipped again.
    skipped_before: u64,
    /// Reservations in the slot, as last counted.
    pub(crate) events: u64,
    /// The last page of a thread that has ended, when it was taken: what was not committed in it
    /// is padding in the copy.
    walked: Option<u64>,
    /// The open page of the last look at it, with the checksum of what was taken of it, if
    /// anything was.
    lingering: Option<(u64, Option<u32>)>,
    /// The newest page, as far as its records were counted.
    counted: Option<Walk>,
    /// The open page, as far as it was taken.
    taken: Option<Walk>,
    /// Most of the ring that was ever found sealed and not taken, in 1/1024.
    pub(crate) fill: u32,
}

/// How far a page that may still be written to was walked, if nothing before that can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Walk {
    page: u64,
    words: usize,
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

/// What became of taking one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is in the batch.
    Page,
    /// It was not there any more.
    Gone,
    /// The batch is full.
    BatchFull,
}

impl SlotReader {
    /// Starts at page `next`; `None`: at the oldest page that is there.
    pub(crate) fn new(index: u32, next: Option<u64>) -> Self {
        Self {
            index,
            next: next.unwrap_or(0),
            written: next.unwrap_or(0),
            at_oldest: next.is_none(),
            ..Self::default()
        }
    }

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// What waits now. `None`: the slot has no ring, or one whose geometry is impossible.
    ///
    /// *produced* is read before the state: if the state then says "ended", the claim that turned
    /// page `produced - 1` has ended, and that page is sealed, too.
    pub(crate) fn waiting(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<Waiting> {
        let produced = slot.produced();
        let ended = slot.ended();
        let geometry = self.geometry(file, slot)?;
        let sealed_end = if ended {
            produced
        } else {
            produced.saturating_sub(1)
        };
        self.bound_position(produced, sealed_end, u64::from(geometry.pages));
        Some(Waiting {
            geometry,
            sealed_end,
            produced,
            ended,
        })
    }

    /// Keeps `next` within the pages that can be there, whatever shared memory says.
    fn bound_position(&mut self, produced: u64, sealed_end: u64, pages: u64) {
        let oldest = produced.saturating_sub(pages);
        if self.next > produced || self.at_oldest {
            (self.next, self.written) = (oldest, oldest);
            self.at_oldest = false;
        } else if self.next < oldest {
            self.skipped = self.skipped.saturating_add(oldest - self.next);
            self.next = oldest;
        }
        // The open page cannot be taken: to look for it sooner would be of no use.
        let waiting = sealed_end.saturating_sub(self.next) * 1024 / pages;
        self.fill = self.fill.max(waiting as u32);
    }

    /// Pages that are sealed and not written, in 1/1024 of the ring.
    pub(crate) fn held_1024(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<u32> {
        let pages = u64::from(self.geometry(file, slot)?.pages);
        let held = slot.produced().saturating_sub(self.written).min(pages);
        Some((held.saturating_sub(1) * 1024 / pages) as u32)
    }

    fn geometry(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<SlotGeometry> {
        if matches!(slot.state(), state::FREE) {
            return None;
        }
        let claims = slot.claims();
        if self.geometry.is_none() || claims != self.claims {
            let found = slot.geometry();
            self.geometry = found.valid(file.map().bytes()).then_some(found);
            self.claims = claims;
            if let Some(ring) = self.geometry {
                // One call instead of a fault for every few pages.
                file.map()
                    .populate_read(ring.pages_offset, ring.ring_bytes());
            }
        }
        self.geometry
    }

    /// Copies the next page, which is sealed, into the batch.
    pub(crate) fn take_sealed(
        &mut self,
        file: &RingFile,
        session: Uuid,
        waiting: &Waiting,
        batch: &mut Batch,
    ) -> Taken {
        let last_of_claim = waiting.ended && self.next + 1 == waiting.produced;
        let copied = match copy_page(file, waiting.geometry, self.next, batch, last_of_claim) {
            Ok(copied) => copied,
            Err(taken) => {
                self.skip(taken);
                return taken;
            }
        };
        push_page(batch, session, waiting.geometry, self.next, copied, true);
        self.walked = last_of_claim.then_some(self.next).or(self.walked);
        self.next += 1;
        Taken::Page
    }

    /// Passes over the next page if the page behind it already starts before `mono_ns`: then all
    /// its events are older.
    pub(crate) fn skip_before(&mut self, file: &RingFile, waiting: &Waiting, mono_ns: u64) -> bool {
        let behind = self.next + 1;
        if behind >= waiting.produced {
            return false;
        }
        let base = page_words(file, waiting.geometry, behind)
            .and_then(|page| header(page, PageNumber(behind)))
            .map_or(0, |header| header.mono_base_ns);
        let older = base != 0 && base < mono_ns;
        self.next += u64::from(older);
        older
    }

    fn skip(&mut self, taken: Taken) {
        if taken == Taken::Gone {
            self.skipped = self.skipped.saturating_add(1);
            self.next += 1;
        }
    }

    /// Copies the committed records of the open page. The position stays: it may grow.
    pub(crate) fn take_open(
        &mut self,
        file: &RingFile,
        session: Uuid,
        waiting: &Waiting,
        batch: &mut Batch,
    ) -> Taken {
        let copied = match copy_page(file, waiting.geometry, self.next, batch, true) {
            Ok(copied) => copied,
            Err(taken) => return taken,
        };
        if let Some(events) = events_through(batch, waiting.geometry, &copied) {
            self.events = events;
        }
        self.taken = walk_of(self.next, &copied);
        self.counted = self.taken;
        push_page(batch, session, waiting.geometry, self.next, copied, false);
        Taken::Page
    }

    /// Whether the next page is open and holds what [`SlotReader::take_open`] took of it, no more.
    pub(crate) fn has_no_news(&self, file: &RingFile, waiting: &Waiting) -> bool {
        self.next + 1 == waiting.produced && stands(file, waiting.geometry, self.next, self.taken)
    }

    /// Copies the committed records of the open page if it was open at the last look, too, and
    /// has changed since. The position stays.
    pub(crate) fn take_lingering(
        &mut self,
        file: &RingFile,
        session: Uuid,
        waiting: &Waiting,
        batch: &mut Batch,
    ) -> Taken {
        let page = self.next;
        if waiting.ended || page + 1 != waiting.produced {
            return Taken::Gone;
        }
        let Some((_, taken)) = self.lingering.filter(|(seen, _)| *seen == page) else {
            self.lingering = Some((page, None));
            return Taken::Gone;
        };
        let copied = match copy_page(file, waiting.geometry, page, batch, true) {
            Ok(copied) => copied,
            Err(taken) => return taken,
        };
        let sum = page_sum(batch, waiting.geometry, copied.words);
        if copied.records == Some(0) || sum == taken {
            return Taken::Gone;
        }
        push_page(batch, session, waiting.geometry, page, copied, false);
        self.lingering = Some((page, sum));
        Taken::Page
    }

    /// Everything taken is written; with a slot, *consumed* moves over it.
    pub(crate) fn written(&mut self, slot: Option<&SlotView<'_>>) {
        self.skipped_before = self.skipped;
        if self.written != self.next {
            if let Some(slot) = slot {
                slot.release(self.next);
            }
            self.written = self.next;
        }
    }

    /// What was taken before `page` is written; with a slot, *consumed* moves over it.
    pub(crate) fn written_to(&mut self, page: u64, slot: Option<&SlotView<'_>>) {
        let page = page.min(self.next);
        if page <= self.written {
            return;
        }
        if let Some(slot) = slot {
            slot.release(page);
        }
        self.written = page;
        self.skipped_before = self.skipped;
    }

    /// Goes on at `page`, if that is further on.
    pub(crate) fn skip_to(&mut self, page: u64) {
        if self.at_oldest || page > self.next {
            (self.next, self.at_oldest) = (page, false);
        }
    }

    /// What was taken since the last [`SlotReader::written`] was not written: take it again.
    pub(crate) fn rewind(&mut self) {
        self.next = self.written;
        self.skipped = self.skipped_before;
        (self.lingering, self.taken) = (None, None);
    }

    /// Counts the slot's reservations: as sealed, or up to the newest page's last record.
    pub(crate) fn count_events(&mut self, file: &RingFile, slot: &SlotView<'_>, batch: &mut Batch) {
        let Some(waiting) = self.waiting(file, slot) else {
            return;
        };
        if waiting.ended {
            self.events = self.events.max(slot.events_sealed());
            return;
        }
        let Some(newest) = waiting.produced.checked_sub(1) else {
            return;
        };
        if stands(file, waiting.geometry, newest, self.counted) {
            return;
        }
        let Ok(copied) = copy_page(file, waiting.geometry, newest, batch, true) else {
            return;
        };
        if let Some(events) = events_through(batch, waiting.geometry, &copied) {
            self.events = self.events.max(events);
            self.counted = walk_of(newest, &copied);
        }
    }

    /// Where page `number` lies in the file, just as it was copied.
    pub(crate) fn page_offset(&self, number: u64) -> Option<u64> {
        let geometry = self.geometry.filter(|_| self.walked != Some(number))?;
        let index = number % u64::from(geometry.pages);
        Some(geometry.pages_offset + index * u64::from(geometry.page_bytes))
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }
}

/// Copies one page to the batch's page place; walked if `walk`, whole otherwise.
fn copy_page(
    file: &RingFile,
    geometry: SlotGeometry,
    number: u64,
    batch: &mut Batch,
    walk: bool,
) -> Result<PageCopy, Taken> {
    let page = page_words(file, geometry, number).ok_or(Taken::Gone)?;
    let place = batch
        .page_place(geometry.page_bytes)
        .ok_or(Taken::BatchFull)?;
    let copy = if walk { copy_open } else { copy_sealed };
    match copy(page, PageNumber(number), place) {
        PageRead::Copied(copied) => Ok(copied),
        PageRead::NotThere => Err(Taken::Gone),
    }
}

/// The words of the place where page `number` lies.
fn page_words(file: &RingFile, geometry: SlotGeometry, number: u64) -> Option<&[AtomicU64]> {
    let words = geometry.page_bytes as usize / 8;
    let first = (number % u64::from(geometry.pages)) as usize * words;
    file.pages(geometry)?.get(first..first + words)
}

fn walk_of(page: u64, copied: &PageCopy) -> Option<Walk> {
    let words = copied.words;
    copied.settled.then_some(Walk { page, words })
}

/// Whether page `number` was walked and nothing was added to it since: one word is looked at.
fn stands(file: &RingFile, geometry: SlotGeometry, number: u64, walk: Option<Walk>) -> bool {
    let walk = walk.filter(|walk| walk.page == number);
    let page = page_words(file, geometry, number);
    walk.zip(page)
        .is_some_and(|(walk, page)| ends_at(page, walk.words))
}

fn page_header(batch: &mut Batch, geometry: SlotGeometry) -> Option<PageHeader> {
    let place = batch.page_place(geometry.page_bytes)?;
    let (header, _) = PageHeader::read_from_prefix(place.as_bytes()).ok()?;
    Some(header)
}

/// Checksum of the first `words` words at the batch's page place.
fn page_sum(batch: &mut Batch, geometry: SlotGeometry, words: usize) -> Option<u32> {
    let place = batch.page_place(geometry.page_bytes)?;
    Some(crc32(place.get(..words)?.as_bytes()))
}

fn events_through(batch: &mut Batch, geometry: SlotGeometry, copied: &PageCopy) -> Option<u64> {
    let header = page_header(batch, geometry)?;
    header.first_event.checked_add(copied.records?)
}

fn push_page(
    batch: &mut Batch,
    session: Uuid,
    geometry: SlotGeometry,
    number: u64,
    copied: PageCopy,
    sealed: bool,
) {
    let ring = page_header(batch, geometry).map_or(0, |header| header.ring_id);
    let (ring, number) = (RingId(ring), PageNumber(number));
    let header = write::page_header(session, ring, number, 0, geometry.page_bytes, sealed);
    batch.finish_page(header, copied.words);
}
