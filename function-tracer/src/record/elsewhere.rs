//! Open calls on stacks that are neither the thread's own nor that of its signal handlers: of
//! coroutines and fibers.
//!
//! They end in any order, in any thread, or never; their stacks are copied, handed on, freed and used
//! again. So nothing is known by the order of calls, and nothing that is kept with a stack stays true.
//! Each open call has an entry in one table, and its return address is replaced by that of the
//! entry's own *pad*. As long as a pad may stand on some stack, its entry keeps the true return
//! address:
//!
//! - `opened` counts how often the pad was put on a stack and did not return. At 0 the entry is free.
//! - A call that is left without a return leaves its entry for good. The next call from the same place
//!   with the same slot uses it again.
//! - Where no entry is free, a call is recorded without its end.
//!
//! A call's entry is looked for in the [`LOOKS`] places after a hash of its slot, so the calls that had
//! the same slot and were left are found, too.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::levels;
use super::thread_memory::PAGE;

/// Pages of pads.
pub(super) const PAGES: usize = 64;
/// Pads of a page; the first is none.
pub(super) const PADS_PER_PAGE: usize = 512;
/// Bytes of a pad.
pub(super) const PAD_BYTES: u64 = 8;
/// Places in which a call may have its entry.
const LOOKS: usize = 8;
/// In `opened`: the entry is being filled.
const BUSY: u64 = 1 << 63;
/// Bytes of stack between a call and the one around it at most.
const REACH: u64 = 64 << 10;
/// The same where only their addresses say that they are on one stack. Stacks that are closer look like one.
const REACH_BY_ADDRESS: u64 = 16 << 10;
/// Words of a stack that are looked at for the pad of the call around.
const WORDS_MAX: u64 = 128;
/// Calls around a call that are looked at.
const AROUND_MAX: usize = 64;

/// An entry of the table.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct CallElsewhere {
    /// The true return address. In the first entry of a page, which has no pad, it is the address of second frames, or 0.
    target: AtomicU64,
    /// Address of the word that holds the return address.
    slot: AtomicU64,
    /// Calls that were opened and did not return.
    opened: AtomicU64,
    /// As in [`super::thread_memory::OpenCall`], in the upper half its level; 0: the call that was opened last has ended.
    type_word: AtomicU64,
    /// Tick of the entry.
    tick: AtomicU64,
    /// Ticks in calls inside it.
    inside: AtomicU64,
    /// Number of the entry of the call around it; 0: none is known.
    around: AtomicU64,
    /// The true return address for unwinders, which find it by the pad. libunwind writes there when it goes on at a
    /// handler; a copy of the stack may yet return.
    unwound_to: AtomicU64,
}

/// Bytes of an entry.
pub(super) const CALL_BYTES: usize = size_of::<CallElsewhere>();

/// Where an entry has its word for unwinders; its first word is its target.
pub(super) const UNWOUND_TO: usize = core::mem::offset_of!(CallElsewhere, unwound_to);

/// The entries, by the number of their pad.
pub(super) static CALLS: [CallElsewhere; PAGES * PADS_PER_PAGE] =
    [const { CallElsewhere::new() }; PAGES * PADS_PER_PAGE];

/// From now on unwinders find a second frame for each pad: at this address, and then the caller.
pub(super) fn have_second_frames(at: u64) {
    for page in CALLS.chunks(PADS_PER_PAGE) {
        page[0].target.store(at, Relaxed);
    }
}

/// A call that has been taken out of its entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    pub(super) slot: u64,
    pub(super) type_word: u32,
    pub(super) entered: u64,
    pub(super) inside: u64,
}

impl CallElsewhere {
    const fn new() -> Self {
        Self {
            target: AtomicU64::new(0),
            slot: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            type_word: AtomicU64::new(0),
            tick: AtomicU64::new(0),
            inside: AtomicU64::new(0),
            around: AtomicU64::new(0),
            unwound_to: AtomicU64::new(0),
        }
    }

    /// Its number in the table.
    pub(super) fn number(&self) -> u64 {
        let distance = core::ptr::from_ref(self) as usize - CALLS.as_ptr() as usize;
        (distance / CALL_BYTES) as u64
    }

    /// The address that replaces the return address.
    pub(super) fn pad(&self) -> u64 {
        pad(self.number() as usize)
    }

