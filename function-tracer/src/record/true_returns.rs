//! A copy of each true return address, at a fixed distance from its slot. By it an unwinder finds
//! the caller in the same few steps, however many calls and threads there are: the unwind table's
//! entry for `ringmark_return` reads it.
//!
//! The address of a copy is that of its slot with some bits changed. So every stack has its copies in
//! a place of its own, where the kernel puts nothing by itself. Memory for them is mapped in
//! *units*, before the first return address on the stack is replaced, and stays. A page of it is
//! used when a slot on the page of the stack is.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::thread::{Timespec, nanosleep};

/// The bits in which the addresses of a slot and of its copy differ. The upper one leads to another
/// part of memory. The lower ones lead to another set of the cache: where only upper bits differ,
/// each access to one makes the next to the other slow (on Zen 4 a call took 4 ns more).
pub(super) const COPY_BITS: u64 = 1 << 45 | 1 << 11 | 1 << 6;
/// Bits of an address in a unit: 64 MiB.
pub(super) const UNIT_BITS: u32 = 26;
/// Bits of an address of a program.
const ADDRESS_BITS: u32 = 47;

/// In [`UNITS`]: the copies of the unit have memory.
const MAPPED: u8 = 1;
/// In [`UNITS`]: a thread makes the memory. No slot of the unit is replaced, so no unwinder looks.
const IN_THE_MAKING: u8 = 2;
/// Pause of a thread that waits for the one that makes the memory, and pauses at most. That one may
/// have been preempted, or be this one, which a handler has interrupted.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000,
};
const PAUSES_MAX: usize = 1000;

/// By number of a unit of slots: the state of their copies; 0 where they have no memory, as in parts
/// without a stack.
pub(super) static UNITS: [AtomicU8; 1 << (ADDRESS_BITS - UNIT_BITS)] =
    [const { AtomicU8::new(0) }; 1 << (ADDRESS_BITS - UNIT_BITS)];

/// Where the copies of the unit that begins at `start` have their memory.
fn memory(start: u64) -> *mut core::ffi::c_void {
    let in_unit = (1 << UNIT_BITS) - 1;
    (start ^ COPY_BITS & !in_unit) as *mut _
}

/// The flag of the unit with this slot; `None`: no program has memory there.
fn flag(slot: u64) -> Option<&'static AtomicU8> {
    UNITS.get(usize::try_from(slot >> UNIT_BITS).ok()?)
}

/// Makes memory for the copies of all slots on a stack. `false`: there is none, and no return
/// address on that stack must be replaced.
pub(super) fn prepare(low: u64, bytes: u64) -> bool {
    let Some(last) = low.checked_add(bytes.saturating_sub(1)) else {
        return false;
    };
    (low >> UNIT_BITS..=last >> UNIT_BITS).all(|unit| map(unit << UNIT_BITS))
}

/// Makes memory for the copies of the unit that begins at `start`, unless another thread does so.
fn map(start: u64) -> bool {
    let Some(flag) = flag(start) else {
        return false;
    };
    for _ in 0..PAUSES_MAX {
        match flag.compare_exchange(0, IN_THE_MAKING, Acquire, Acquire) {
            Ok(_) => {
                let made = make(memory(start));
                // With the `Acquire` of all who read it: a thread that finds the flag finds the memory.
                flag.store(if made { MAPPED } else { 0 }, Release);
                return made;
            }
            Err(MAPPED) => return true,
            Err(_) => _ = nanosleep(&PAUSE),
        }
    }
    false
}

/// Maps a unit at `wanted`. `false`: something else lies there, or the kernel gives no memory.
fn make(wanted: *mut core::ffi::c_void) -> bool {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: record invariant 3: the flags make the kernel refuse a place that is in use.
    match unsafe { mmap_anonymous(wanted, 1 << UNIT_BITS, protection, flags) } {
        Ok(found) if found == wanted => {
            // SAFETY: the new mapping. Failure is accepted: then its first use may take 2 MiB.
            let _ = unsafe { madvise(found, 1 << UNIT_BITS, Advice::LinuxNoHugepage) };
            true
        }
        Ok(elsewhere) => {
            // A kernel before 4.17 takes the address for a wish.
            // SAFETY: the mapping was made here, and no one knows it.
            let _ = unsafe { munmap(elsewhere, 1 << UNIT_BITS) };
            false
        }
        Err(_) => false,
    }
}

/// The copy for `slot`; `None`: it has no memory.
fn copy(slot: u64) -> Option<&'static AtomicU64> {
    if flag(slot)?.load(Acquire) != MAPPED || !slot.is_multiple_of(8) {
        return None;
    }
    let copy = (slot ^ COPY_BITS) as *const AtomicU64;
    // SAFETY: record invariants 1 to 4: the flag says that the unit's memory is mapped, and eight
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
    use super::*;

    #[test]
    fn a_copy_has_memory_where_a_stack_was_prepared() {
        let mut stack = [0_u64; 4];
        let slot = stack.as_mut_ptr() as u64;
        // Two units, of which the second begins in the middle.
        let middle = (slot | ((1 << UNIT_BITS) - 1)) + 1;
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
        let flag = flag(start).unwrap();
        flag.store(IN_THE_MAKING, Release);
        std::thread::scope(|scope| {
            let waiting = [(); 4].map(|()| scope.spawn(|| prepare(start, 8)));
            for _ in 0..200 {
                let _ = nanosleep(&PAUSE);
            }
            assert!(waiting.iter().all(|thread| !thread.is_finished()));
            flag.store(0, Release);
            assert!(waiting.into_iter().all(|thread| thread.join().unwrap()));
        });
        assert_eq!(flag.load(Acquire), MAPPED);
    }

    #[test]
    fn a_wait_for_memory_ends() {
        let start = 1 << (ADDRESS_BITS - 3) | 7 << UNIT_BITS;
        flag(start).unwrap().store(IN_THE_MAKING, Release);
        assert!(!prepare(start, 8));
    }

    #[test]
    fn a_place_in_use_is_left_alone_and_refused() {
        let start = 1 << (ADDRESS_BITS - 3) | 5 << UNIT_BITS;
        let wanted = memory(start);
        let flags = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: the flags make the kernel refuse a place that is in use.
        let there = unsafe { mmap_anonymous(wanted, 4096, ProtFlags::READ, flags) };
        assert_eq!(there.unwrap(), wanted);
        assert!(!prepare(start - 64, 128));
        assert_eq!(kept(start), None);
        assert!(!prepare(1 << ADDRESS_BITS, 8), "no program's memory");
        assert!(!prepare(u64::MAX, 8));
    }
}
