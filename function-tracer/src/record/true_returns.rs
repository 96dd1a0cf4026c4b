//! A copy of each true return address, at a fixed distance from its slot. By it an unwinder finds
//! the caller in the same few steps, however many calls and threads there are: the unwind table's
//! entry for `ringmark_return` reads it.
//!
//! The copy of the slot at `s` lies at `(s ^ COPY_PART) + COPY_SHIFT`. So every stack has its copies in
//! a place of its own, where the kernel puts nothing by itself. Memory for them is mapped in
//! *units*, before the first return address on the stack is replaced, and stays. A page of it is
//! used when a slot on the page of the stack is. A slot belongs to the unit that `s + COPY_SHIFT`
//! lies in.
//!
//! [`UNITS_AT`] has a byte for each unit. Its address is a constant, because an unwind table holds no
//! addresses, and each step to find one costs an unwinder as much as ten instructions.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU64};

use rustix::mm::{Advice, MapFlags, madvise, munmap};
use rustix::thread::{Timespec, nanosleep};

use super::own_memory;

/// The bit in which the part of memory with the copies differs from that with the stacks.
pub(super) const COPY_PART: u64 = 1 << 45;
/// Distance from the place that the bit alone would lead to. It leads to another set of the cache: if
/// a copy were in the set of its slot, each access to one would make the next to the other slow (on
/// Zen 4 a call took 4 ns more).
pub(super) const COPY_SHIFT: u64 = 1 << 11 | 1 << 6;
/// Bits of an address in a unit: 64 MiB.
pub(super) const UNIT_BITS: u32 = 26;
/// Bits of an address of a program.
const ADDRESS_BITS: u32 = 47;

/// Address of the table of units. It is in the part with the copies, those of slots where the kernel
/// puts no stack.
pub(super) const UNITS_AT: u64 = 0x3ff0_0000_0000;
/// Number of units: a byte of the table for each, 2 MiB, of which only what is used takes memory.
const UNITS: usize = 1 << (ADDRESS_BITS - UNIT_BITS);

/// A second table, as long, behind the first. A program with second frames has its states there, and the first is
/// empty: so unwinders go another way without a step more in all other programs.
pub(super) const SECOND_UNITS_AT: u64 = UNITS_AT + UNITS as u64;
/// Where the address of second frames is; 0: there are none.
pub(super) const SECOND_AT: u64 = SECOND_UNITS_AT + UNITS as u64;
/// Where 0 is.
pub(super) const NONE_AT: u64 = SECOND_AT + 8;
/// Bytes of all of it.
const TABLE_BYTES: usize = 2 * UNITS + 4096;

/// The copies of the unit have memory; the table is there.
const MAPPED: u8 = 1;
/// A thread makes the memory. No slot of the unit is replaced, so no unwinder looks.
const IN_THE_MAKING: u8 = 2;
/// Pause of a thread that waits for the one that makes the memory, and pauses at most. That one may
/// have been preempted, or be this one, which a handler has interrupted.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000,
};
const PAUSES_MAX: usize = 1000;

/// The address of second frames; 0: there are none.
static SECOND: AtomicU64 = AtomicU64::new(0);

/// Whether the table of units is there; 0: not yet.
static TABLE: AtomicU8 = AtomicU8::new(0);

/// The unit of a slot.
fn unit(slot: u64) -> usize {
    let unit = slot.saturating_add(COPY_SHIFT) >> UNIT_BITS;
    usize::try_from(unit).unwrap_or(usize::MAX)
}

/// Where the copies of a unit have their memory.
fn memory(unit: usize) -> *mut core::ffi::c_void {
    ((unit as u64) << UNIT_BITS ^ COPY_PART) as *mut _
}

/// The state of a unit: that of its copies, or 0 where they have no memory, as in parts without a stack.
/// `None`: there is no table, or no program has memory there.
fn state(unit: usize) -> Option<&'static AtomicU8> {
    if TABLE.load(Acquire) != MAPPED || unit >= UNITS {
        return None;
    }
    let table = match SECOND.load(Relaxed) {
        0 => UNITS_AT,
        _ => SECOND_UNITS_AT,
    };
    let state = (table as *const AtomicU8).wrapping_add(unit);
    // SAFETY: record invariants 1, 2 and 4: the table is mapped, and has this many bytes.
    Some(unsafe { &*state })
}

/// Makes memory for the copies of all slots on a stack. `false`: there is none, and no return
/// address on that stack must be replaced.
pub(super) fn prepare(low: u64, bytes: u64) -> bool {
    let Some(last) = low.checked_add(bytes.saturating_sub(1)) else {
        return false;
    };
    // Where the bit changes in between, unwinders would look elsewhere than stubs.
    let is_in_one_part = last.saturating_add(COPY_SHIFT) & COPY_PART == low & COPY_PART;
    is_in_one_part && make_table() && (unit(low)..=unit(last)).all(map)
}

fn make_table() -> bool {
    once(&TABLE, || {
        let made = make(UNITS_AT as *mut _, TABLE_BYTES);
        if made {
            // SAFETY: record invariants 1, 2 and 4: the table was mapped, and ends after this word.
            let second = unsafe { &*(SECOND_AT as *const AtomicU64) };
            second.store(SECOND.load(Relaxed), Relaxed);
        }
        made
    })
}

/// Unwinders find a second frame for each replaced return address: at this address, and then the caller. Called
/// before the first one is replaced.
pub(super) fn have_second_frames(at: u64) {
    SECOND.store(at, Relaxed);
}

