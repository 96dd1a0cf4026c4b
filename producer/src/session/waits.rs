//! Waiting for room in a full ring, where the session's options say so: discard mode only.
//!
//! What keeps a program safe from its reader:
//!
//! | rule | why |
//! | --- | --- |
//! | only while a consumer holds its lock, asked for at each stall and every 10 ms of it | a reader that is gone frees nothing |
//! | or before that, if one announced itself before the session began | a recorder takes a moment to find a new session |
//! | not in a process that consumes the session itself | it would wait for itself |
//! | with no reservation under way in the ring, and in no signal handler | a handler would hold up what it interrupted |
//! | not on the helper thread, in a fork, while a ring is looked for, once the process exits | others wait for these |
//! | not with a real-time policy | the reader may never run |
//! | at most the time of the options, once for each stall | a reader that is stopped holds up each thread once |
//! | then not in this ring until a page is released, nor in any other one of the process | as above |
//!
//! A *stall* is the time from an event that finds its ring full until a page is released. The sleep is
//! a system call without the C library: no cancellation point, and `errno` stays.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::counters::Cause;
use ringmark_ring::{Reservation, Writer, clock, file_lock};
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, Timespec, nanosleep};

use super::core::Core;
use super::reserve::{self, Wanted};
use super::{handler, other_copies, own_files, process, wait_record};
use crate::thread_block::{self, Phase};

/// First pause of a stall; each is twice as long as the one before.
const PAUSE_NS: u64 = 50_000;
/// Longest pause.
const PAUSE_NS_MAX: u64 = 1_000_000;
/// How often it is asked whether the consumer is still there.
const ASK_EVERY_NS: u64 = 10_000_000;

/// Where the frames of the calling thread's program lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stack {
    /// On the stack that the caller is on.
    Current,
    /// Around this address, on the stack that the caller has left for one of its own.
    Around(usize),
    /// Where a signal handler's frame may lie that cannot be told from other words: no wait.
    Unknown,
}

impl Stack {
    /// Whether a signal handler runs on the calling thread, or may well run. Takes some 70 system calls.
    pub(super) fn is_in_handler(self) -> bool {
        match self {
            Self::Current => handler::is_running(),
            Self::Around(frame) => handler::is_running_around(frame),
            Self::Unknown => true,
        }
    }
}

/// Why a thread does not wait, or no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum No {
    /// This event cannot, another one of the thread may.
    ForThis,
    /// None of the ring, until a page of it is released.
    UntilRead,
}

/// Reserves a record; where the ring is full, waits for room as far as the rules allow.
///
/// # Errors
/// The event is lost, and counted but for [`Cause::Nested`] and [`Cause::NoRing`].
pub(super) fn reserve(
    core: &'static Core,
    writer: &'static Writer,
    stack: Stack,
    wanted: &Wanted,
) -> Result<Reservation<'static>, Cause> {
    // Also for a handler that interrupts a wait in this ring.
    if writer.is_known_full() {
        writer.lose(Cause::RingFull);
        return Err(Cause::RingFull);
    }
    let mut stall = None;
    loop {
        let reserved = reserve::reserve(core, writer, wanted);
        if !matches!(reserved, Err(Cause::RingFull)) {
            stall.inspect(|stall: &Stall| stall.count(core, writer));
            if let (Ok(_), Some(type_id)) = (&reserved, wait_record::type_id()) {
                writer.tell_wait(type_id);
            }
            return reserved;
        }
        let refused = match &mut stall {
            Some(stall) => stall.pause(core).err(),
            None => match Stall::begin(core, writer, stack) {
                Ok(begun) => stall.insert(begun).pause(core).err(),
                Err(why) => Some(why),
            },
        };
        if let Some(why) = refused {
            stall.inspect(|stall| stall.count(core, writer));
            if why == No::ForThis {
                writer.forget_full();
            }
            writer.lose(Cause::RingFull);
            return Err(Cause::RingFull);
        }
    }
}

