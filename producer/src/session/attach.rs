//! How a thread gets a ring, and what the event path does when it cannot go straight on.

use core::mem::offset_of;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::counters::Cause;
use ringmark_format::session::{Mode, SessionState};
use ringmark_format::slot::state;
use ringmark_format::{RingId, TypeId};
use ringmark_ring::writer::Ring;
use ringmark_ring::{Reservation, SlotGeometry, Writer, clock};

use super::core::Core;
use super::held_signals::HeldSignals;
use super::process::KeptErrno;
use super::reserve::Wanted;
use super::waits::{self, Stack};
use super::{memory, process, reserve, retry, span_gate, warm};
use crate::description::Now;
use crate::thread_block::{self, Phase};

/// Attaches this thread to a ring ahead of its first event, which is then as fast as later ones. All pages
/// of the ring have memory then: no event of the thread makes a system call.
///
/// `false`: there is no session, or no ring.
///
/// ```
/// use ringmark::{Session, attach_thread};
///
/// assert!(!attach_thread());
/// let _session = Session::builder().start().expect("a session");
/// assert!(attach_thread());
/// ```
pub fn attach_thread() -> bool {
    let attached = session_of_this_process().map(|core| (core, writer_of_thread(core)));
    let Some((core, Ok(writer))) = attached else {
        return false;
    };
    memory::allocate_ring(core, writer);
    true
}

/// Gets a ring for a thread that begins a span as the first thing it records: its stack of open
/// spans lies there. Where there is none, the span's record will be counted as lost.
#[cold]
#[inline(never)]
pub(crate) fn attach_for_span() {
    if let Some(core) = session_of_this_process()
        && known_to_have_no_ring().is_none()
    {
        let _ = writer_of_thread(core);
    }
}

/// The words of the largest record that this thread's ring holds.
#[cfg(feature = "tracing")]
pub(crate) fn payload_words_max() -> u64 {
    if thread_block::writer().is_none() {
        attach_for_span();
    }
    thread_block::writer().map_or(0, Writer::payload_words_max)
}

/// Whether a frame of a stack of open spans lies in a session that runs and is this process's own. A
/// forked child has its parent's frames mapped as well.
pub(super) fn is_own_frame(frame: *const u64) -> bool {
    let own = Core::current().filter(|core| core.wiped.is_ours());
    own.is_some_and(|core| {
        let file = core.file.map();
        let words = file.words(0, file.bytes() & !7).unwrap_or(&[]);
        words.as_ptr_range().contains(&frame.cast())
    })
}

/// The one way off the straight line: an old page, and what is less simple.
///
/// `ticks` is what the straight line has read of the clock, or 0.
#[cold]
#[inline(never)]
pub(crate) fn reserve_slow(
    type_id: TypeId,
    words: u64,
    now: Now,
    ticks: u64,
) -> Option<Reservation<'static>> {
    reserve_slow_from(Stack::Current, type_id, words, now, ticks)
}

/// As [`reserve_slow`], for a caller that may have left the program's stack.
#[cold]
#[inline(never)]
pub(crate) fn reserve_slow_from(
    stack: Stack,
    type_id: TypeId,
    words: u64,
    now: Now,
    ticks: u64,
) -> Option<Reservation<'static>> {
    // A record of an earlier moment was decided on then.
    if now == Now::Clock && span_gate::is_on() {
        if !span_gate::permits(type_id.0) {
            return None;
        }
        if let Some(reservation) = reserve_without_clock(type_id, words) {
            return Some(reservation);
        }
    }
    if ticks != 0
        && let Some(writer) = thread_block::writer()
        && let Some(reservation) = writer.reserve_extended(type_id, words, ticks)
    {
        return Some(reservation);
    }
    reserve_slower(stack, type_id, words, now, ticks)
}

/// The straight line of a thread whose writer has no clock while the filter is one by spans.
fn reserve_without_clock(type_id: TypeId, words: u64) -> Option<Reservation<'static>> {
    let (writer, core) = (thread_block::writer()?, Core::current()?);
    writer.reserve(type_id, words, clock::ticks(core.clock))
}

