//! The sessions that other copies of the library have in this process.
//!
//! A process may hold several copies: its own, one in a shared object, the function tracer's. Each
//! keeps a session file of its own, and the file is all that copies know of each other. Readers
//! merge the sessions of a process by raw tick, so all of them need the same clock; a later one also
//! takes over what ties the first one's ticks to time.

use std::fs::File;
use std::os::unix::fs::FileExt;

use ringmark_format::clock::Rate;
use ringmark_format::session::{Clock, RING_FILE_MAGIC, SessionHeader};
use ringmark_format::{ENDIAN_MARK, VERSION_MAJOR};
use ringmark_ring::identity::{self, Identity};
use ringmark_ring::{ClockSample, clock, own_maps};
use zerocopy::FromBytes;

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
    /// That of the first session of a process: from `zero`, at the rate measured since.
    pub(super) fn measured(clock: Clock, zero: ClockSample) -> Self {
        let rate = match clock {
            Clock::Tsc => clock::rate_between(zero, clock::sample(clock)).unwrap_or(UNKNOWN_RATE),
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
    let mapped = own_maps::produced();
    if mapped.is_empty() {
        return None;
    }
    // Not by their names: a memfd has none, and files may have been removed.
    let memory = File::open("/proc/self/mem").ok()?;
    let headers = mapped
        .into_iter()
        .filter_map(|address| header_at(&memory, address));
    let of_this_process = headers.filter(|header| {
        header.pid == own.pid
            && header.start_time == own.start_time
            && header.pid_namespace == own.pid_namespace
    });
    of_this_process.min_by_key(|header| (header.mono_zero_ns, header.session))
}

/// The header that lies at an address of this process; `None`: there is none, or it cannot be read.
fn header_at(memory: &File, address: u64) -> Option<SessionHeader> {
    let mut bytes = [0; SessionHeader::BYTES];
    memory.read_exact_at(&mut bytes, address).ok()?;
    let header = SessionHeader::read_from_bytes(&bytes).ok()?;
    let is_known = header.magic == RING_FILE_MAGIC
        && header.endian == ENDIAN_MARK
        && header.version_major == VERSION_MAJOR;
    is_known.then_some(header)
}
