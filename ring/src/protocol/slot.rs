//! A slot of the ring directory: geometry, owner, *produced*, *consumed* and counters.
//!
//! | words | stored by | published by |
//! | --- | --- | --- |
//! | state | producer | itself (`[T1]`) |
//! | geometry | the claiming thread, first claim only | state |
//! | owner: ring id, thread id, name, first page | the claiming thread | ring id (`[O2]`), and state |
//! | *produced* | the writer | itself (`[W4]`) |
//! | lost, by cause; waits and their time | the writer | nothing: each count stands alone |
//! | events at the seal | the writer | state |
//! | *consumed* | the consumer | itself (`[C1]`) |
//!
//! *consumed* lies on a system page of its own, apart from the slot: it is all that a consumer can
//! store to, so that a reader without write access to the rest cannot harm the program.
//!
//! Positions and counts only grow, over all claims of the slot. A reader that was away for long
//! finds by subtraction what it has missed; no event needs two stores to be counted.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::counters::{CAUSES, Cause};
use ringmark_format::page::{PAGES_MIN, valid_page_bytes};
use ringmark_format::slot::{Slot, state};
use ringmark_format::{PageNumber, RingId};

use crate::protocol::order;
use crate::protocol::sync::AtomicU64;

/// Words of a slot.
pub const SLOT_WORDS: usize = size_of::<Slot>() / 8;

/// Index of the word that starts at the byte offset of a field.
macro_rules! word {
    ($field:ident) => {
        offset_of!(Slot, $field) / 8
    };
}

/// How often threads waited for room in a ring, and how long.
///
/// A thread waits only in discard mode, and only where the options of its session say so. Both
/// counts only grow: two readings give the waits between them by subtraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitCounts {
    /// Number of waits.
    pub times: u64,
    /// Time in all of them, in ns.
    pub ns: u64,
}

impl WaitCounts {
    /// Those of both. Counts that a program stated may be any numbers.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            times: self.times.saturating_add(other.times),
            ns: self.ns.saturating_add(other.ns),
        }
    }
}

/// Where a ring's pages lie: read once from shared memory, then validated, never read again.
///
/// It does not change while the session lives: a slot that is claimed again keeps its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotGeometry {
    /// Offset of page slot 0 in the file, in bytes; a multiple of 8.
    pub pages_offset: u64,
    /// Bytes of a page: a power of two, 4 KiB to 1 MiB.
    pub page_bytes: u32,
    /// Pages in the ring: at least 2, because one is open while another is read.
    pub pages: u32,
}

impl SlotGeometry {
    /// Size of the ring in bytes. Cannot overflow: both factors have 32 bits.
    #[must_use]
    pub const fn ring_bytes(&self) -> u64 {
        self.page_bytes as u64 * self.pages as u64
    }

    /// Whether the numbers are allowed and lie within a file of `file_bytes`. Asked before any page
    /// is touched, with the size of the mapping and not with what the header states.
    #[must_use]
    pub fn valid(&self, file_bytes: u64) -> bool {
        valid_page_bytes(self.page_bytes)
            && self.pages >= PAGES_MIN
            && self.pages_offset.is_multiple_of(8)
            && self
                .pages_offset
                .checked_add(self.ring_bytes())
                .is_some_and(|end| end <= file_bytes)
    }
}

/// The owner of a slot's present or last claim: all facts from one claim, never mixed of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Ring id of the claim: unique in the session, never 0.
    pub ring_id: RingId,
    /// Thread id in the pid namespace of the program. A system reuses it: the ring id tells claims
    /// apart, not this.
    pub tid: u32,
    /// Name of the thread when it attached, zero-padded. Later renames are not seen.
    pub thread_name: [u8; 16],
    /// Page number at which the claim started: earlier pages belong to earlier owners.
    pub first_page: PageNumber,
    /// Claims so far, this one included; wraps.
    pub claims: u32,
}

/// A slot in the mapped file and its word in the consumed region.
///
/// Both sides use this type. Functions that store say which side may call them; calling one with a
/// read-only mapping ends the process with SIGSEGV.
#[derive(Clone, Copy)]
pub struct SlotView<'m> {
    words: &'m [AtomicU64; SLOT_WORDS],
    consumed: &'m AtomicU64,
}

impl<'m> SlotView<'m> {
    /// The slot in these words; `None` if there are not enough.
    #[must_use]
    pub fn new(words: &'m [AtomicU64], consumed: &'m AtomicU64) -> Option<Self> {
        Some(Self {
            words: words.first_chunk()?,
            consumed,
        })
    }

