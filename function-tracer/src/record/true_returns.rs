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

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// The bits in which the addresses of a slot and of its copy differ. The upper one leads to another
/// part of memory. The lower ones lead to another set of the cache: where only upper bits differ,
/// each access to one makes the next to the other slow (on Zen 4 a call took 4 ns more).
pub(super) const COPY_BITS: u64 = 1 << 45 | 1 << 11 | 1 << 6;
/// Bits of an address in a unit: 64 MiB.
pub(super) const UNIT_BITS: u32 = 26;
/// Bits of an address of a program.
const ADDRESS_BITS: u32 = 47;
/// How often a thread gives way to one that maps the same unit.
const YIELDS: usize = 100;

/// By number of a unit of slots: 1 where their copies have memory. Parts without a stack take none.
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

/// Makes memory for the copies of the unit that begins at `start`.
fn map(start: u64) -> bool {
    let Some(flag) = flag(start) else {
        return false;
    };
    if flag.load(Acquire) == 1 {
        return true;
    }
    let wanted = memory(start);
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: record invariant 3: the flags make the kernel refuse a place that is in use.
    match unsafe { mmap_anonymous(wanted, 1 << UNIT_BITS, protection, flags) } {
        Ok(found) if found == wanted => {
            // SAFETY: the new mapping. Failure is accepted: then its first use may take 2 MiB.
            let _ = unsafe { madvise(found, 1 << UNIT_BITS, Advice::LinuxNoHugepage) };
            flag.store(1, Release); // With the `Acquire` above: who finds the flag finds the memory.
            true
        }
        Ok(elsewhere) => {
            // A kernel before 4.17 takes the address for a wish.
            // SAFETY: the mapping was made here, and no one knows it.
            let _ = unsafe { munmap(elsewhere, 1 << UNIT_BITS) };
            false
        }
        // Another thread has made it a moment ago, or something else lies there.
        Err(Errno::EXIST) => (0..YIELDS).any(|_| {
            rustix::thread::sched_yield();
            flag.load(Acquire) == 1
        }),
        Err(_) => false,
    }
}

/// The copy for `slot`; `None`: it has no memory.
fn copy(slot: u64) -> Option<&'static AtomicU64> {
    if flag(slot)?.load(Acquire) != 1 || !slot.is_multiple_of(8) {
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
