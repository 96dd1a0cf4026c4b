//! How a thread gets a ring, and what the event path does when it cannot go straight on.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::counters::Cause;
use ringmark_format::session::{Mode, SessionState};
use ringmark_format::slot::state;
use ringmark_format::{RingId, TypeId};
use ringmark_ring::writer::Ring;
use ringmark_ring::{Reservation, SlotGeometry, Writer, clock};

use super::core::Core;
use super::{control, memory, process};
use crate::event::Now;
use crate::thread_block::{self, Phase};

/// Gets a ring for this thread ahead of its first event. `false`: there is no session, or no ring.
pub fn attach_thread() -> bool {
    session_of_this_process().is_some_and(|core| writer_of_thread(core).is_ok())
}

/// The one way off the straight line: other clocks, a full page, no ring yet, a forked child.
#[cold]
#[inline(never)]
pub(crate) fn reserve_slow(type_id: TypeId, words: u64, now: Now) -> Option<Reservation<'static>> {
    if let (Some(writer), Now::Clock) = (thread_block::writer(), now)
        && writer.is_attached()
        && let Some(core) = Core::current()
    {
        let ticks = clock::ticks(core.clock);
        if let Some(reservation) = writer.reserve(type_id, words, ticks) {
            return Some(reservation);
        }
        return reserve_in(core, writer, type_id, words, ticks);
    }
    let core = session_of_this_process()?;
    let ticks = match now {
        Now::At(ticks) => ticks,
        Now::Clock => clock::ticks(core.clock),
    };
    match writer_of_thread(core) {
        Ok(writer) => reserve_in(core, writer, type_id, words, ticks),
        Err(cause) => {
            core.count_lost(cause);
            None
        }
    }
}

fn reserve_in(
    core: &'static Core,
    writer: &'static Writer,
    type_id: TypeId,
    words: u64,
    ticks: u64,
) -> Option<Reservation<'static>> {
    let base = |now| core.page_base(now);
    match writer.reserve_cold(type_id, words, ticks, &base) {
        Ok(reservation) => Some(reservation),
        Err(Cause::Nested) if writer.looks_abandoned() => {
            thread_block::set_writer(None);
            writer.seal(state::ABANDONED);
            None
        }
        Err(Cause::NoRing) => {
            // A handler gave the ring up since the caller looked; no slot counts this one.
            core.count_lost(Cause::NoRing);
            None
        }
        Err(_) => None,
    }
}

/// The session, or in a forked child the one it gets now.
pub(super) fn session_of_this_process() -> Option<&'static Core> {
    match Core::current() {
        Some(core) if core.wiped.is_ours() => Some(core),
        Some(_) => {
            // The child of a raw clone: nobody told it, the wiped memory did.
            process::count_foreign();
            None
        }
        None => process::session_after_fork(),
    }
}

