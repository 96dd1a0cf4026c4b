//! Whether our clocks are those of a session's process.

use ringmark_format::clock::Rate;
use ringmark_format::session::{Clock, SessionHeader};
use ringmark_ring::{RingFile, clock, identity};

/// As [`Session::shares_clocks`](super::Session::shares_clocks). The time namespace of a process that is gone, ends just now
/// or is out of sight cannot be read. Then the session's own samples decide, as precisely as its nominal rate allows.
pub(super) fn shares_clocks(ring: &RingFile, is_seen: bool) -> bool {
    const TOLERANCE_NS: u64 = 1_000_000_000;
    let (header, clock) = (&ring.geometry().header, ring.geometry().clock);
    let seen = is_seen.then(|| identity::shares_clocks(&header.pid.to_string()));
    if let Some(shared) = seen.flatten() {
        return shared;
    }
    if header.boot_id != identity::boot_id() {
        return false;
    }
    let now = clock::sample(clock);
    let expected = nominal_ns(header, now.tick);
    let age = expected.saturating_sub(header.mono_zero_ns);
    clock != Clock::Tsc || now.mono_ns.abs_diff(expected) < TOLERANCE_NS + age / 16
}

/// `CLOCK_MONOTONIC` in ns at a tick, by the nominal rate in the header.
pub(super) fn nominal_ns(header: &SessionHeader, tick: u64) -> u64 {
    let rate = Rate {
        mult: header.tick_mult,
        shift: header.tick_shift,
    };
    let ticks = tick.saturating_sub(header.tick_zero);
    header.mono_zero_ns.saturating_add(rate.nanoseconds(ticks))
}