/// A full page, no ring yet, a forked child, a clock that was not read.
#[inline(never)]
fn reserve_slower(
    stack: Stack,
    type_id: TypeId,
    words: u64,
    now: Now,
    ticks: u64,
) -> Option<Reservation<'static>> {
    let wanted = |ticks| Wanted {
        type_id,
        words,
        ticks,
    };
    if let Some(writer) = thread_block::writer()
        && writer.is_attached()
        && let Some(core) = Core::current()
    {
        if writer.clock() == 0 {
            span_gate::tend(writer, core.clock);
        }
        let ticks = match now {
            Now::Clock if ticks == 0 => clock::ticks(core.clock),
            Now::Clock => ticks,
            Now::At(ticks) => ticks,
        };
        return reserve_in(core, writer, stack, &wanted(ticks));
    }
    let core = session_of_this_process()?;
    if let Some(cause) = known_to_have_no_ring() {
        core.count_lost(cause);
        return None;
    }
    match writer_of_thread(core) {
        Ok(writer) => {
            // Read now: getting a ring may take milliseconds, and is no part of a first call.
            let ticks = match now {
                Now::At(ticks) => ticks,
                Now::Clock => clock::ticks(core.clock),
            };
            reserve_in(core, writer, stack, &wanted(ticks))
        }
        Err(cause) => {
            core.count_lost(cause);
            None
        }
    }
}

fn reserve_in(
    core: &'static Core,
    writer: &'static Writer,
    stack: Stack,
    wanted: &Wanted,
) -> Option<Reservation<'static>> {
    let (mut ring, mut reserved) = (writer, reserve_there(core, writer, stack, wanted));
    if let Err(Cause::Nested) = reserved
        && let Some(other) = ring_beside(core, writer, stack)
    {
        (ring, reserved) = (other, reserve_there(core, other, stack, wanted));
    }
    match reserved {
        Ok(reservation) => return Some(reservation),
        Err(Cause::Nested) => ring.lose(Cause::Nested),
        Err(Cause::NoRing) => core.count_lost(Cause::NoRing), // No slot counts this one.
        Err(_) => {}
    }
    None
}

/// A reservation in this ring. Its slot has counted the event as lost, unless it is nested or there is no
/// ring.
fn reserve_there(
    core: &'static Core,
    writer: &'static Writer,
    stack: Stack,
    wanted: &Wanted,
) -> Result<Reservation<'static>, Cause> {
    if !core.options.wait.is_zero() {
        return waits::reserve(core, writer, stack, wanted);
    }
    let reserved = reserve::reserve(core, writer, wanted);
    if let Err(Cause::RingFull) = reserved {
        writer.lose(Cause::RingFull);
    }
    reserved
}

/// This context finds a page full in which another one holds a reservation, or has left it: the ring in
/// which its thread goes on, if there is one.
fn ring_beside(
    core: &'static Core,
    writer: &'static Writer,
    stack: Stack,
) -> Option<&'static Writer> {
    // A signal handler that came while its thread was getting a ring.
    if thread_block::phase() != Phase::Open {
        return None;
    }
    if writer.idle_other().is_none() && !writer.wants_another(|| stack.is_in_handler()) {
        return None;
    }
    let _attaching = Attaching::begin();
    let now = thread_block::writer()?;
    // A handler that came just before may have done it.
    if !ptr::eq(now, writer) {
        return Some(now);
    }
    let other = writer
        .idle_other()
        .or_else(|| attach_beside(core, writer))?;
    writer.change_to(other);
    thread_block::set_writer(Some(other));
    Some(other)
}

fn attach_beside(core: &'static Core, writer: &'static Writer) -> Option<&'static Writer> {
    let other = attach(core).ok()?;
    writer.join(other);
    Some(other)
}

/// The session, or in a forked child the one it gets now.
pub(super) fn session_of_this_process() -> Option<&'static Core> {
    match Core::current() {
        Some(core) if core.wiped.is_ours() => Some(core),
        Some(_) => {
            // The child of a raw clone: no hook ran in it, the wiped memory shows what it is.
            process::count_foreign();
            None
        }
        None => process::session_after_fork(),
    }
}

