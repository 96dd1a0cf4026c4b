//! The producer's side of a ring: reserve, switch the page, seal.
//!
//! A [`Writer`] is private to its thread and to the signal handlers that interrupt it. The thread
//! and its handlers are called *contexts*: a handler runs to its end before the context that it
//! interrupted goes on, so contexts nest and never run at the same time.
//!
//! # The three ways to reserve
//!
//! | function | when it is enough | cost |
//! | --- | --- | --- |
//! | [`Writer::reserve`] | the record fits, its tick is within 32 bits of the page's | one compare-exchange without a bus lock |
//! | [`Writer::reserve_extended`] | the record fits, the page is older than 32 bits of ticks | two words more, for the whole tick |
//! | [`Writer::reserve_cold`] | all other cases | may switch the page: one page of zeros to write |
//!
//! A caller tries them in this order with the same `now`. The first two change nothing when they
//! return `None`. The last one always ends in a reservation or in an event that is counted as lost.
//!
//! # A step of `reserve`, and what a handler may do around it
//!
//! 1. `begin` counts a reservation as under way. From here on no handler switches the page, so
//!    `cursor`, `end` and `tick_base` describe one page until the reservation ends.
//! 2. `cursor` and `end` are read. A handler that comes now may take words from `cursor` on.
//! 3. The header word goes from 0 to BUSY with the record's length, in one instruction. If a
//!    handler has taken the word, the instruction says so, and the cold path looks for the next.
//! 4. The record is counted and `cursor` moves. A handler that comes before starts at the old
//!    cursor and steps over the record; one that emitted before is stepped over by step 3.
//! 5. Commit or cancel stores the header word, then `end` counts the reservation as ended.
//!
//! # Fork
//!
//! A writer lies in memory that the kernel zeroes in a forked child (`MADV_WIPEONFORK`). A zeroed
//! writer fits nothing and has no ring, so the child takes the cold path and never writes into its
//! parent's ring. A reservation that the child inherits is committed into private zeros, which the
//! producer maps in place of the parent's file.
//!
//! # Invariants
//!
//! 1. `cursor..end` lies within one page of `pages`, or `end` is null.
//! 2. While a reservation is under way, only the context that began it switches the page, and only
//!    if no other one is under way: so none loses its page, in whatever order they end.
//! 3. A page word that is 0 belongs to no record. The context that changes it from 0 owns the
//!    record that starts there, until it commits or cancels it.
//! 4. `cursor` is a hint: all words before it belong to records, and words from it on may, too.
//! 5. Pages are never unmapped while a writer points to them: a pointer into a page stays valid.
//! 6. A writer is never moved or freed. Its memory is used again by the next owner of its slot.
//! 7. `ring` is initialised while `attached` is not 0.
//! 8. One thread at a time uses a writer. Its slot's state hands it to the next one (`[T1]`,
//!    `[T2]`).

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_format::page;
use ringmark_format::record::{self, TIME_EXTEND_WORDS};
use ringmark_format::session::Mode;

use crate::protocol::clock_sample::ClockSample;
use crate::protocol::counts::Counts;
use crate::protocol::full_ring::FullRing;
use crate::protocol::page_words;
use crate::protocol::reservation::Reservation;
use crate::protocol::single_instruction;
use crate::protocol::slot::{SlotGeometry, SlotView};
use crate::protocol::span_stack::SpanStack;
use crate::protocol::sync::AtomicU64;
use crate::protocol::sync::private::{AtomicPtr, AtomicU64 as Private};

mod extended;
mod memory;
pub mod offsets;
mod page_switch;
mod waits;

/// Nested losses in a row after which a thread goes on in another ring although it is in a signal
/// handler: see `own_rings`. A busy handler takes no second ring for the few events that it loses.
pub const HANDLER_GOES_ON_AFTER: u64 = 1024;

/// Rings that a thread has at most. One that leaves more reservations behind loses events, so that
/// it takes no other thread's memory.
pub const RINGS_MAX: usize = 16;

/// Largest payload that is compared with the room in a page, in words.
///
/// No page holds more, so a larger request cannot fit; without this limit it could wrap around the
/// cursor and seem to.
pub const PAYLOAD_WORDS_MAX: u64 = page::PAGE_BYTES_MAX as u64 / 8;