/// Makes memory for the copies of a unit, unless another thread does so.
fn map(unit: usize) -> bool {
    state(unit).is_some_and(|state| once(state, || make(memory(unit), 1 << UNIT_BITS)))
}

/// Has memory made by one thread, for which others wait. `false`: there is none.
fn once(state: &AtomicU8, make: impl Fn() -> bool) -> bool {
    for _ in 0..PAUSES_MAX {
        match state.compare_exchange(0, IN_THE_MAKING, Acquire, Acquire) {
            Ok(_) => {
                let made = make();
                // With the `Acquire` of all who read it: a thread that finds the state finds the memory.
                state.store(if made { MAPPED } else { 0 }, Release);
                return made;
            }
            Err(MAPPED) => return true,
            Err(_) => _ = nanosleep(&PAUSE),
        }
    }
    false
}

/// Maps memory at `wanted`. `false`: something else lies there, or the kernel gives no memory.
fn make(wanted: *mut core::ffi::c_void, bytes: usize) -> bool {
    match own_memory::map(wanted, bytes, MapFlags::FIXED_NOREPLACE) {
        Some(found) if found == wanted => {
            // SAFETY: the new mapping. Failure is accepted: then its first use may take 2 MiB.
            let _ = unsafe { madvise(found, bytes, Advice::LinuxNoHugepage) };
            true
        }
        Some(elsewhere) => {
            // A kernel before 4.17 takes the address for a wish.
            // SAFETY: the mapping was made here, and no one knows it.
            let _ = unsafe { munmap(elsewhere, bytes) };
            false
        }
        None => false,
    }
}

/// The copy for `slot`; `None`: it has no memory.
fn copy(slot: u64) -> Option<&'static AtomicU64> {
    if state(unit(slot))?.load(Acquire) != MAPPED || !slot.is_multiple_of(8) {
        return None;
    }
    let copy = (slot.checked_add(COPY_SHIFT)? ^ COPY_PART) as *const AtomicU64;
    // SAFETY: record invariants 1 to 4: the state says that the unit's memory is mapped, and eight
    // bytes at a multiple of eight lie in one unit.
    Some(unsafe { &*copy })
}

/// Keeps the true return address of a call whose slot is to be replaced.
pub(super) fn keep(slot: u64, target: u64) {
    if let Some(copy) = copy(slot) {
        copy.store(target, Relaxed);
    }
}

/// The true return address that was kept last for this slot.
pub(super) fn kept(slot: u64) -> Option<u64> {
    let target = copy(slot)?.load(Relaxed);
    (target != 0).then_some(target)
}

#[cfg(test)]
mod tests {
    use rustix::mm::{ProtFlags, mmap_anonymous};

    use super::*;

    #[test]
    fn a_copy_has_memory_where_a_stack_was_prepared() {
        let mut stack = [0_u64; 4];
        let slot = stack.as_mut_ptr() as u64;
        // Two units, of which the second begins in the middle.
        let middle = (slot | ((1 << UNIT_BITS) - 1)) + 1 - COPY_SHIFT;
        assert!(prepare(slot, middle - slot + 16));
        assert!(prepare(slot, 8), "again");
        assert_eq!((kept(slot), kept(middle + 8)), (None, None));
        keep(slot, 7);
        keep(middle + 8, 8);
        assert_eq!((kept(slot), kept(middle + 8)), (Some(7), Some(8)));
        assert_eq!(kept(slot + 1), None, "no slot");
        let far = 1 << (ADDRESS_BITS - 2);
        keep(far, 7);
        assert_eq!(kept(far), None);
        assert_eq!(kept(u64::MAX - 7), None);
    }

    /// The thread that makes the memory may be preempted for long: no other goes on without it.
    #[test]
    fn a_thread_waits_for_the_one_that_makes_the_memory() {
        let start = 1 << (ADDRESS_BITS - 3) | 6 << UNIT_BITS;
        assert!(make_table());
        let state = state(unit(start)).unwrap();
        state.store(IN_THE_MAKING, Release);
        std::thread::scope(|scope| {
            let waiting = [(); 4].map(|()| scope.spawn(|| prepare(start, 8)));
            for _ in 0..200 {
                let _ = nanosleep(&PAUSE);
            }
            assert!(waiting.iter().all(|thread| !thread.is_finished()));
            state.store(0, Release);
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
        assert_eq!(state.load(Acquire), MAPPED);
    }

    #[test]
    fn a_wait_for_memory_ends() {
        let start = 1 << (ADDRESS_BITS - 3) | 7 << UNIT_BITS;
        assert!(make_table());
        let state = state(unit(start)).unwrap();
        state.store(IN_THE_MAKING, Release);
        assert!(!prepare(start, 8));
    }

    #[test]
    fn a_place_in_use_is_left_alone_and_refused() {
        let start = 1 << (ADDRESS_BITS - 3) | 5 << UNIT_BITS;
        let wanted = memory(unit(start));
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: the flags make the kernel refuse a place that is in use.
        let there = unsafe { mmap_anonymous(wanted, 4096, ProtFlags::READ, flags) };
        assert_eq!(there.unwrap(), wanted);
        assert!(!prepare(start - COPY_SHIFT - 64, 128));
        assert_eq!(kept(start), None);
        assert!(!prepare(COPY_PART - 64, 128), "two parts");
        assert!(!prepare(COPY_PART - COPY_SHIFT, 8), "two parts");
        assert!(!prepare(1 << ADDRESS_BITS, 8), "no program's memory");
        assert!(!prepare(u64::MAX, 8));
    }
}
