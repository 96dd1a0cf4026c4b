//! One slot, page by page: which pages are there, where they lie, how far they were taken.

use ringmark_format::PageNumber;
use ringmark_format::slot::state;
use ringmark_ring::observe::header;
use ringmark_ring::{RingFile, SlotGeometry, SlotView};

use crate::pages::batch::Batch;
use crate::pages::page_copy::{
    Copying, NotTaken, PageState, Visit, Waiting, Walk, copy_page, events_through, page_sum,
    page_words, push_page, stands,
};
use crate::pages::positions::SlotPosition;
use crate::pages::slot_progress::SlotProgress;

/// Private state of a slot. Nothing in it is read again from shared memory once validated.
#[derive(Debug, Default, Clone)]
pub(crate) struct SlotReader {
    index: u32,
    mapped: Mapped,
    progress: SlotProgress,
    open: OpenPages,
    /// The last page of a thread that has ended, when it was taken: what was not committed in it
    /// is padding in the copy.
    walked: Option<u64>,
    /// Reservations in the slot, as last counted.
    events: u64,
    /// Most of the ring that was found sealed and not taken since that was asked, in 1/1024.
    fill_1024: u32,
}

/// Where the ring of a slot lies, as of its last claim.
#[derive(Debug, Default, Clone)]
struct Mapped {
    claims: u32,
    geometry: Option<SlotGeometry>,
}

impl Mapped {
    /// The validated geometry. `None`: the slot has no ring, or one whose geometry is impossible.
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
}

/// What is known of open pages from earlier looks at them.
#[derive(Debug, Default, Clone)]
struct OpenPages {
    /// The open page of the last look.
    lingering: Option<Lingering>,
    /// The newest page, as far as its records were counted.
    counted: Option<Walk>,
    /// The open page, as far as it was taken.
    taken: Option<Walk>,
}

/// An open page that may stay open for long: its thread writes little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lingering {
    page: u64,
    /// Checksum of what was taken of it, if anything was.
    taken: Option<u32>,
}

impl SlotReader {
    /// Starts at page `next`; `None`: at the oldest page that is there.
    pub(crate) fn new(index: u32, next: Option<u64>) -> Self {
        Self {
            index,
            progress: SlotProgress::new(next),
            ..Self::default()
        }
    }

    /// Index of the slot.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Next page to take.
    pub(crate) fn next(&self) -> u64 {
        self.progress.next
    }

    /// How far it was taken.
    pub(crate) fn position(&self) -> SlotPosition {
        SlotPosition {
            slot: self.index,
            next_page: self.progress.next,
        }
    }

    /// Pages that were gone before they could be copied.
    pub(crate) fn skipped(&self) -> u64 {
        self.progress.skipped
    }

    /// Reservations in the slot, as last counted.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Most of the ring that was found sealed and not taken since the last call, in 1/1024.
    pub(crate) fn take_fill_1024(&mut self) -> u32 {
        std::mem::take(&mut self.fill_1024)
    }