/// A thread that waits.
#[derive(Debug, Clone, Copy)]
struct Stall {
    begun_ns: u64,
    begun_ticks: u64,
    asked_ns: u64,
    pause_ns: u64,
}

impl Stall {
    /// Decides whether the thread may wait at all, the cheapest questions first.
    fn begin(core: &Core, writer: &'static Writer, stack: Stack) -> Result<Self, No> {
        let begun_ns = clock::monotonic_ns();
        let is_free = thread_block::phase() == Phase::Open
            && !thread_block::never_waits()
            && !process::is_forking()
            && writer.holds_nothing();
        if !is_free {
            return Err(No::ForThis);
        }
        if core.file.has_said_bye() || are_in_vain(core) || process::is_real_time() {
            return Err(No::UntilRead);
        }
        ask_for_consumer(core, begun_ns)?;
        if stack.is_in_handler() {
            return Err(No::ForThis);
        }
        Ok(Self {
            begun_ns,
            begun_ticks: clock::ticks(core.clock),
            asked_ns: begun_ns,
            pause_ns: PAUSE_NS,
        })
    }

    /// Sleeps once, if there is still time and reason to.
    fn pause(&mut self, core: &Core) -> Result<(), No> {
        let now = clock::monotonic_ns();
        let budget = core.options.wait.as_nanos() as u64;
        let left = budget.saturating_sub(now.saturating_sub(self.begun_ns));
        if left == 0 {
            core.waits().was_in_vain(released(core));
            return Err(No::UntilRead);
        }
        if core.file.has_said_bye() || are_in_vain(core) {
            return Err(No::UntilRead);
        }
        if now.saturating_sub(self.asked_ns) >= ASK_EVERY_NS {
            self.asked_ns = now;
            ask_for_consumer(core, now)?;
        }
        let pause = Timespec {
            tv_sec: 0,
            tv_nsec: self.pause_ns.min(left) as i64,
        };
        self.pause_ns = (2 * self.pause_ns).min(PAUSE_NS_MAX);
        match nanosleep(&pause) {
            NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => Ok(()),
            // A filter of system calls forbids it.
            NanosleepRelativeResult::Err(Errno { .. }) => Err(No::UntilRead),
        }
    }

    /// Counts the wait, for the slot's figures and for a record.
    fn count(&self, core: &Core, writer: &Writer) {
        let ns = clock::monotonic_ns().saturating_sub(self.begun_ns);
        writer.count_wait(ns, self.begun_ticks, clock::ticks(core.clock));
    }
}

/// Whether a wait came to its end in vain, and no ring has released a page since.
fn are_in_vain(core: &Core) -> bool {
    core.waits().are_in_vain(|| released(core))
}

/// Whether another process takes the session's pages now, or has announced that it will, and no wait is
/// in vain in a session that another copy of the library has in this process.
fn ask_for_consumer(core: &Core, now: u64) -> Result<(), No> {
    let at = core.file.geometry().header.consumed_offset;
    if file_lock::is_held_by_other_file(core.file.file(), at) {
        core.is_awaited.store(false, Relaxed);
    } else if !core.is_awaited.load(Relaxed) || released(core) != 0 {
        // None was announced, or it came and is gone.
        core.is_awaited.store(false, Relaxed);
        return Err(No::UntilRead);
    }
    // The lock does not say whose it is. The answer is good for all threads for a while.
    if core
        .waits()
        .was_asked_after(now.saturating_sub(ASK_EVERY_NS))
    {
        return Ok(());
    }
    if other_copies::wait_in_vain(core) || own_files::has_another(core.file.file(), core.inode) {
        return Err(No::UntilRead);
    }
    core.waits().ask_again_from(now);
    Ok(())
}

/// What all rings have released together.
fn released(core: &Core) -> u64 {
    let slots = (0..core.file.slots_used()).filter_map(|index| core.file.slot(index));
    slots.fold(0, |sum: u64, slot| sum.wrapping_add(slot.consumed()))
}
