//! A slot of the ring directory: geometry, owner, *produced*, *consumed* and counters.

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

/// Where a ring's pages lie: read once from shared memory, then validated, never read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotGeometry {
    /// Offset of page slot 0 in the file.
    pub pages_offset: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Pages in the ring.
    pub pages: u32,
}

impl SlotGeometry {
    /// Size of the ring in bytes.
    #[must_use]
    pub const fn ring_bytes(&self) -> u64 {
        self.page_bytes as u64 * self.pages as u64
    }

    /// Whether the numbers are allowed and lie within a file of `file_bytes`.
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

/// Who had a slot's present or last claim: all facts of one claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Ring id of the claim.
    pub ring_id: RingId,
    /// Thread id.
    pub tid: u32,
    /// Name of the thread, zero-padded.
    pub thread_name: [u8; 16],
    /// Page number at which the claim started.
    pub first_page: PageNumber,
    /// Claims so far, this one included.
    pub claims: u32,
}

/// A slot in the mapped file and its word in the consumed region.
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

    /// State of the slot: see [`state`]. What was written before it is visible after it.
    #[must_use]
    pub fn state(&self) -> u64 {
        self.words[word!(state)].load(order::state_acquire()) // [T2]
    }

    /// Whether no more pages will be turned, nor records written, under the present ring id.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state() == state::SEALED
    }

    /// Ring id of the present or last claim.
    #[must_use]
    pub fn ring_id(&self) -> RingId {
        RingId(self.words[word!(ring_id)].load(Relaxed))
    }

    /// Whose the slot is, or was last. `None`: nobody's yet, or it is being claimed right now.
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

    /// The ring's geometry, not yet validated.
    #[must_use]
    pub fn geometry(&self) -> SlotGeometry {
        let sizes = self.words[word!(page_bytes)].load(Relaxed);
        SlotGeometry {
            pages_offset: self.words[word!(pages_offset)].load(Relaxed),
            page_bytes: sizes as u32,
            pages: (sizes >> 32) as u32,
        }
    }

    /// Thread id of the owner.
    #[must_use]
    pub fn tid(&self) -> u32 {
        self.words[word!(tid)].load(Relaxed) as u32
    }

    /// Number of claims so far.
    #[must_use]
    pub fn claims(&self) -> u32 {
        (self.words[word!(tid)].load(Relaxed) >> 32) as u32
    }

    /// Name of the owner thread, zero-padded.
    #[must_use]
    pub fn thread_name(&self) -> [u8; 16] {
        let first = word!(thread_name);
        let mut name = [0; 16];
        name[..8].copy_from_slice(&self.words[first].load(Relaxed).to_le_bytes());
        name[8..].copy_from_slice(&self.words[first + 1].load(Relaxed).to_le_bytes());
        name
    }

    /// Page number at which the present claim started.
    #[must_use]
    pub fn first_page(&self) -> PageNumber {
        PageNumber(self.words[word!(first_page)].load(Relaxed))
    }

    /// *produced*: pages turned so far. Everything in pages before the last is visible after it.
    #[must_use]
    pub fn produced(&self) -> u64 {
        self.words[word!(produced)].load(order::produced_acquire()) // [R3]
    }

    /// *consumed*: pages released so far, as the consumer last said.
    #[must_use]
    pub fn consumed(&self) -> u64 {
        self.consumed.load(order::consumed_acquire()) // [P1]
    }

    /// Releases all pages before `consumed` to the producer. Only the one consumer may.
    pub fn release(&self, consumed: u64) {
        self.consumed.store(consumed, order::consumed_release()); // [C1]
    }

    /// Events lost in this slot, by cause.
    #[must_use]
    pub fn lost(&self) -> [u64; CAUSES] {
        core::array::from_fn(|i| self.words[word!(lost) + i].load(Relaxed))
    }

    /// Events lost in this slot, all causes.
    #[must_use]
    pub fn lost_in_all(&self) -> u64 {
        self.lost().iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }

    /// Reservations counted when the last ended claim was sealed.
    #[must_use]
    pub fn events_sealed(&self) -> u64 {
        self.words[word!(events_sealed)].load(Relaxed)
    }

    // What follows is the producer's.

    /// Moves the slot from one state to CLAIMING. Whoever gets `true` owns it until it publishes
    /// another state.
    #[must_use]
    pub fn claim(&self, from: u64) -> bool {
        // What the last owner wrote is visible to this one. CLAIMING itself publishes nothing.
        self.words[word!(state)]
            .compare_exchange(from, state::CLAIMING, order::state_acquire(), Relaxed) // [T2]
            .is_ok()
    }

    /// Publishes a state and everything written before it.
    pub fn publish_state(&self, state: u64) {
        self.words[word!(state)].store(state, order::state_release()); // [T1]
    }

    /// Writes the geometry. The slot is CLAIMING.
    pub fn set_geometry(&self, geometry: SlotGeometry) {
        self.words[word!(pages_offset)].store(geometry.pages_offset, Relaxed);
        let sizes = u64::from(geometry.page_bytes) | u64::from(geometry.pages) << 32;
        self.words[word!(page_bytes)].store(sizes, Relaxed);
    }

    /// Writes the owner of a new claim. The slot is CLAIMING. The ring id, which is never 0 and
    /// never used twice, is 0 meanwhile: a reader notices that the facts change beside it.
    pub fn set_owner(&self, ring_id: RingId, tid: u32, name: [u8; 16]) {
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

    /// Publishes *produced*.
    pub fn publish_produced(&self, produced: u64) {
        self.words[word!(produced)].store(produced, order::produced_release()); // [W4]
    }

    /// Counts one lost event. Only the owner thread may.
    pub fn count_lost(&self, cause: Cause) {
        crate::protocol::single_instruction::increment_shared(self.lost_word(cause));
    }

    /// Where events lost for a cause are counted.
    pub(crate) fn lost_word(&self, cause: Cause) -> &'m AtomicU64 {
        &self.words[word!(lost) + cause as usize]
    }

    /// Where the consumer says how many pages it has released.
    pub(crate) fn consumed_word(&self) -> &'m AtomicU64 {
        self.consumed
    }

    /// Writes the reservations counted at the seal.
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