    pub(super) fn slot(&self) -> u64 {
        self.slot.load(Relaxed)
    }

    pub(super) fn target(&self) -> u64 {
        self.target.load(Relaxed)
    }

    /// Type and flags of the call that was opened last; 0: it has ended.
    pub(super) fn type_word(&self) -> u32 {
        self.type_word.load(Relaxed) as u32
    }

    /// The level of the call that was opened last, if it is one of the present selection.
    pub(super) fn level(&self) -> Option<u32> {
        levels::unpacked((self.type_word.load(Relaxed) >> 32) as u32)
    }

    /// Adds bits to the type word, unless the call has ended.
    pub(super) fn add_to_type(&self, bits: u32) {
        let more = |now: u64| (now != 0).then_some(now | u64::from(bits));
        let _ = self.type_word.fetch_update(Relaxed, Relaxed, more);
    }

    /// Whether it has calls with this slot that have not returned.
    pub(super) fn is_at(&self, slot: u64) -> bool {
        let opened = self.opened.load(Acquire);
        opened != 0 && opened < BUSY && self.slot.load(Relaxed) == slot
    }

    /// Begins a call of the entry. `around`: the entry of the call around it; 0: not known.
    pub(super) fn begin(&self, type_word: u64, tick: u64, around: u64) {
        newest_on(self.slot() / PAGE as u64).store(self.number(), Relaxed);
        self.around.store(around, Relaxed);
        self.inside.store(0, Relaxed);
        self.tick.store(tick, Relaxed);
        self.type_word.store(type_word, Relaxed);
    }

    /// Ends the call that was opened last, unless it has ended.
    pub(super) fn take(&self) -> Option<Taken> {
        let type_word = self.type_word.swap(0, Relaxed) as u32;
        (type_word != 0).then(|| Taken {
            slot: self.slot.load(Relaxed),
            type_word,
            entered: self.tick.load(Relaxed),
            inside: self.inside.load(Relaxed),
        })
    }

    /// The pad is no longer on a stack.
    pub(super) fn give_back(&self) {
        let less = |opened: u64| opened.checked_sub(1).filter(|_| opened < BUSY);
        let _ = self.opened.fetch_update(AcqRel, Relaxed, less);
    }

    /// The open calls around it, the innermost first.
    pub(super) fn around(&self) -> impl Iterator<Item = &'static Self> {
        let mut inner = self.slot.load(Relaxed);
        let mut next = self.around.load(Relaxed);
        let one = core::iter::from_fn(move || {
            let call = around_by(next, inner)?;
            (inner, next) = (call.slot.load(Relaxed), call.around.load(Relaxed));
            Some(call)
        });
        one.take(AROUND_MAX)
    }

    pub(super) fn add_inside(&self, ticks: u64) {
        let inside = self.inside.load(Relaxed).wrapping_add(ticks);
        self.inside.store(inside, Relaxed);
    }
}

/// A type word with a level, as [`levels::packed`] has it.
pub(super) fn with_level(type_word: u32, level: u32) -> u64 {
    u64::from(level) << 32 | u64::from(type_word)
}

unsafe extern "C" {
    fn ringmark_return_pads();
}

fn first_pad() -> u64 {
    let address: unsafe extern "C" fn() = ringmark_return_pads;
    address as usize as u64
}

/// Address of the pad with this number.
fn pad(number: usize) -> u64 {
    first_pad() + number as u64 * PAD_BYTES
}

/// Number of the pad at this address.
fn pad_at(address: u64) -> Option<usize> {
    let distance = address.wrapping_sub(first_pad());
    let number = (distance / PAD_BYTES) as usize;
    let is_one = number < PAGES * PADS_PER_PAGE && !number.is_multiple_of(PADS_PER_PAGE);
    (is_one && distance.is_multiple_of(PAD_BYTES)).then_some(number)
}

/// The entry whose pad is at this address.
pub(super) fn of_pad(address: u64) -> Option<&'static CallElsewhere> {
    CALLS.get(pad_at(address)?)
}

