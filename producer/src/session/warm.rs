//! The pool of warm rings: allocated and touched ahead, they wait for threads. A thread that takes one
//! asks for more, the helper thread makes them, and gets memory for what all rings still lack.
//!
//! # Invariants
//!
//! 1. The futex word of a mailbox is the low half of its request number: the first half of a
//!    little-endian `u64`, which is aligned to 8, mapped as long as the mailbox, and only reached
//!    through atomics.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use ringmark_format::counters::Cause;
use ringmark_format::slot::state;
use ringmark_ring::identity;
use ringmark_ring::mailbox::Mailbox;
use rustix::thread::futex;

use super::core::Core;
use super::{memory, retry};

/// The pool was used since the helper last looked.
static POOL_USED: AtomicBool = AtomicBool::new(false);

/// Notifies the helper that a ring was taken. At most one wake-up per attach, none afterwards.
pub(super) fn ask_for_more(core: &Core) {
    POOL_USED.store(true, Relaxed);
    if let Some(mailbox) = core.file.mailbox() {
        let _ = futex::wake(futex_half(&mailbox), futex::Flags::empty(), 1);
    }
}

/// Whether a ring was taken since the last call of [`was_used`].
pub(super) fn is_used() -> bool {
    POOL_USED.load(Relaxed)
}

/// Whether a ring was taken since the last call.
pub(super) fn was_used() -> bool {
    POOL_USED.swap(false, Relaxed)
}

/// The low half of the request number: what asker and helper wait on.
pub(super) fn futex_half<'m>(mailbox: &Mailbox<'m>) -> &'m AtomicU32 {
    let word: *const core::sync::atomic::AtomicU64 = mailbox.futex_word();
    // SAFETY: invariant 1.
    unsafe { &*word.cast() }
}

/// Fills the pool of a new session.
pub(super) fn fill(core: &Core) {
    add(core, core.options.warm);
}

fn add(core: &Core, rings: u32) {
    for _ in 0..rings {
        if !add_warm(core) {
            break;
        }
    }
}

/// Makes as many rings as are missing in the pool, as far as there is room.
pub(super) fn refill(core: &Core) {
    add(core, core.options.warm.saturating_sub(count_warm(core)));
}

/// Makes rings for the threads that have none, as far as there is room: a tool asks for something that may
/// have them record at once, and the first call of each would take as long as its ring does.
pub(super) fn for_threads(core: &Core) {
    let slots = (0..core.file.slots_used()).filter_map(|index| core.file.slot(index));
    let ready = slots.filter(|slot| matches!(slot.state(), state::ACTIVE | state::WARM));
    // The helper thread itself needs none.
    let threads = identity::threads().saturating_sub(1);
    add(core, threads.saturating_sub(ready.count() as u32));
}

/// Sets up a slot that was never used: memory, geometry, stack of open spans. It is CLAIMING, the caller's.
pub(super) fn new_slot(core: &Core) -> Result<u32, Cause> {
    let directory = core.file.directory();
    if !directory.has_room() {
        return Err(Cause::NoRing);
    }
    let (geometry, stack) = memory::take_ring(core).ok_or(Cause::NoMemory)?;
    let has_memory = |index| memory::allocate_entry(core, index);
    let index = directory.add(geometry, has_memory).ok_or(Cause::NoRing)?;
    let writer = core.wiped.writer(index);
    writer.inspect(|writer| {
        writer.has_first_pages(memory::first_pages(core, geometry), geometry);
    });
    let slot = core.file.slot(index);
    slot.inspect(|slot| slot.set_stack_offset(stack));
    Ok(index)
}

/// Makes one more ring that waits for a thread. `false`: there is no room.
fn add_warm(core: &Core) -> bool {
    if !memory::has_room_ahead(core) {
        return false;
    }
    let Ok(index) = new_slot(core) else {
        return false;
    };
    let added = core.file.slot(index);
    added.inspect(|slot| slot.publish_state(state::WARM));
    retry::ring_freed();
    added.is_some()
}

/// Rings that wait for threads.
fn count_warm(core: &Core) -> u32 {
    core.file.directory().count_warm()
}
