//! The producer's side of a ring: reserve, turn, seal.
//!
//! A [`Writer`] is private to its thread and to the signal handlers that interrupt it. It lies in
//! memory that the kernel zeroes in a forked child; a zeroed writer fits nothing, so the child
//! takes the slow path and never writes into its parent's ring.
//!
//! Invariants:
//! 1. `cursor..end` lies within one page of `pages`, or `end` is null.
//! 2. While a reservation is under way, the page turns only in the context that has begun it, and
//!    only if no other one is: so none loses its page, in whatever order they end.
//! 3. A word of the page that is 0 belongs to nobody; who changes it from 0 owns that record.
//! 4. `cursor` is a hint: all words before it belong to records, words behind it may, too.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicPtr, AtomicU64 as Private, compiler_fence};

use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_format::page::{self, PageHeader};
use ringmark_format::record::{self, TIME_EXTEND_WORDS};
use ringmark_format::session::Mode;
use ringmark_format::slot::state;

use crate::protocol::clock_sample::ClockSample;
use crate::protocol::counts::Counts;
use crate::protocol::full_ring::FullRing;
use crate::protocol::observe::HEADER_WORDS;
use crate::protocol::page_words;
use crate::protocol::planted;
use crate::protocol::reservation::Reservation;
use crate::protocol::single_instruction;
use crate::protocol::slot::{SlotGeometry, SlotView};
use crate::protocol::sync::AtomicU64;

mod extended;

/// Nested losses in a row after which the thread goes on in another ring.
pub const ABANDONED_AFTER: u64 = 1024;

/// No page holds more payload words; a larger wish must not wrap around the cursor.
pub const PAYLOAD_WORDS_MAX: u64 = page::PAGE_BYTES_MAX as u64 / 8;

/// What a writer needs to know of its ring, set at attach. Rarely read.
#[derive(Clone, Copy)]
pub struct Ring {
    /// The ring's pages, one after the other.
    pub pages: &'static [AtomicU64],
    /// Geometry, validated; `pages` has its size.
    pub geometry: SlotGeometry,
    /// The slot.
    pub slot: SlotView<'static>,
    /// Index of the slot in the directory.
    pub slot_index: u32,
    /// What to do when the ring is full.
    pub mode: Mode,
    /// Ring id of the claim.
    pub ring_id: u64,
    /// Thread id of the owner.
    pub tid: u32,
    /// Name of the owner, zero-padded.
    pub thread_name: [u8; 16],
}

/// One slot's writer. All zero bytes are a valid writer that is attached to nothing.
#[repr(C, align(64))]
pub struct Writer {
    pub(crate) counts: Counts,
    cursor: AtomicPtr<AtomicU64>,
    end: AtomicPtr<AtomicU64>,
    tick_base: Private,
    clock: Private,
    produced: Private,
    pub(crate) nested_lost: Private,
    /// Not 0 while `ring` is there.
    attached: Private,
    /// The next ring of the same thread; see `own_rings`.
    pub(crate) next: AtomicPtr<Writer>,
    full: FullRing,
    ring: UnsafeCell<MaybeUninit<Ring>>,
}

// SAFETY: a writer is used by one thread at a time (the owner of its slot); the hand-over between
// owners is the slot's state ([T1], [T2]).
unsafe impl Sync for Writer {}

/// Where assembly finds a writer's fields, in bytes. It does what [`Writer::reserve`] does.
pub mod offsets {
    use core::mem::offset_of;

    use super::Writer;
    use crate::protocol::counts;
    pub use crate::protocol::full_ring::offsets as full;