/// The places where calls with this slot may have their entries.
fn places(slot: u64) -> impl Iterator<Item = &'static CallElsewhere> {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let hash = (slot >> 3).wrapping_mul(SPREAD) >> 32;
    let place = move |look: u64| {
        let number = (hash + look) as usize % CALLS.len();
        // The first of a page has no pad.
        let is_one = !number.is_multiple_of(PADS_PER_PAGE);
        CALLS.get(number).filter(|_| is_one)
    };
    (0..LOOKS as u64 + 1).filter_map(place).take(LOOKS)
}

/// The entries of calls with this slot that have not returned.
pub(super) fn with_slot(slot: u64) -> impl Iterator<Item = &'static CallElsewhere> {
    places(slot).filter(move |call| call.is_at(slot))
}

/// An entry for a call with this slot and true return address. `None`: none is free.
pub(super) fn open(slot: u64, target: u64) -> Option<&'static CallElsewhere> {
    let same = with_slot(slot).find(|call| call.target() == target && call.open_again());
    let call = same.or_else(|| places(slot).find(|call| call.open_first(slot, target)))?;
    call.unwound_to.store(target, Relaxed);
    Some(call)
}

impl CallElsewhere {
    fn open_again(&self) -> bool {
        let more = |opened: u64| (opened != 0 && opened < BUSY).then(|| opened + 1);
        self.opened.fetch_update(AcqRel, Relaxed, more).is_ok()
    }

    fn open_first(&self, slot: u64, target: u64) -> bool {
        let taken = self.opened.compare_exchange(0, BUSY, Acquire, Relaxed);
        if taken.is_err() {
            return false;
        }
        self.slot.store(slot, Relaxed);
        self.target.store(target, Relaxed);
        // With the `Acquire` of who looks at the entry: it is filled.
        self.opened.store(1, Release);
        true
    }
}

/// The open call with this number, if it may be around one with this slot.
fn around_by(number: u64, slot: u64) -> Option<&'static CallElsewhere> {
    let call = CALLS.get(number as usize).filter(|_| number != 0)?;
    let outer = call.slot.load(Relaxed);
    let is_near = outer > slot && outer - slot < REACH;
    (is_near && call.type_word() != 0 && call.is_at(outer)).then_some(call)
}

/// Number of the open call around one that begins with this slot; 0: none is known. It is `known`,
/// the innermost that the thread knows of, if that is on the same page. Else it is the one whose pad
/// is nearest further up the stack, of which the rest of one page can be read.
pub(super) fn around(slot: u64, known: u64) -> u64 {
    let page = |address: u64| address / PAGE as u64;
    let known = around_by(known, slot);
    let is_here = |call: &&CallElsewhere| page(call.slot.load(Relaxed)) == page(slot);
    let around = known.filter(is_here).or_else(|| by_pad(slot)).or(known);
    let around = around.or_else(|| by_page(slot));
    around.map_or(0, CallElsewhere::number)
}

/// The entries that were opened last, by the page that their slots are on. Several pages share a place.
static NEWEST: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];

fn newest_on(page: u64) -> &'static AtomicU64 {
    &NEWEST[page as usize % NEWEST.len()]
}

/// The open call nearest above this slot, by what was opened on its page and on those above. It is for calls that no
/// pad leads to: their exits are sites, or their frames are large.
fn by_page(slot: u64) -> Option<&'static CallElsewhere> {
    let pages = slot / PAGE as u64..=(slot + REACH_BY_ADDRESS) / PAGE as u64;
    let is_near = |call: &&CallElsewhere| call.slot() - slot < REACH_BY_ADDRESS;
    let nearest_on = |page| {
        let newest = newest_on(page).load(Relaxed);
        let outer = |number: &u64| Some(CALLS.get(*number as usize)?.around.load(Relaxed));
        let outwards = core::iter::successors(Some(newest), outer);
        let mut outwards = outwards.take_while(|number| *number != 0).take(AROUND_MAX);
        outwards.find_map(|number| around_by(number, slot).filter(is_near))
    };
    pages.into_iter().find_map(nearest_on)
}

/// The open calls around one that begins with this slot, the innermost first.
pub(super) fn all_around(slot: u64, known: u64) -> impl Iterator<Item = &'static CallElsewhere> {
    let first = CALLS.get(around(slot, known) as usize);
    let first = first.filter(|call| call.number() != 0);
    let outer = first.into_iter().flat_map(CallElsewhere::around);
    first.into_iter().chain(outer)
}