    /// State of the slot: see [`state`]. What was written before it is visible after it (`[T2]`).
    /// A damaged file may hold any number.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.words[word!(state)].load(order::state_acquire()) // [T2]
    }

    /// Whether the claim has ended: no more pages will be opened, nor records written, under the
    /// present ring id. The next claim makes it `false` again.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state() == state::SEALED
    }

    /// Ring id of the present or last claim; 0: the slot is being claimed, or never was.
    #[must_use]
    pub fn ring_id(&self) -> RingId {
        RingId(self.words[word!(ring_id)].load(Relaxed))
    }

    /// The thread that has the slot, or had it last. `None`: no thread yet, or one is claiming it
    /// at this moment, and the facts could be mixed of two claims.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        let ring_id = self.words[word!(ring_id)].load(order::owner_acquire()); // [O3]
        let owner = Owner {
            ring_id: RingId(ring_id),
            tid: self.tid(),
            thread_name: self.thread_name(),
            first_page: self.first_page(),
            claims: self.claims(),
        };
        order::owner_recheck_fence(); // [O4]
        (ring_id != 0 && self.ring_id().0 == ring_id).then_some(owner)
    }

    /// The ring's geometry, not yet validated: [`SlotGeometry::valid`] must be asked before use.
    #[must_use]
    pub fn geometry(&self) -> SlotGeometry {
        let sizes = self.words[word!(page_bytes)].load(Relaxed);
        SlotGeometry {
            pages_offset: self.words[word!(pages_offset)].load(Relaxed),
            page_bytes: sizes as u32,
            pages: (sizes >> 32) as u32,
        }
    }

    /// Where the slot's stack of open spans lies in the file, in bytes; 0: there is none. Not yet
    /// validated: [`RingFile::span_stack`](crate::RingFile::span_stack) does it.
    #[must_use]
    pub fn stack_offset(&self) -> u64 {
        self.words[word!(stack_offset)].load(Relaxed)
    }

    /// Thread id of the owner, alone: [`SlotView::owner`] reads it together with the ring id.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.words[word!(tid)].load(Relaxed) as u32
    }

    /// Number of claims so far, by which a reader notices that a slot changed hands; wraps.
    #[must_use]
    pub fn claims(&self) -> u32 {
        (self.words[word!(tid)].load(Relaxed) >> 32) as u32
    }

    /// Name of the owner thread, zero-padded. A name that is read during a claim may be mixed.
    #[must_use]
    pub fn thread_name(&self) -> [u8; 16] {
        let first = word!(thread_name);
        let mut name = [0; 16];
        name[..8].copy_from_slice(&self.words[first].load(Relaxed).to_le_bytes());
        name[8..].copy_from_slice(&self.words[first + 1].load(Relaxed).to_le_bytes());
        name
    }

    /// Page number at which the present claim started: its first page says so in its flags.
    #[must_use]
    pub fn first_page(&self) -> PageNumber {
        PageNumber(self.words[word!(first_page)].load(Relaxed))
    }

    /// *produced*: pages opened so far; page `produced - 1` is the newest one. Everything in the
    /// pages before it is visible after this load (`[R3]`).
    #[must_use]
    pub fn produced(&self) -> u64 {
        self.words[word!(produced)].load(order::produced_acquire()) // [R3]
    }

    /// *consumed*: pages released so far, as the consumer last stored. Always 0 in overwrite mode.
    /// In a damaged file it may be ahead of *produced*.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.consumed.load(order::consumed_acquire()) // [P1]
    }

    /// Releases all pages before `consumed` to the producer, which may then write over them: the
    /// consumer has finished with their words. Called by the one consumer only.
    pub fn release(&self, consumed: u64) {
        self.consumed.store(consumed, order::consumed_release()); // [C1]
    }

    /// Events lost in this slot by all its owners, by cause; never reset. The counts are loaded one
    /// after the other, so their sum may be of no single moment.
    #[must_use]
    pub fn lost(&self) -> [u64; CAUSES] {
        core::array::from_fn(|i| self.words[word!(lost) + i].load(Relaxed))
    }

    /// Events lost in this slot, all causes together: what page headers carry as `lost_before`.
    #[must_use]
    pub fn lost_in_all(&self) -> u64 {
        self.lost().iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// The waits for room in this slot's ring. The counts are loaded one after the other, so a wait
    /// that ends between the loads may be in one of them only.
    #[must_use]
    pub fn waits(&self) -> WaitCounts {
        WaitCounts {
            times: self.words[word!(waits)].load(Relaxed),
            ns: self.words[word!(waited_ns)].load(Relaxed),
        }
    }

    /// Records reserved in this slot up to the seal of the last ended claim. Together with
    /// `first_event` of the last page it gives the number of records in that page.
    #[must_use]
    pub fn events_sealed(&self) -> u64 {
        self.words[word!(events_sealed)].load(Relaxed)
    }

    // What follows is the producer's.

    /// Moves the slot from one state to CLAIMING. The caller that gets `true` owns the slot until
    /// it publishes another state; all others get `false` and look for another slot.
    #[must_use]
    pub fn claim(&self, from: u64) -> bool {
        // What the last owner wrote is visible to this one. CLAIMING itself publishes nothing.
        self.words[word!(state)]
            .compare_exchange(from, state::CLAIMING, order::state_acquire(), Relaxed) // [T2]
            .is_ok()
    }

    /// Publishes a state and everything written before it (`[T1]`). Called by the owner of the
    /// slot.
    pub fn publish_state(&self, state: u64) {
        debug_assert_ne!(state, state::CLAIMING, "it is reached by `claim` alone");
        self.words[word!(state)].store(state, order::state_release()); // [T1]
    }

    /// Writes the geometry. The slot is CLAIMING, for the first time or with the same pages again.
    pub fn set_geometry(&self, geometry: SlotGeometry) {
        self.words[word!(pages_offset)].store(geometry.pages_offset, Relaxed);
        let sizes = u64::from(geometry.page_bytes) | u64::from(geometry.pages) << 32;
        self.words[word!(page_bytes)].store(sizes, Relaxed);
    }

    /// Writes where the stack of open spans lies: as [`SlotView::set_geometry`].
    pub fn set_stack_offset(&self, offset: u64) {
        self.words[word!(stack_offset)].store(offset, Relaxed);
    }

    /// Writes the owner of a new claim. The slot is CLAIMING.
    ///
    /// The ring id, which is never 0 and never used twice, is 0 during the change: a reader that
    /// loads it before and after the other facts notices that they were changing (`[O1]`, `[O2]`).
    pub fn set_owner(&self, ring_id: RingId, tid: u32, name: [u8; 16]) {
        debug_assert_ne!(
            ring_id.0, 0,
            "0 means for readers that the owner is changing"
        );
        let claims = u64::from(self.claims().wrapping_add(1)) << 32;
        self.words[word!(ring_id)].store(0, Relaxed);
        order::owner_fence(); // [O1]
        self.words[word!(tid)].store(u64::from(tid) | claims, Relaxed);
        let [low, high] = name_words(name);
        self.words[word!(thread_name)].store(low, Relaxed);
        self.words[word!(thread_name) + 1].store(high, Relaxed);
        let produced = self.words[word!(produced)].load(Relaxed);
        self.words[word!(first_page)].store(produced, Relaxed);
        self.words[word!(ring_id)].store(ring_id.0, order::owner_release()); // [O2]
    }

    /// Publishes *produced* (`[W4]`): the page before the newest one is sealed. Called by the
    /// writer.
    pub fn publish_produced(&self, produced: u64) {
        self.words[word!(produced)].store(produced, order::produced_release()); // [W4]
    }

    /// Counts one lost event. Called by the owner thread and its handlers only: the increment is
    /// one instruction without a bus lock, so those of two threads would overwrite each other.
    pub fn count_lost(&self, cause: Cause) {
        crate::protocol::single_instruction::increment_shared(self.lost_word(cause), Relaxed);
    }

    /// Counts one wait for room. Called by the owner thread, outside signal handlers.
    pub fn count_wait(&self, ns: u64) {
        crate::protocol::single_instruction::increment_shared(&self.words[word!(waits)], Relaxed);
        crate::protocol::single_instruction::add_shared(&self.words[word!(waited_ns)], ns);
    }

    /// Notes how long the owner waited for the ring. Called by the owner thread.
    pub fn note_ring_wait(&self, ns: u64) {
        let longest = &self.words[word!(ring_wait_ns)];
        longest.store(longest.load(Relaxed).max(ns), Relaxed);
    }

    /// Longest time that an owner waited for the ring, in ns.
    #[must_use]
    pub fn ring_wait_ns(&self) -> u64 {
        self.words[word!(ring_wait_ns)].load(Relaxed)
    }

    /// Where events lost for a cause are counted.
    pub(crate) fn lost_word(&self, cause: Cause) -> &'m AtomicU64 {
        &self.words[word!(lost) + cause as usize]
    }

    /// Where the consumer says how many pages it has released.
    pub(crate) fn consumed_word(&self) -> &'m AtomicU64 {
        self.consumed
    }

    /// Writes the number of records at the seal; the SEALED state that follows publishes it.
    pub fn set_events_sealed(&self, events: u64) {
        self.words[word!(events_sealed)].store(events, Relaxed);
    }
}

/// A thread name as the two words that hold it.
pub(crate) fn name_words(name: [u8; 16]) -> [u64; 2] {
    let mut halves = [[0; 8]; 2];
    halves[0].copy_from_slice(&name[..8]);
    halves[1].copy_from_slice(&name[8..]);
    halves.map(u64::from_le_bytes)
}