/// What a writer needs to know of its ring, set at attach. Read when a page is switched, never
/// on the straight line.
///
/// The geometry was validated by the caller. The writer does not read it again from the slot, so a
/// damaged directory cannot lead it out of its pages.
#[derive(Clone, Copy)]
pub struct Ring {
    /// The words of all pages, one page after the other.
    pub pages: &'static [AtomicU64],
    /// Geometry, validated; `pages` has exactly its size.
    pub geometry: SlotGeometry,
    /// The slot's stack of open spans, if the session has room for one.
    pub stack: Option<&'static SpanStack>,
    /// The slot: *produced*, *consumed* and the counts of lost events.
    pub slot: SlotView<'static>,
    /// Index of the slot in the directory, for page headers.
    pub slot_index: u32,
    /// What a full ring gives up: the new event (discard) or the oldest page (overwrite).
    pub mode: Mode,
    /// Ring id of the claim, for page headers: tells this claim's pages from earlier ones.
    pub ring_id: u64,
    /// Thread id of the owner in its pid namespace, for page headers.
    pub tid: u32,
    /// Name of the owner when it attached, zero-padded, for page headers.
    pub thread_name: [u8; 16],
}

/// One slot's writer. All zero bytes are a valid writer that is attached to nothing.
///
/// Its words are atomics so that a handler and the context it interrupts may both use them through
/// `&Writer`. All loads and stores are relaxed: no other thread looks at them, but at the number of
/// pages without memory. What must not be split by a handler is one instruction; what must not be moved
/// past another store is held by a compiler fence.
///
/// The layout is `repr(C)` because assembly reserves records, too: see [`offsets`].
#[repr(C, align(64))]
pub struct Writer {
    pub(crate) counts: Counts,
    /// Where the search for an empty word begins (invariant 4).
    cursor: AtomicPtr<AtomicU64>,
    /// After the last word of the open page; null: no page is open, nothing fits.
    end: AtomicPtr<AtomicU64>,
    /// What the open page's ticks count from.
    tick_base: Private,
    /// Number of the session's clock; 0: not attached.
    clock: Private,
    /// The frame that the next open span gets; see `open_spans`. Null: there is no stack.
    pub(crate) top: AtomicPtr<AtomicU64>,
    /// The slot's *produced*, which only this writer changes: number of the next page.
    produced: Private,
    /// Nested losses in a row; see [`HANDLER_GOES_ON_AFTER`].
    pub(crate) nested_lost: Private,
    /// Not 0 while `ring` is there.
    attached: Private,
    /// The stack of open spans of the thread, that of its first ring; null: there is none.
    pub(crate) stack: AtomicPtr<SpanStack>,
    /// The next ring of the same thread; see `own_rings`.
    pub(crate) next: AtomicPtr<Writer>,
    full: FullRing,
    /// A wait for room that no record tells of yet: ticks of its beginning (0: none) and its end.
    untold_wait: [Private; 2],
    /// Pages at the ring's end that have no memory yet; see `memory`.
    without_memory: Private,
    ring: UnsafeCell<MaybeUninit<Ring>>,
}