    /// Pointer to the word where the search for an empty one begins.
    pub const CURSOR: usize = offset_of!(Writer, cursor);
    /// Pointer behind the last word of the open page; null: nothing fits.
    pub const END: usize = offset_of!(Writer, end);
    /// u64: reservations begun, each counted by one instruction before anything else is looked at.
    pub const BEGUN: usize = offset_of!(Writer, counts) + counts::BEGUN * 8;
    /// u64: reservations ended, in any order.
    pub const ENDED: usize = offset_of!(Writer, counts) + counts::ENDED * 8;
    /// u64: what the open page's ticks count from.
    pub const TICK_BASE: usize = offset_of!(Writer, tick_base);
    /// u64: records reserved so far.
    pub const RESERVATIONS: usize = offset_of!(Writer, counts) + counts::RECORDS * 8;
    /// u64: number of the clock; see `ringmark_format::session::Clock`.
    pub const CLOCK: usize = offset_of!(Writer, clock);
    /// u64: nested losses in a row.
    pub const NESTED_LOST: usize = offset_of!(Writer, nested_lost);
    /// Where a full ring is remembered.
    pub const FULL: usize = offset_of!(Writer, full);
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// A writer that is attached to nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            counts: Counts::new(),
            cursor: AtomicPtr::new(core::ptr::null_mut()),
            end: AtomicPtr::new(core::ptr::null_mut()),
            tick_base: Private::new(0),
            clock: Private::new(0),
            produced: Private::new(0),
            nested_lost: Private::new(0),
            attached: Private::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
            full: FullRing::new(),
            ring: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Gives the writer a ring and a clock. Page numbers and reservations go on where the slot's
    /// last owner stopped.
    ///
    /// # Safety
    /// The caller owns the slot's claim, and no other context uses this writer.
    pub unsafe fn attach(&self, ring: Ring, clock: u32) {
        #[cfg(not(loom))] // A model's pages have a shorter header.
        debug_assert_eq!(ring.pages.len() * 8, ring.geometry.ring_bytes() as usize);
        let place = self.ring.get();
        // SAFETY: the caller says that nobody else uses this writer.
        unsafe { place.write(MaybeUninit::new(ring)) };
        self.clock.store(u64::from(clock), Relaxed);
        self.counts.none_under_way();
        self.nested_lost.store(0, Relaxed);
        self.next.store(core::ptr::null_mut(), Relaxed);
        self.full.forget();
        self.attached.store(1, Relaxed);
    }

    /// Number of the clock that this writer's events use; 0 = attached to nothing.
    #[inline(always)]
    pub fn clock(&self) -> u32 {
        self.clock.load(Relaxed) as u32
    }

    /// Whether the writer has a ring. `false` in a forked child.
    pub fn is_attached(&self) -> bool {
        self.attached.load(Relaxed) != 0
    }

    /// Records reserved on this ring so far: unchanged between two looks of its thread means that
    /// nothing was recorded in between.
    #[inline(always)]
    pub fn reservations(&self) -> u64 {
        self.counts.records()
    }

    fn ring(&self) -> Option<&Ring> {
        if !self.is_attached() {
            return None;
        }
        // SAFETY: `attached` is set after `ring` was written, by the same thread.
        let ring = unsafe { &*self.ring.get() };
        // SAFETY: as above, it is initialised.
        Some(unsafe { ring.assume_init_ref() })
    }

