//! One slot, page by page: which pages wait in it, where they lie, and how far they were taken.
//!
//! Its words are shared with the writer, which may be broken or hostile. Each is loaded once per
//! look, and everything computed from it is bounded by geometry that was validated.

use ringmark_format::PageNumber;
use ringmark_format::block::PageState;
use ringmark_format::slot::state;
use ringmark_ring::observe::header;
use ringmark_ring::{RingFile, SlotGeometry, SlotView};

use crate::pages::batch::Batch;
use crate::pages::page_copy::{
    Copying, NotTaken, SlotPages, Visit, Walk, copy_page, events_through, is_as_walked,
    page_header, page_sum, page_words, push_page,
};
use crate::pages::positions::SlotPosition;
#[cfg(feature = "stream")]
use crate::pages::slot_progress::Hole;
use crate::pages::slot_progress::SlotProgress;
use crate::share::Share1024;

/// What a reader knows of one slot.
#[derive(Debug, Default, Clone)]
pub(crate) struct SlotReader {
    index: u32,
    ring: ClaimedRing,
    progress: SlotProgress,
    open: OpenPages,
    /// The last page of a thread that ended, if its records were walked one by one. The copy has
    /// padding where a record was not committed, so it differs from the page in the ring file.
    walked: Option<u64>,
    /// Reservations in the slot since its first claim, as last counted.
    events: u64,
    /// Largest part of the ring that was sealed and not taken since [`SlotReader::take_fullest`].
    fullest: Share1024,
}

/// Where the ring of a slot lies, as of its last claim.
#[derive(Debug, Default, Clone)]
struct ClaimedRing {
    claims: u32,
    geometry: Option<SlotGeometry>,
}

impl ClaimedRing {
    /// The validated geometry. `None`: the slot has no ring, or one whose geometry is impossible.
    ///
    /// It is read again only for a new claim: between claims no writer changes it.
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

/// What earlier looks at open pages found. Each field lets one kind of look leave out a page that
/// has not grown.
#[derive(Debug, Default, Clone)]
struct OpenPages {
    /// The page that was open at the last look for lingering pages.
    lingering: Option<LingeringPage>,
    /// The newest page, as far as its records were counted.
    counted: Option<Walk>,
    /// The open page, as far as it was taken.
    taken: Option<Walk>,
}

/// A page that was open at two looks: its thread writes little, so it may stay open for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LingeringPage {
    page: u64,
    /// Checksum of the copy that was taken, if one was.
    taken: Option<u32>,
}

impl SlotReader {
    /// A reader that starts at page `next`; `None`: at the oldest page that the ring still has.
    pub(crate) fn new(index: u32, next: Option<u64>) -> Self {
        Self {
            index,
            progress: SlotProgress::new(next),
            ..Self::default()
        }
    }

    /// Index of the slot in the ring directory.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Number of the next page to take.
    pub(crate) fn next(&self) -> u64 {
        self.progress.next
    }

    /// How far the slot was taken.
    pub(crate) fn position(&self) -> SlotPosition {
        SlotPosition {
            slot: self.index,
            next_page: self.progress.next,
        }
    }

    /// Notes pages that are gone from now on, to be asked for with [`SlotReader::take_holes`].
    pub(crate) fn note_holes(&mut self) {
        self.progress.note_holes();
    }

    /// Pages that were found gone since the last call.
    #[cfg(feature = "stream")]
    pub(crate) fn take_holes(&mut self) -> Vec<Hole> {
        self.progress.take_holes()
    }

    /// Pages that were overwritten before they could be copied.
    pub(crate) fn skipped(&self) -> u64 {
        self.progress.skipped()
    }

    /// Events before and between the pages taken: in overwrite mode they were overwritten.
    pub(crate) fn events_between(&self) -> u64 {
        self.progress.events_between()
    }

    /// Reservations in the slot since its first claim, as last counted: the cumulative figure of
    /// COUNTERS, from which decoders find losses.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Largest part of the ring that was found sealed and not taken since the last call.
    pub(crate) fn take_fullest(&mut self) -> Share1024 {
        std::mem::take(&mut self.fullest)
    }