// SAFETY: invariant 8: the owner of the slot uses it, and no other thread.
unsafe impl Sync for Writer {}

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
            top: AtomicPtr::new(core::ptr::null_mut()),
            produced: Private::new(0),
            nested_lost: Private::new(0),
            attached: Private::new(0),
            stack: AtomicPtr::new(core::ptr::null_mut()),
            next: AtomicPtr::new(core::ptr::null_mut()),
            full: FullRing::new(),
            untold_wait: [const { Private::new(0) }; 2],
            without_memory: Private::new(0),
            ring: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    /// Gives the writer a ring and a clock. Page numbers and the count of records go on where the
    /// slot's last owner stopped: a writer belongs to its slot, not to a thread.
    ///
    /// No page is open afterwards. The first record switches one in, through
    /// [`Writer::reserve_cold`].
    ///
    /// # Safety
    /// The caller owns the slot's claim, so that no other thread uses this writer (invariant 8).
    /// `ring.pages` and the writer live as long as the process (invariants 5 and 6).
    pub unsafe fn attach(&self, ring: Ring, clock: u32) {
        #[cfg(not(loom))] // A model's pages have a shorter header.
        debug_assert_eq!(ring.pages.len() * 8, ring.geometry.ring_bytes() as usize);
        debug_assert!(
            !self.is_attached(),
            "invariant 8: the last owner has sealed it"
        );
        crate::arch::prepare();
        self.set_stack(ring.stack);
        let place = self.ring.get();
        // SAFETY: invariant 8, which the caller promises: no other use of this writer.
        unsafe { place.write(MaybeUninit::new(ring)) };
        self.clock.store(u64::from(clock), Relaxed);
        self.counts.none_under_way();
        self.nested_lost.store(0, Relaxed);
        self.next.store(core::ptr::null_mut(), Relaxed);
        self.full.forget();
        self.untold_wait[0].store(0, Relaxed);
        self.attached.store(1, Relaxed);
    }

    /// Number of the clock that this writer's events use, for [`crate::clock::read`]; 0: it is
    /// attached to nothing, and there is no clock to read.
    #[inline(always)]
    pub fn clock(&self) -> u32 {
        self.clock.load(Relaxed) as u32
    }

    /// Takes the writer's clock away, so that every record of this moment takes the cold path, or gives it
    /// back: `number` is 0, or that of the session's clock. Any thread may take it away.
    pub fn set_clock(&self, number: u32) {
        self.clock.store(u64::from(number), Relaxed);
    }

    /// Whether the writer has a ring. `false` before the first attach, after the seal, and in a
    /// forked child.
    pub fn is_attached(&self) -> bool {
        self.attached.load(Relaxed) != 0
    }

    /// Records reserved in this slot so far, by all its owners; cancelled ones count. Never reset.
    ///
    /// Unchanged between two looks of the thread means that it recorded nothing in between. In an
    /// open page it is ahead of what readers see committed.
    #[inline(always)]
    pub fn reservations(&self) -> u64 {
        self.counts.records()
    }

    /// Words of the largest payload that its pages hold; 0 before it is attached.
    #[must_use]
    pub fn payload_words_max(&self) -> u64 {
        let ring = self.ring();
        ring.map_or(0, |ring| {
            record::payload_words_max(ring.geometry.page_bytes)
        })
    }

    fn ring(&self) -> Option<&Ring> {
        if !self.is_attached() {
            return None;
        }
        // SAFETY: invariant 8: only `attach` writes it, on this thread.
        let ring = unsafe { &*self.ring.get() };
        // SAFETY: invariant 7: it is initialised.
        Some(unsafe { ring.assume_init_ref() })
    }

    /// Reserves a record of `payload_words` words in the open page, on the straight line.
    ///
    /// `None` for all that is not the common case: the page is full or too old, a handler took the
    /// word, there is no ring. Nothing is changed or counted then, and the caller goes on with
    /// [`Writer::reserve_extended`], then [`Writer::reserve_cold`].
    ///
    /// `now` is the event's tick, read before the call: a handler that interrupts the call has a
    /// later tick and may still have an earlier place. Readers put ticks in order; the page does
    /// not.
    #[inline(always)]
    pub fn reserve(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
    ) -> Option<Reservation<'_>> {
        self.reserve_or_now(type_id, payload_words, now, &mut 0)
    }

    /// As [`Writer::reserve`]. Where it returns `None`, it stores `now` in `again`, for the call of
    /// the next way: a caller that keeps `now` itself needs one register more on the straight line.
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
            // SAFETY: invariants 1 and 5: `at` up to `next` lies in the open page.
            let header = unsafe { &*at };
            if self.claim(header, next, words) {
                let commit = record::pack(ticks as u32, type_id, payload_words);
                return Some(Reservation::new(self, header, commit, payload_words, words));
            }
        }
        // Invariant 2: the page is the same since `begin`, so this is `now`.
        *again = ticks.wrapping_add(self.tick_base.load(Relaxed));
        self.counts.end();
        None
    }

    /// Reserves a record in every case that allows it: looks for a place after the records of
    /// handlers, extends the time, or switches to the next page.
    ///
    /// `base` is called with `now` where a page is switched, and returns what its ticks count from.
    /// It reads the clock, so a handler may come while the old page is still open.
    ///
    /// # Errors
    /// The event is lost. The slot has counted the cause already, except [`Cause::NoRing`]: without
    /// a ring there is no slot, and the session counts it.
    /// - [`Cause::Oversize`]: no page is large enough.
    /// - [`Cause::Nested`]: the page is full, and the interrupted context holds a reservation in
    ///   it.
    /// - [`Cause::RingFull`]: discard mode, and the consumer has not released the next page.
    /// - [`Cause::NoMemory`]: the next page has no memory yet.
    #[cold]
    #[inline(never)]
    pub fn reserve_cold(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
        base: &dyn Fn(u64) -> ClockSample,
    ) -> Result<Reservation<'_>, Cause> {
        self.reserve_or_lose(type_id, payload_words, now, base, |_| true)
    }

    /// As [`Writer::reserve_cold`], but only losses that `is_lost` says are counted.
    fn reserve_or_lose(
        &self,
        type_id: TypeId,
        payload_words: u64,
        now: u64,
        base: &dyn Fn(u64) -> ClockSample,
        is_lost: impl Fn(Cause) -> bool,
    ) -> Result<Reservation<'_>, Cause> {
        let Some(ring) = self.ring() else {
            return Err(Cause::NoRing);
        };
        if payload_words > record::payload_words_max(ring.geometry.page_bytes) {
            ring.slot.count_lost(Cause::Oversize);
            return Err(Cause::Oversize);
        }
        self.counts.begin();
        let reserved = self.reserve_or_switch(ring, type_id, payload_words, now, base);
        if let Err(cause) = reserved {
            if is_lost(cause) {
                ring.slot.count_lost(cause);
            }
            self.counts.end();
        }
        reserved
    }

    fn reserve_or_switch(
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
            self.switch_page(ring, || base(now))?;
        }
    }

    /// Marks the first empty word from the cursor on, if `words` fit there.
    fn find_place(&self, words: u64) -> Option<&AtomicU64> {
        let (at, end) = (self.cursor.load(Relaxed), self.end.load(Relaxed));
        // SAFETY: invariants 1 and 5: `cursor..end` lies within the open page, or `end` is null.
        let header = unsafe { page_words::mark(at, end, words) }?;
        self.counts.record();
        let next = core::ptr::from_ref(header).wrapping_add(words as usize);
        self.cursor.store(next.cast_mut(), Relaxed);
        Some(header)
    }

    /// Makes the words from `header` up to `next` a record of the calling context (invariant 3),
    /// and moves the cursor after it. `false`: a handler was faster, and nothing is changed.
    ///
    /// The record is counted while its reservation is under way, so that `first_event` of the next
    /// page includes it (invariant 2).
    #[inline(always)]
    fn claim(&self, header: &AtomicU64, next: *mut AtomicU64, words: u64) -> bool {
        let busy = record::pack_span(record::BUSY, words);
        let is_claimed = single_instruction::mark_if_empty(header, busy) == 0;
        if is_claimed {
            debug_assert!(next <= self.end.load(Relaxed), "invariants 1 and 2");
            self.counts.record();
            self.cursor.store(next, Relaxed);
        }
        is_claimed
    }

    /// Closes the open page, if there is one: a PAD record fills its rest. Nothing fits into it
    /// afterwards, for the interrupted contexts as well.
    fn close_page(&self) {
        let end = self.end.load(Relaxed);
        if !end.is_null() {
            // SAFETY: invariants 1 and 5: `cursor..end` lies within the open page.
            unsafe { page_words::pad(self.cursor.load(Relaxed), end) };
            self.end.store(core::ptr::null_mut(), Relaxed);
        }
    }

    /// Publishes in the slot what the thread does with this ring; nothing without one.
    pub(crate) fn publish_state(&self, state: u64) {
        if let Some(ring) = self.ring() {
            ring.slot.publish_state(state);
        }
    }
}
