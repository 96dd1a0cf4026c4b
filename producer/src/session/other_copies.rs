//! The sessions that other copies of the library have in this process.
//!
//! A process may hold several copies: its own, one in a shared object, the function tracer's. Each
//! keeps a session file of its own, and the file is all that copies know of each other. Readers
//! merge the sessions of a process by raw tick, so all of them need the same clock; a later one also
//! takes over what ties the first one's ticks to time.

use std::os::fd::OwnedFd;

use ringmark_format::clock::Rate;
use ringmark_format::session::{Clock, RING_FILE_MAGIC, SessionHeader, SessionState};
use ringmark_format::{ENDIAN_MARK, VERSION_MAJOR};
use ringmark_ring::identity::{self, Identity};
use ringmark_ring::{ClockSample, clock, own_maps};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::pread;
use zerocopy::FromBytes;

use super::core::Core;
use super::wait_marks;
use crate::setup::StartError;

/// What ties the ticks of a session to time, as its header states it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeBase {
    pub(super) zero: ClockSample,
    /// `CLOCK_REALTIME` at `zero`, in ns since 1970.
    pub(super) real_zero_ns: u64,
    pub(super) rate: Rate,
}

impl TimeBase {
    /// That of the first session of a process: from `zero`, at the rate that its counter states or that was measured
    /// since.
    pub(super) fn measured(clock: Clock, zero: ClockSample) -> Self {
        let rate = match clock {
            Clock::Tsc => clock::stated_rate()
                .or_else(|| clock::rate_between(zero, clock::sample(clock)))
                .unwrap_or(UNKNOWN_RATE),
            _ => Rate::IDENTITY,
        };
        let age = clock::ticks(clock).saturating_sub(zero.tick);
        Self {
            zero,
            real_zero_ns: clock::realtime_ns().saturating_sub(rate.nanoseconds(age)),
            rate,
        }
    }

    fn of(header: &SessionHeader) -> Self {
        Self {
            zero: ClockSample {
                tick: header.tick_zero,
                mono_ns: header.mono_zero_ns,
            },
            real_zero_ns: header.real_zero_ns,
            rate: Rate {
                mult: header.tick_mult,
                shift: header.tick_shift,
            },
        }
    }
}

/// Consumed words that are read by one call.
const CONSUMED_AT_ONCE: usize = 64;
/// Nominal rate where none could be measured yet: one tick a nanosecond, until samples correct it.
const UNKNOWN_RATE: Rate = Rate::IDENTITY;

/// The time base of the first session in this process; `None`: there is no session yet.
///
/// # Errors
/// It has another clock than `wanted`, or one of the two has none: their records could not be put
/// in one order.
pub(super) fn time_base(own: &Identity, wanted: Clock) -> Result<Option<TimeBase>, StartError> {
    let Some(first) = first(own) else {
        return Ok(None);
    };
    match Clock::from_u32(first.clock) {
        Some(running) if running == wanted && running != Clock::None => {
            Ok(Some(TimeBase::of(&first)))
        }
        running => Err(StartError::OtherClock {
            running: running.unwrap_or(Clock::None),
            wanted,
        }),
    }
}

/// The clock of the sessions in this process; `None`: there is no session.
pub(super) fn clock_of_process() -> Option<Clock> {
    first(&identity::own()).and_then(|header| Clock::from_u32(header.clock))
}

/// The header of the session that started first.
fn first(own: &Identity) -> Option<SessionHeader> {
    let mut first: Option<SessionHeader> = None;
    each_header(|_, _, header| {
        let is_of_this_process = header.pid == own.pid
            && header.start_time == own.start_time
            && header.pid_namespace == own.pid_namespace;
        let started = |header: &SessionHeader| (header.mono_zero_ns, header.session);
        if is_of_this_process && first.is_none_or(|first| started(header) < started(&first)) {
            first = Some(*header);
        }
    });
    first
}

/// Whether a wait for room came to its end in vain in another session of the process of `core`, and
/// no ring there has released a page since. Allocates nothing.
pub(super) fn wait_in_vain(core: &Core) -> bool {
    let own = &core.file.geometry().header;
    let mut found = false;
    each_header(|memory, address, header| {
        let is_other = header.process() == own.process() && header.session != own.session;
        found = found || is_other && waits_in_vain(memory, address, header) == Some(true);
    });
    found
}

/// The same of one session; `None`: it cannot be read.
fn waits_in_vain(memory: &OwnedFd, address: u64, header: &SessionHeader) -> Option<bool> {
    let mut bytes = [0; SessionState::BYTES];
    read_at(
        memory,
        &mut bytes,
        address.checked_add(header.state_offset)?,
    )?;
    let state = SessionState::read_from_bytes(&bytes).ok()?;
    if state.wait_in_vain == 0 {
        return Some(false);
    }
    let consumed = address.checked_add(header.consumed_offset)?;
    let used = state.slots_used.min(u64::from(header.slots));
    let mut released = 0_u64;
    for from in (0..used).step_by(CONSUMED_AT_ONCE) {
        let mut words = [[0; 8]; CONSUMED_AT_ONCE];
        let words = &mut words[..(used - from).min(CONSUMED_AT_ONCE as u64) as usize];
        read_at(
            memory,
            words.as_flattened_mut(),
            consumed.checked_add(8 * from)?,
        )?;
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        released = words.fold(released, u64::wrapping_add);
    }
    Some(state.wait_in_vain == wait_marks::mark_of(released))
}

/// Calls `each` with the memory of this process and each header of a ring file in it.
///
/// Read like a file, at addresses that the maps state: a file that was cut, and a map that is gone, are
/// errors there. Not by their names: a memfd has none, and files may have been removed.
fn each_header(mut each: impl FnMut(&OwnedFd, u64, &SessionHeader)) {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    // Most processes have no other copy.
    let mut opened = None;
    own_maps::each_produced(|address| {
        let open = || open(c"/proc/self/mem", flags, Mode::empty()).ok();
        let Some(memory) = opened.get_or_insert_with(open) else {
            return;
        };
        let mut bytes = [0; SessionHeader::BYTES];
        let header = read_at(memory, &mut bytes, address)
            .and_then(|()| SessionHeader::read_from_bytes(&bytes).ok())
            .filter(is_known);
        if let Some(header) = header {
            each(memory, address, &header);
        }
    });
}

fn is_known(header: &SessionHeader) -> bool {
    header.magic == RING_FILE_MAGIC
        && header.endian == ENDIAN_MARK
        && header.version_major == VERSION_MAJOR
}

/// Reads what lies at an address of this process; `None`: not all of it can be read.
fn read_at(memory: &OwnedFd, into: &mut [u8], address: u64) -> Option<()> {
    let bytes = into.len();
    (pread(memory, into, address) == Ok(bytes)).then_some(())
}