fn known_to_have_no_ring() -> Option<Cause> {
    if thread_block::writer().is_some() || thread_block::phase() != Phase::Open {
        return None;
    }
    retry::known()
}

/// Whether the calling thread gets a ring or starts the session of a forked child, with its signals held: what it calls
/// meanwhile is called by this library.
#[must_use]
pub fn does_own_work() -> bool {
    thread_block::phase() == Phase::Attaching || process::is_starting_in_child()
}

fn writer_of_thread(core: &'static Core) -> Result<&'static Writer, Cause> {
    if let Some(writer) = thread_block::writer()
        && writer.is_attached()
    {
        return Ok(writer);
    }
    match thread_block::phase() {
        Phase::Exited => Err(Cause::ThreadExited),
        // This thread is getting its ring.
        Phase::Attaching => Err(Cause::NoRing),
        Phase::Open => {
            let _attaching = Attaching::begin();
            // A handler that came just before may have got the ring.
            if let Some(writer) = thread_block::writer().filter(|writer| writer.is_attached()) {
                return Ok(writer);
            }
            if !process::may_attach(core) {
                return Err(Cause::NoRing);
            }
            let freed = retry::freed();
            let attached = attach(core);
            match attached {
                Ok(writer) => {
                    thread_block::set_writer(Some(writer));
                    process::seal_at_thread_exit(writer);
                }
                Err(cause) => retry::remember(cause, freed),
            }
            attached
        }
    }
}

/// This thread looks for a ring, with its signals held: a handler that left by a jump would leave it without
/// one for ever. What a function of the program's own records in that time, because it has the name of one
/// that is called here, gets none: nothing begins again.
struct Attaching {
    errno: Option<KeptErrno>,
    _signals: HeldSignals,
}

impl Attaching {
    fn begin() -> Self {
        let signals = HeldSignals::hold();
        thread_block::set_phase(Phase::Attaching);
        Self {
            errno: Some(KeptErrno::new()),
            _signals: signals,
        }
    }
}

impl Drop for Attaching {
    fn drop(&mut self) {
        drop(self.errno.take());
        thread_block::set_phase(Phase::Open);
    }
}

/// Finds a ring, and notes in it how long that took.
fn attach(core: &'static Core) -> Result<&'static Writer, Cause> {
    let begun_ns = clock::monotonic_ns();
    let index = find_ring(core)?;
    let writer = own(core, index)?;
    let slot = core.file.slot(index);
    let took_ns = clock::monotonic_ns().saturating_sub(begun_ns);
    slot.inspect(|slot| slot.note_ring_wait(took_ns));
    Ok(writer)
}

/// Claims a ring: warm, drained, new, or (overwrite mode) the one sealed longest ago.
fn find_ring(core: &'static Core) -> Result<u32, Cause> {
    if core.file.is_broken() {
        return Err(Cause::NoMemory);
    }
    let directory = core.file.directory();
    if let Some(slot) = directory.claim_warm() {
        warm::ask_for_more(core);
        return Ok(slot);
    }
    if core.options.mode == Mode::Discard
        && let Some(slot) = directory.claim_drained()
    {
        return Ok(slot);
    }
    warm::new_slot(core)
        .inspect(|_| warm::ask_for_more(core))
        .or_else(|cause| match core.options.mode {
            Mode::Discard => Err(cause),
            Mode::Overwrite => directory.claim_oldest_sealed().ok_or(cause),
        })
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
        stack: core.file.span_stack(slot),
        slot,
        slot_index: index,
        mode,
        ring_id,
        tid,
        thread_name,
    };
    // SAFETY: invariant 8 of the writer: this thread holds the slot's claim, and no thread block
    // points to the writer yet.
    unsafe { writer.attach(ring, core.clock as u32) };
    span_gate::tend(writer, core.clock);
    slot.publish_state(state::ACTIVE);
    Ok(writer)
}
