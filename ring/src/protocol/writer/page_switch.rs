//! The page switch: the way from one page to the next, and the end of a claim.
//!
//! Cold code, about once in a page of records. Its order is what keeps invariants 1 and 2 of
//! [`crate::writer`] at each step, because a handler may come between any two of them:
//!
//! | step | what a handler finds |
//! | --- | --- |
//! | discard: is the next page released? does it have memory? | the old page, still open |
//! | the clock is read | the same: its events still fit, or are lost as NESTED |
//! | the old page is closed | no open page: its events are lost as NESTED |
//! | is the caller still alone? | the same; a reservation that it left before stops the switch |
//! | the next page gets zeros and its header | the same |
//! | *produced* is published | the same: readers see the page before its first record |
//! | cursor, then end | the new page, from the last store on |

use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::compiler_fence;

use ringmark_format::counters::Cause;
use ringmark_format::page::{self, PageHeader};
use ringmark_format::session::Mode;
use ringmark_format::slot::state;

use super::{Ring, Writer};
use crate::protocol::clock_sample::ClockSample;
use crate::protocol::observe::HEADER_WORDS;
use crate::protocol::page_words;
use crate::protocol::single_instruction;
use crate::protocol::span_stack;

impl Writer {
    /// Invariant 2: the page may be switched, because the only reservation under way is the
    /// caller's.
    pub(super) fn check_alone(&self) -> Result<(), Cause> {
        if !self.counts.is_alone() {
            single_instruction::increment(&self.nested_lost);
            return Err(Cause::Nested);
        }
        self.nested_lost.store(0, Relaxed);
        Ok(())
    }

    /// Switches to the next page: closes the open one, opens the next, publishes *produced*.
    ///
    /// The caller's reservation was the only one under way. A handler that comes in between finds
    /// `end` null and loses its events with cause NESTED, until the last store opens the page.
    pub(super) fn switch_page(
        &self,
        ring: &Ring,
        base: impl FnOnce() -> ClockSample,
    ) -> Result<(), Cause> {
        let number = self.produced.load(Relaxed);
        let pages = u64::from(ring.geometry.pages);
        let consumed = ring.slot.consumed();
        if ring.mode == Mode::Discard && number.wrapping_sub(consumed) >= pages {
            self.close_page();
            debug_assert!(
                self.end.load(Relaxed).is_null(),
                "a full ring has no open page"
            );
            self.full.remember(&ring.slot, consumed);
            return Err(Cause::RingFull);
        }
        if !self.has_memory(ring, number) {
            return Err(Cause::NoMemory);
        }
        let base = base(); // The clock is asked while a handler still finds the page open.
        self.close_page();
        self.check_alone()?; // A handler may have left a reservation in the page before it closed.
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
        debug_assert!(
            self.cursor.load(Relaxed) <= self.end.load(Relaxed),
            "invariant 1"
        );
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

    /// Ends the claim: closes the page, publishes the number of records and SEALED, forgets the
    /// ring.
    ///
    /// For a thread that ends: no context of it comes back to this ring. From the store of SEALED
    /// on another thread may claim the slot and attach this writer, so it is not touched again.
    /// Without a ring, nothing happens.
    pub fn seal(&self) {
        let Some(ring) = self.ring() else { return };
        self.counts.begin();
        self.close_page();
        ring.slot.set_events_sealed(self.counts.records());
        let slot = ring.slot;
        self.set_stack(None);
        ring.stack.inspect(|stack| span_stack::clear(stack));
        self.clock.store(0, Relaxed);
        self.attached.store(0, Relaxed);
        slot.publish_state(state::SEALED);
    }
}
