//! What belongs to a running session.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ringmark_format::clock::Rate;
use ringmark_format::counters::Cause;
use ringmark_format::session::{Clock, SessionState};
use ringmark_ring::published_static::Published;
use ringmark_ring::{ClockSample, RingFile, clock};

use super::super::wiped::Wiped;
use super::span_gate;
use super::wait_marks::WaitMarks;
use crate::setup::Options;

/// A running session. Lives until the process ends.
pub(crate) struct Core {
    pub(crate) file: RingFile,
    pub(crate) wiped: Wiped,
    pub(crate) options: Options,
    pub(crate) clock: Clock,
    pub(crate) rate: Rate,
    /// Bytes of the file that rings may take.
    pub(crate) cap: u64,
    /// Where the half of them ends in which rings have the wanted size.
    pub(crate) half: u64,
    /// Device and number of the file.
    pub(crate) inode: (u64, u64),
    /// In a forked child: the session of the process that forked it, so that a chain leads to all of them. A leak checker
    /// reports what nothing leads to.
    #[expect(dead_code, reason = "for leak checkers")]
    pub(super) forked_by: Option<&'static Self>,
    /// A consumer announced itself before the session began, and was not seen yet.
    pub(super) is_awaited: AtomicBool,
    /// When a thread that waits last asked whether it may: see [`WaitMarks`].
    pub(super) waits_asked_ns: AtomicU64,
}

/// The session of this process.
static CURRENT: Published<Core> = Published::new();
/// In a forked child: the session of the process that forked it.
static PARENT: Published<Core> = Published::new();

impl Core {
    /// The session of this process, if one runs.
    pub(crate) fn current() -> Option<&'static Self> {
        CURRENT.current()
    }

    /// Makes it the session of this process.
    pub(crate) fn publish(&'static self) {
        CURRENT.publish(self);
    }

    /// In a forked child: the session of the process that forked it.
    pub(crate) fn parent() -> Option<&'static Self> {
        PARENT.current()
    }

    /// Makes the session that a forked child inherited its parent's; the child has none of its own yet.
    pub(crate) fn inherit(&'static self) {
        PARENT.publish(self);
        CURRENT.forget();
    }

    /// One word of the session's state.
    pub(crate) fn state_word(&self, offset: usize) -> &AtomicU64 {
        self.file.state_word(offset)
    }

    /// Counts an event that was lost before it had a ring.
    pub(crate) fn count_lost(&self, cause: Cause) {
        let offset = offset_of!(SessionState, lost) + 8 * cause as usize;
        self.state_word(offset).fetch_add(1, Ordering::Relaxed);
    }

    /// What its threads know of waits for room together.
    pub(super) fn waits(&self) -> WaitMarks<'_> {
        WaitMarks {
            in_vain: self.state_word(offset_of!(SessionState, wait_in_vain)),
            asked_ns: &self.waits_asked_ns,
        }
    }

    /// What a page opened for an event at `now` counts from.
    pub(crate) fn page_base(&self, now: u64) -> ClockSample {
        clock::page_base(self.clock, self.rate, now)
    }
}

/// The session's clock; in a forked child its parent's until its own session runs, which has the
/// same clock. 0 without a session.
#[inline(always)]
pub(crate) fn now() -> u64 {
    match crate::thread_block::writer() {
        Some(writer) => now_of(writer.clock()),
        None => now_cold(),
    }
}

/// As [`clock::read`], but that a thread without a clock has the session's.
#[inline(always)]
fn now_of(clock: u32) -> u64 {
    if clock == Clock::Tsc as u32 {
        clock::tsc()
    } else if clock == Clock::None as u32 {
        0
    } else {
        now_other(clock)
    }
}

/// The session's clock, if it is the counter, and this thread has a writer.
#[inline(always)]
pub(crate) fn now_at_once() -> Option<u64> {
    let clock = crate::thread_block::writer()?.clock();
    (clock == Clock::Tsc as u32).then(clock::tsc)
}

/// Where the counter is not what the thread's writer reads; 0: the filter is one by spans, or was.
#[cold]
#[inline(never)]
fn now_other(clock: u32) -> u64 {
    match Core::current().filter(|_| clock == 0) {
        Some(core) => span_gate::now(core.clock),
        None => clock::read_other(clock),
    }
}

#[cold]
fn now_cold() -> u64 {
    let core = Core::current().or_else(Core::parent);
    core.map_or(0, |core| clock::ticks(core.clock))
}

/// Counts an event that is lost before it comes to a ring.
#[cfg(feature = "tracing")]
#[cold]
pub(crate) fn count_lost(cause: Cause) {
    if let Some(core) = Core::current().filter(|core| core.wiped.is_ours()) {
        core.count_lost(cause);
    }
}