    /// What waits now. `None`: the slot has no ring, or one whose geometry is impossible.
    ///
    /// *produced* is read before the state: if the state then says "ended", the claim that turned
    /// page `produced - 1` has ended, and that page is sealed, too.
    pub(crate) fn waiting(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<Waiting> {
        let produced = slot.produced();
        let ended = slot.ended();
        let geometry = self.mapped.geometry(file, slot)?;
        let sealed_end = if ended {
            produced
        } else {
            produced.saturating_sub(1)
        };
        let pages = u64::from(geometry.pages);
        self.progress.bound(produced, pages);
        // The open page cannot be taken: to look for it sooner would be of no use.
        let waiting = sealed_end.saturating_sub(self.progress.next) * 1024 / pages;
        self.fill_1024 = self.fill_1024.max(waiting as u32);
        Some(Waiting {
            geometry,
            sealed_end,
            produced,
            ended,
        })
    }

    /// Pages that are sealed and not written, in 1/1024 of the ring.
    pub(crate) fn held_1024(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<u32> {
        let pages = u64::from(self.mapped.geometry(file, slot)?.pages);
        let held = slot.produced().saturating_sub(self.progress.written);
        Some((held.min(pages).saturating_sub(1) * 1024 / pages) as u32)
    }

    /// Copies the next page, which is sealed, into the batch; passes over it if it is gone.
    pub(crate) fn take_sealed(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (waiting, page) = (&visit.waiting, self.progress.next);
        let is_last_of_claim = waiting.ended && page + 1 == waiting.produced;
        let copying = match is_last_of_claim {
            true => Copying::Walked,
            false => Copying::Whole,
        };
        let copied = copy_page(visit.file, waiting.geometry, page, batch, copying);
        let copied = copied.inspect_err(|not_taken| {
            if *not_taken == NotTaken::Gone {
                self.progress.skip();
            }
        })?;
        push_page(visit, page, copied, PageState::Sealed, batch);
        self.walked = is_last_of_claim.then_some(page).or(self.walked);
        self.progress.next += 1;
        Ok(())
    }

    /// Passes over the next page if the page after it already starts before `mono_ns`: then all
    /// its events are older.
    pub(crate) fn skip_before(&mut self, file: &RingFile, waiting: &Waiting, mono_ns: u64) -> bool {
        let after = self.progress.next + 1;
        if after >= waiting.produced {
            return false;
        }
        let base = page_words(file, waiting.geometry, after)
            .and_then(|page| header(page, PageNumber(after)))
            .map_or(0, |header| header.mono_base_ns);
        let older = base != 0 && base < mono_ns;
        self.progress.next += u64::from(older);
        older
    }

    /// Copies the committed records of the open page. The position stays: it may grow.
    pub(crate) fn take_open(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (geometry, page) = (visit.waiting.geometry, self.progress.next);
        let copied = copy_page(visit.file, geometry, page, batch, Copying::Walked)?;
        if let Some(events) = events_through(batch, geometry, &copied) {
            self.events = events;
        }
        self.open.taken = Walk::of(page, &copied);
        self.open.counted = self.open.taken;
        push_page(visit, page, copied, PageState::Open, batch);
        Ok(())
    }

    /// Copies what is left of a slot: pages up to the end of the visit, then the one after them,
    /// which was open when the pass came by.
    pub(crate) fn take_tail(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        while self.progress.next < visit.end {
            if self.take_sealed(visit, batch) == Err(NotTaken::BatchFull) {
                return Err(NotTaken::BatchFull);
            }
        }
        if self.progress.next >= visit.waiting.produced {
            return Err(NotTaken::Gone);
        }
        self.take_open(visit, batch)
    }

    /// As [`SlotReader::take_tail`], unless the next page is open and holds what
    /// [`SlotReader::take_open`] took of it, no more.
    pub(crate) fn take_news(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (waiting, page) = (&visit.waiting, self.progress.next);
        let is_open = page + 1 == waiting.produced;
        if is_open && stands(visit.file, waiting.geometry, page, self.open.taken) {
            return Err(NotTaken::Gone);
        }
        self.take_tail(visit, batch)
    }

    /// Copies the committed records of the open page if it was open at the last look, too, and
    /// has changed since. The position stays.
    pub(crate) fn take_lingering(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (waiting, page) = (&visit.waiting, self.progress.next);
        if waiting.ended || page + 1 != waiting.produced {
            return Err(NotTaken::Gone);
        }
        let Some(seen) = self.open.lingering.filter(|seen| seen.page == page) else {
            self.open.lingering = Some(Lingering { page, taken: None });
            return Err(NotTaken::Gone);
        };
        let copied = copy_page(visit.file, waiting.geometry, page, batch, Copying::Walked)?;
        let taken = page_sum(batch, waiting.geometry, copied.words);
        if copied.records == Some(0) || taken == seen.taken {
            return Err(NotTaken::Gone);
        }
        push_page(visit, page, copied, PageState::Open, batch);
        self.open.lingering = Some(Lingering { page, taken });
        Ok(())
    }

    /// Takes everything that was taken as written; with a slot, *consumed* moves over it.
    pub(crate) fn written(&mut self, slot: Option<&SlotView<'_>>) {
        release(self.progress.write_all(), slot);
    }

    /// Takes what was taken before `page` as written; with a slot, *consumed* moves over it.
    pub(crate) fn written_to(&mut self, page: u64, slot: Option<&SlotView<'_>>) {
        release(self.progress.write_to(page), slot);
    }

    /// Goes on at `page`, if that is further on.
    pub(crate) fn skip_to(&mut self, page: u64) {
        self.progress.skip_to(page);
    }

    /// Goes back to what is written: what was taken since then is taken again.
    pub(crate) fn rewind(&mut self) {
        self.progress.rewind();
        (self.open.lingering, self.open.taken) = (None, None);
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
        if stands(file, waiting.geometry, newest, self.open.counted) {
            return;
        }
        let Ok(copied) = copy_page(file, waiting.geometry, newest, batch, Copying::Walked) else {
            return;
        };
        if let Some(events) = events_through(batch, waiting.geometry, &copied) {
            self.events = self.events.max(events);
            self.open.counted = Walk::of(newest, &copied);
        }
    }

    /// Offset of page `number` in the file, just as it was copied.
    pub(crate) fn page_offset(&self, number: u64) -> Option<u64> {
        let geometry = self
            .mapped
            .geometry
            .filter(|_| self.walked != Some(number))?;
        let index = number % u64::from(geometry.pages);
        Some(geometry.pages_offset + index * u64::from(geometry.page_bytes))
    }
}

/// Moves *consumed* to a position, if there is one and a slot to move it in.
fn release(to: Option<u64>, slot: Option<&SlotView<'_>>) {
    if let (Some(page), Some(slot)) = (to, slot) {
        slot.release(page);
    }
}