    /// The pages that the slot has now. `None`: it has no ring, or one whose geometry is
    /// impossible.
    ///
    /// *produced* is loaded before the state. If the state then says "ended", the claim that
    /// published page `produced - 1` has ended, and that page is sealed, too.
    pub(crate) fn look(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<SlotPages> {
        let produced = slot.produced();
        let ended = slot.ended();
        let geometry = self.ring.geometry(file, slot)?;
        let sealed_end = if ended {
            produced
        } else {
            produced.saturating_sub(1)
        };
        let pages = u64::from(geometry.pages);
        self.progress.bound(produced, pages);
        // The open page does not count: a reader that came sooner could not take it either.
        let waiting = sealed_end.saturating_sub(self.progress.next);
        self.fullest = self.fullest.max(Share1024::of(waiting, pages));
        Some(SlotPages {
            geometry,
            sealed_end,
            produced,
            ended,
        })
    }

    /// The part of the ring that is sealed and not written, taken or not.
    pub(crate) fn held(&mut self, file: &RingFile, slot: &SlotView<'_>) -> Option<Share1024> {
        let pages = u64::from(self.ring.geometry(file, slot)?.pages);
        let held = slot.produced().saturating_sub(self.progress.written);
        Some(Share1024::of(held.min(pages).saturating_sub(1), pages))
    }

    /// Copies the next page, which is sealed, into the batch; passes over it if it was overwritten.
    ///
    /// The last page of a claim is walked record by record: a thread that was killed leaves a
    /// reservation that is never committed.
    pub(crate) fn take_sealed(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (there, page) = (&visit.there, self.progress.next);
        let is_last_of_claim = there.ended && page + 1 == there.produced;
        let copying = match is_last_of_claim {
            true => Copying::Walked,
            false => Copying::Whole,
        };
        // Loaded before the copy is checked: of two pages the newer one is overwritten later.
        let end = first_event(visit, page + 1);
        let copied = copy_page(visit.file, there.geometry, page, batch, copying);
        let copied = copied.inspect_err(|not_taken| {
            if *not_taken == NotTaken::Gone {
                self.progress.skip();
            }
        })?;
        let end = end.or_else(|| events_through(batch, there.geometry, &copied));
        self.count_taken(visit, end, batch);
        push_page(visit, page, copied, PageState::Sealed, batch);
        self.walked = is_last_of_claim.then_some(page).or(self.walked);
        self.progress.next += 1;
        Ok(())
    }

    /// Counts the events of the page at the batch's page place, which end at `end`, if that is known.
    fn count_taken(&mut self, visit: &Visit<'_>, end: Option<u64>, batch: &mut Batch) {
        let header = page_header(batch, visit.there.geometry);
        let first = header.map_or(0, |header| header.first_event);
        self.progress.took(first, end.unwrap_or(first));
    }

    /// Passes over the next page if all its events are older than `mono_ns`, which shows when the
    /// page after it starts before that time. Returns whether it did.
    pub(crate) fn skip_before(&mut self, file: &RingFile, there: &SlotPages, mono_ns: u64) -> bool {
        let after = self.progress.next + 1;
        if after >= there.produced {
            return false;
        }
        let header_of = |page| header(page_words(file, there.geometry, page)?, PageNumber(page));
        let Some(next) = header_of(after) else {
            return false;
        };
        let older = next.mono_base_ns != 0 && next.mono_base_ns < mono_ns;
        if older {
            // Its events are left out, not overwritten.
            let first = header_of(self.progress.next).map(|header| header.first_event);
            let end = next.first_event;
            self.progress.took(first.unwrap_or(end), end);
            self.progress.next = after;
        }
        older
    }

    /// Copies the committed records of the open page. The position stays: the page may grow, and is
    /// then taken again as a whole.
    pub(crate) fn take_open(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (geometry, page) = (visit.there.geometry, self.progress.next);
        let copied = copy_page(visit.file, geometry, page, batch, Copying::Walked)?;
        let end = events_through(batch, geometry, &copied);
        self.events = end.unwrap_or(self.events);
        self.count_taken(visit, end, batch);
        self.open.taken = Walk::of(page, &copied);
        self.open.counted = self.open.taken;
        push_page(visit, page, copied, PageState::Open, batch);
        Ok(())
    }

    /// Copies what is left of a slot: pages up to the end of the visit, then the page after them,
    /// which was open when the visit began.
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
        if self.progress.next >= visit.there.produced {
            return Err(NotTaken::Gone);
        }
        self.take_open(visit, batch)
    }