fn writer_of_thread(core: &'static Core) -> Result<&'static Writer, Cause> {
    if let Some(writer) = thread_block::writer()
        && writer.is_attached()
    {
        return Ok(writer);
    }
    match thread_block::phase() {
        Phase::Exited => Err(Cause::ThreadExited),
        // A signal handler came while this thread was getting its ring.
        Phase::Attaching => Err(Cause::NoRing),
        Phase::Open => {
            thread_block::set_phase(Phase::Attaching);
            // A handler that came just before may have got the ring.
            if let Some(writer) = thread_block::writer().filter(|writer| writer.is_attached()) {
                thread_block::set_phase(Phase::Open);
                return Ok(writer);
            }
            let attached = attach(core);
            if let Ok(writer) = attached {
                thread_block::set_writer(Some(writer));
                process::seal_at_thread_exit(writer);
            }
            thread_block::set_phase(Phase::Open);
            attached
        }
    }
}

/// Finds a ring: warm, drained, new, or (overwrite mode) the one sealed longest ago.
fn attach(core: &'static Core) -> Result<&'static Writer, Cause> {
    if let Some(slot) = claim_existing(core, state::WARM, |_| true) {
        control::ask_for_warm_rings(core);
        return own(core, slot);
    }
    let drained = |slot| {
        core.file
            .slot(slot)
            .is_some_and(|s| s.consumed() == s.produced())
    };
    if core.options.mode == Mode::Lossless
        && let Some(slot) = claim_existing(core, state::SEALED, drained)
    {
        return own(core, slot);
    }
    match new_slot(core) {
        Ok(slot) => own(core, slot),
        Err(cause) => claim_oldest_sealed(core).map_or(Err(cause), |slot| own(core, slot)),
    }
}

fn claim_existing(core: &Core, from: u64, fits: impl Fn(u32) -> bool) -> Option<u32> {
    (0..core.file.slots_used()).find(|index| {
        core.file
            .slot(*index)
            .is_some_and(|slot| slot.state() == from && fits(*index) && slot.claim(from))
    })
}

/// Overwrite mode only: the sealed ring whose claim is the oldest.
fn claim_oldest_sealed(core: &Core) -> Option<u32> {
    if core.options.mode != Mode::Overwrite {
        return None;
    }
    let slot = |index: &u32| core.file.slot(*index);
    let sealed = |index: &u32| slot(index).is_some_and(|s| s.state() == state::SEALED);
    let oldest = (0..core.file.slots_used())
        .filter(sealed)
        .min_by_key(|i| slot(i).map(|s| s.ring_id()))?;
    slot(&oldest)?.claim(state::SEALED).then_some(oldest)
}

/// Sets up a slot that nobody had: memory, geometry. It is CLAIMING, the caller's.
fn new_slot(core: &Core) -> Result<u32, Cause> {
    let used = core.state_word(offset_of!(SessionState, slots_used));
    let slots = u64::from(core.file.geometry().header.slots);
    if used.load(Relaxed) >= slots {
        return Err(Cause::NoRing);
    }
    let geometry = memory::take_ring(core).ok_or(Cause::NoMemory)?;
    core.file
        .map()
        .populate(geometry.pages_offset, geometry.ring_bytes());
    let index = used.fetch_update(Relaxed, Relaxed, |n| (n < slots).then_some(n + 1));
    let index = index.map_err(|_| Cause::NoRing)? as u32;
    let slot = core.file.slot(index).ok_or(Cause::NoRing)?;
    if !slot.claim(state::FREE) {
        return Err(Cause::NoRing);
    }
    slot.set_geometry(geometry);
    Ok(index)
}

/// Makes one more ring that waits for a thread. `false`: there is no room.
pub(super) fn add_warm(core: &Core) -> bool {
    if !memory::has_room_ahead(core) {
        return false;
    }
    let Ok(index) = new_slot(core) else {
        return false;
    };
    core.file
        .slot(index)
        .inspect(|slot| slot.publish_state(state::WARM))
        .is_some()
}

/// Rings that wait for threads.
pub(super) fn count_warm(core: &Core) -> u32 {
    let warm = |i: &u32| core.file.slot(*i).is_some_and(|s| s.state() == state::WARM);
    (0..core.file.slots_used()).filter(warm).count() as u32
}

/// Makes the calling thread the owner of a claimed slot.
fn own(core: &'static Core, index: u32) -> Result<&'static Writer, Cause> {
    let slot = core.file.slot(index).ok_or(Cause::NoRing)?;
    let writer = core.wiped.writer(index).ok_or(Cause::NoRing)?;
    let geometry: SlotGeometry = slot.geometry();
    let pages = core.file.pages(geometry).ok_or(Cause::NoMemory)?;
    let ring_id = core
        .state_word(offset_of!(SessionState, next_ring_id))
        .fetch_add(1, Relaxed);
    let (tid, thread_name) = process::own_thread();
    slot.set_owner(RingId(ring_id), tid, thread_name);
    let mode = core.options.mode;
    let ring = Ring {
        pages,
        geometry,
        slot,
        slot_index: index,
        mode,
        ring_id,
        tid,
        thread_name,
    };
    // SAFETY: this thread holds the slot's claim, and no thread block points to the writer yet.
    unsafe { writer.attach(ring, core.clock as u32) };
    slot.publish_state(state::ACTIVE);
    Ok(writer)
}