    /// Reserves a record, on the straight line: `None` for everything that is not the common case
    /// (page full, time to extend, a handler was here, no ring); then
    /// [`Writer::reserve_extended`], then [`Writer::reserve_cold`].
    ///
    /// `now` was read before the call.
    #[inline(always)]
    pub fn reserve(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
    ) -> Option<Reservation<'_>> {
        self.reserve_or_now(type_id, payload_words, now, &mut 0)
    }

    /// The same, and where it is `None`, `again` is `now`: a caller who keeps it for that needs a
    /// register more on the straight line.
    #[inline(always)]
    pub fn reserve_or_now(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
        again: &mut u64,
    ) -> Option<Reservation<'_>> {
        let words = record::record_words(payload_words);
        self.counts.begin();
        let ticks = now.wrapping_sub(self.tick_base.load(Relaxed));
        let at = self.cursor.load(Relaxed);
        let next = at.wrapping_add(words as usize);
        let fits = payload_words <= PAYLOAD_WORDS_MAX && next <= self.end.load(Relaxed);
        if fits && ticks <= u64::from(u32::MAX) {
            // SAFETY: invariant 1: `at` up to `next` lies in the open page, which is mapped for ever.
            let header = unsafe { &*at };
            if self.claim(header, next, words) {
                let commit = record::pack(ticks as u32, type_id, payload_words);
                return Some(Reservation::new(self, header, commit, payload_words, words));
            }
        }
        // The page has not turned since `begin`, so this is `now`.
        *again = ticks.wrapping_add(self.tick_base.load(Relaxed));
        self.counts.end();
        None
    }

    /// Reserves a record in every case; counts the event by its cause if it is lost.
    ///
    /// # Errors
    /// The cause, already counted in the slot; [`Cause::NoRing`] if there is no ring (not counted).
    ///
    /// `base` is given `now` and says what a new page's ticks count from.
    #[cold]
    #[inline(never)]
    pub fn reserve_cold(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
        base: &dyn Fn(u64) -> ClockSample,
    ) -> Result<Reservation<'_>, Cause> {
        let Some(ring) = self.ring() else {
            return Err(Cause::NoRing);
        };
        if payload_words > record::payload_words_max(ring.geometry.page_bytes) {
            ring.slot.count_lost(Cause::Oversize);
            return Err(Cause::Oversize);
        }
        self.counts.begin();
        let reserved = self.reserve_or_turn(ring, type_id, payload_words, now, base);
        if let Err(cause) = reserved {
            ring.slot.count_lost(cause);
            self.counts.end();
        }
        reserved
    }

    fn reserve_or_turn(
        &self,
        ring: &Ring,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
        base: &dyn Fn(u64) -> ClockSample,
    ) -> Result<Reservation<'_>, Cause> {
        loop {
            let ticks = now.wrapping_sub(self.tick_base.load(Relaxed));
            let extended = ticks > u64::from(u32::MAX);
            let words =
                record::record_words(payload_words) + if extended { TIME_EXTEND_WORDS } else { 0 };
            if let Some(header) = self.find_place(words) {
                let reservation = if extended {
                    self.extended(header, type_id, payload_words, now)
                } else {
                    let commit = record::pack(ticks as u32, type_id, payload_words);
                    Reservation::new(self, header, commit, payload_words, words)
                };
                return Ok(reservation);
            }
            self.check_alone()?;
            self.turn(ring, || base(now))?;
        }
    }

    /// Marks the first empty word behind the cursor, if `words` fit there.
    fn find_place(&self, words: u64) -> Option<&AtomicU64> {
        let (at, end) = (self.cursor.load(Relaxed), self.end.load(Relaxed));
        // SAFETY: invariant 1: `cursor..end` lies within the open page, or `end` is null.
        let header = unsafe { page_words::mark(at, end, words) }?;
        self.counts.record();
        let next = core::ptr::from_ref(header).wrapping_add(words as usize);
        self.cursor.store(next.cast_mut(), Relaxed);
        Some(header)
    }

    /// Makes the words from `header` up to `next` a record of the calling context, and moves the
    /// cursor after it. `false`: a handler was faster, and nothing is changed.
    ///
    /// The record is counted in the same context as the mark: the page does not turn in between.
    #[inline(always)]
    fn claim(&self, header: &AtomicU64, next: *mut AtomicU64, words: u64) -> bool {
        let busy = record::pack_span(record::BUSY, words);
        let is_claimed = planted::bump_before_mark(&self.cursor, next, header, busy)
            || single_instruction::mark_if_empty(header, busy) == 0;
        if is_claimed {
            self.counts.record();
            self.cursor.store(next, Relaxed);
        }
        is_claimed
    }

    /// Says that the page may turn: the only reservation under way is the caller's.
    fn check_alone(&self) -> Result<(), Cause> {
        if !self.counts.is_alone() {
            single_instruction::increment(&self.nested_lost);
            return Err(Cause::Nested);
        }
        self.nested_lost.store(0, Relaxed);
        Ok(())
    }

    /// Closes the open page, if there is one. Nothing fits into it afterwards.
    fn close_page(&self) {
        let end = self.end.load(Relaxed);
        if !end.is_null() {
            // SAFETY: invariant 1: `cursor..end` lies within the open page.
            unsafe { page_words::pad(self.cursor.load(Relaxed), end) };
            self.end.store(core::ptr::null_mut(), Relaxed);
        }
    }

    /// Opens the next page. The caller's reservation was the only one under way.
    fn turn(&self, ring: &Ring, base: impl FnOnce() -> ClockSample) -> Result<(), Cause> {
        let number = self.produced.load(Relaxed);
        let pages = u64::from(ring.geometry.pages);
        let consumed = ring.slot.consumed();
        if ring.mode == Mode::Discard && number.wrapping_sub(consumed) >= pages {
            self.close_page();
            self.full.remember(&ring.slot, consumed);
            return Err(Cause::RingFull);
        }
        let base = base(); // The clock is asked while a handler still finds the page open.
        self.close_page();
        self.check_alone()?; // Before the page was closed, a handler may have left a reservation in it.
        self.full.forget();
        let page_words = ring.pages.len() / ring.geometry.pages as usize;
        let first = (number % pages) as usize * page_words;
        let page = &ring.pages[first..first + page_words];
        let header = self.page_header(ring, number, base);
        page_words::open(page, &header);
        ring.slot.publish_produced(number + 1);
        self.produced.store(number + 1, Relaxed);
        self.tick_base.store(header.tick_base, Relaxed);
        self.cursor
            .store(page[HEADER_WORDS..].as_ptr().cast_mut(), Relaxed);
        compiler_fence(SeqCst); // Invariant 1: a handler sees the new cursor before the new end.
        self.end.store(page.as_ptr_range().end.cast_mut(), Relaxed);
        Ok(())
    }

    fn page_header(&self, ring: &Ring, number: u64, base: ClockSample) -> PageHeader {
        PageHeader {
            generation: number + 1,
            ring_id: ring.ring_id,
            tick_base: base.tick,
            mono_base_ns: base.mono_ns,
            first_event: self.counts.records(),
            lost_before: ring.slot.lost_in_all(),
            tid: ring.tid,
            slot: ring.slot_index,
            reserved_word: 0,
            flags: if number == ring.slot.first_page().0 {
                page::FIRST_OF_CLAIM
            } else {
                0
            },
            thread_name: ring.thread_name,
            reserved: [0; 2],
        }
    }

    /// Ends the claim: closes the page, says how many reservations there were, publishes SEALED,
    /// forgets the ring. The thread ends: no context of it comes back to this ring.
    pub fn seal(&self) {
        let Some(ring) = self.ring() else { return };
        self.counts.begin();
        self.close_page();
        ring.slot.set_events_sealed(self.counts.records());
        let slot = ring.slot;
        self.clock.store(0, Relaxed);
        self.attached.store(0, Relaxed);
        slot.publish_state(state::SEALED);
    }

    /// Says in the slot what the thread does with this ring.
    pub(crate) fn publish_state(&self, state: u64) {
        if let Some(ring) = self.ring() {
            ring.slot.publish_state(state);
        }
    }

    /// Whether so many nested events were lost in a row that the open reservation was left behind
    /// by a `longjmp` or `mem::forget`, or is interrupted by a very busy handler.
    pub fn looks_abandoned(&self) -> bool {
        self.nested_lost.load(Relaxed) >= ABANDONED_AFTER
    }
}