    /// As [`SlotReader::take_tail`], but leaves out an open page that has not grown since
    /// [`SlotReader::take_open`] took it.
    pub(crate) fn take_news(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (there, page) = (&visit.there, self.progress.next);
        let is_open = page + 1 == there.produced;
        if is_open && is_as_walked(visit.file, there.geometry, page, self.open.taken) {
            return Err(NotTaken::Gone);
        }
        self.take_tail(visit, batch)
    }

    /// Copies the committed records of the open page if the last call found the same page open, and
    /// if the records have changed since it was taken. The position stays.
    pub(crate) fn take_lingering(
        &mut self,
        visit: &Visit<'_>,
        batch: &mut Batch,
    ) -> Result<(), NotTaken> {
        let (there, page) = (&visit.there, self.progress.next);
        if there.ended || page + 1 != there.produced {
            return Err(NotTaken::Gone);
        }
        let Some(seen) = self.open.lingering.filter(|seen| seen.page == page) else {
            self.open.lingering = Some(LingeringPage { page, taken: None });
            return Err(NotTaken::Gone);
        };
        let copied = copy_page(visit.file, there.geometry, page, batch, Copying::Walked)?;
        let taken = page_sum(batch, there.geometry, copied.words);
        if copied.records == Some(0) || taken == seen.taken {
            return Err(NotTaken::Gone);
        }
        let end = events_through(batch, there.geometry, &copied);
        self.count_taken(visit, end, batch);
        push_page(visit, page, copied, PageState::Open, batch);
        self.open.lingering = Some(LingeringPage { page, taken });
        Ok(())
    }

    /// Counts every page taken as written. With a slot, *consumed* moves over them: the writer may
    /// reuse them from then on.
    pub(crate) fn written(&mut self, slot: Option<&SlotView<'_>>) {
        release(self.progress.write_all(), slot);
    }

    /// As [`SlotReader::written`], for the pages before `page`.
    pub(crate) fn written_to(&mut self, page: u64, slot: Option<&SlotView<'_>>) {
        release(self.progress.write_to(page), slot);
    }

    /// Goes on at `page`; never goes back.
    pub(crate) fn skip_to(&mut self, page: u64) {
        self.progress.skip_to(page);
    }

    /// The same: another reader took the pages before it, or this one did.
    pub(crate) fn skip_taken(&mut self, page: u64) {
        self.progress.skip_taken(page);
    }

    /// Goes back to the written position: what was taken since is taken again.
    pub(crate) fn rewind(&mut self) {
        self.progress.rewind();
        (self.open.lingering, self.open.taken) = (None, None);
    }

    /// Counts the slot's reservations. A thread that ended stated them; otherwise those up to the
    /// newest page's last record are counted. `batch` serves as a buffer and is left as it was.
    pub(crate) fn count_events(&mut self, file: &RingFile, slot: &SlotView<'_>, batch: &mut Batch) {
        let Some(there) = self.look(file, slot) else {
            return;
        };
        if there.ended {
            self.events = self.events.max(slot.events_sealed());
            return;
        }
        let Some(newest) = there.produced.checked_sub(1) else {
            return;
        };
        if is_as_walked(file, there.geometry, newest, self.open.counted) {
            return;
        }
        let Ok(copied) = copy_page(file, there.geometry, newest, batch, Copying::Walked) else {
            return;
        };
        if let Some(events) = events_through(batch, there.geometry, &copied) {
            self.events = self.events.max(events);
            self.open.counted = Walk::of(newest, &copied);
        }
    }

    /// Offset in the ring file at which page `number` lies with the very bytes that were copied.
    /// `None`: the copy of this page differs, see `walked`, or the slot was not looked at.
    pub(crate) fn page_offset(&self, number: u64) -> Option<u64> {
        let geometry = self.ring.geometry.filter(|_| self.walked != Some(number))?;
        let index = number % u64::from(geometry.pages);
        Some(geometry.pages_offset + index * u64::from(geometry.page_bytes))
    }
}

/// Reservations of the slot before a page; `None`: the page is not there.
fn first_event(visit: &Visit<'_>, page: u64) -> Option<u64> {
    let words = page_words(visit.file, visit.there.geometry, page)?;
    header(words, PageNumber(page)).map(|header| header.first_event)
}

/// Moves *consumed* to a position, if there is one and the caller consumes the slot.
fn release(to: Option<u64>, slot: Option<&SlotView<'_>>) {
    if let (Some(page), Some(slot)) = (to, slot) {
        slot.release(page);
    }
}