/// The open call whose pad is nearest above this slot, on the same page of the system.
fn by_pad(slot: u64) -> Option<&'static CallElsewhere> {
    if !slot.is_multiple_of(8) {
        return None;
    }
    let end = (slot | (PAGE as u64 - 1)) + 1;
    let mut words = (slot + 8..end.min(slot + 8 * WORDS_MAX)).step_by(8);
    words.find_map(|address| {
        let word = address as *const u64;
        // SAFETY: record invariant 11.
        let call = of_pad(unsafe { word.read_volatile() })?;
        let is_open = call.is_at(address) && call.type_word() != 0;
        is_open.then_some(call)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slot of its own for each test: they share the table.
    fn slot(test: u64, place: u64) -> u64 {
        0x10_0000 * test + 0x100 * place
    }

    #[test]
    fn a_pad_keeps_its_return_address_as_long_as_it_is_on_a_stack() {
        let slot = slot(1, 0);
        let first = open(slot, 7).unwrap();
        assert_eq!(
            of_pad(first.pad()).map(CallElsewhere::number),
            Some(first.number())
        );
        first.begin(5, 100, 0);
        // The stack is copied, or the call was left: another one begins with the slot.
        let other = open(slot, 8).unwrap();
        assert_ne!(first.number(), other.number());
        assert_eq!((first.target(), other.target()), (7, 8));
        // From the same place once more.
        let again = open(slot, 7).unwrap();
        assert_eq!(again.number(), first.number());
        assert_eq!(with_slot(slot).count(), 2);
        first.give_back();
        assert_eq!(with_slot(slot).count(), 2, "one more has to return");
        first.give_back();
        other.give_back();
        assert_eq!(with_slot(slot).count(), 0);
        first.give_back();
        assert_eq!(open(slot, 9).map(CallElsewhere::target), Some(9));
    }

    #[test]
    fn a_call_ends_once() {
        let call = open(slot(2, 0), 7).unwrap();
        call.begin(5, 100, 0);
        call.add_inside(30);
        let taken = call.take().unwrap();
        assert_eq!((taken.slot, taken.type_word), (slot(2, 0), 5));
        assert_eq!((taken.entered, taken.inside), (100, 30));
        assert!(call.take().is_none());
    }

    #[test]
    fn there_is_an_end_of_entries_for_a_slot() {
        let opened = (0..).take_while(|n| open(slot(3, 0), 1 + n).is_some());
        assert_eq!(opened.count(), LOOKS);
    }

    #[test]
    fn the_calls_around_one_are_found_by_the_pads_on_its_stack() {
        let mut stack = [0_u64; 64];
        let place = |n: usize| core::ptr::from_ref(&stack[n]) as u64;
        // All on one page.
        let from = (0..64).find(|n| place(*n) & 4095 < 3584).unwrap();
        let slots = [from + 30, from + 20, from].map(place);
        let outer = open(slots[0], 1).unwrap();
        outer.begin(5, 1, around(slots[0], 0));
        let inner = open(slots[1], 2).unwrap();
        inner.begin(6, 2, 0);
        for (n, call) in [(30, outer), (20, inner)] {
            core::hint::black_box(&mut stack)[from + n] = call.pad();
        }
        core::hint::black_box(&stack);
        assert_eq!(around(slots[1], 0), outer.number());
        assert_eq!(around(slots[2], 0), inner.number());
        inner.begin(6, 2, outer.number());
        let leaf = open(slots[2], 3).unwrap();
        leaf.begin(7, 3, inner.number());
        let around_leaf: Vec<_> = leaf.around().map(CallElsewhere::number).collect();
        assert_eq!(around_leaf, [inner.number(), outer.number()]);
        inner.take();
        assert_eq!(around(slots[2], 0), outer.number(), "that one has ended");
        assert_eq!(around(slots[2] + 4096, outer.number()), 0, "too far down");
    }

    #[test]
    fn only_pads_are_pads() {
        let call = open(slot(4, 0), 7).unwrap();
        assert!(of_pad(call.pad() + 1).is_none());
        assert!(of_pad(call.pad() & !4095).is_none(), "the front of a page");
        assert!(of_pad(pad(PAGES * PADS_PER_PAGE)).is_none());
        assert!(of_pad(0).is_none());
    }
}
