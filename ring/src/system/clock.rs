//! The clocks that ticks come from.
//!
//! | clock | tick | read by | steps |
//! | --- | --- | --- | --- |
//! | TSC clock | the processor's counter, stated in the session header | one instruction | below 1 ns; aarch64: 1 to 40 ns |
//! | monotonic | ns of `CLOCK_MONOTONIC` | the kernel's code page | 1 ns |
//! | coarse | ns of `CLOCK_MONOTONIC_COARSE` | the same, without the counter | 1 to 10 ms |
//! | none | always 0 | | |
//!
//! An event reads one clock once. The TSC clock is used where the kernel itself trusts it
//! ([`tsc_is_invariant`]); elsewhere it may run at another rate on each processor. Ticks become
//! time by pairs of a tick and `CLOCK_MONOTONIC` ([`sample`]), never by a rate that was assumed.
//! Until there are two pairs the rate is measured, or that which the counter states ([`stated_rate`]).
//!
//! All functions may be called in signal handlers and in code that records the program's own calls:
//! none allocates, locks, or calls a function that a program could define.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use ringmark_format::clock::Rate;
use ringmark_format::session::Clock;
use rustix::time::{ClockId, clock_gettime};

use crate::arch;
use crate::protocol::clock_sample::ClockSample;
use crate::system::raw;

/// The processor's counter: x86-64's time stamp counter, aarch64's virtual counter. Not ordered with the instructions
/// around it: an event's tick may be some tens of cycles off, which no fence of ours would make worth its price.
#[inline(always)]
#[must_use]
pub fn tsc() -> u64 {
    match arch::counter() {
        Some(ticks) => ticks,
        None => nanoseconds(ClockId::Monotonic),
    }
}

/// Reads the clock with this number, as the session header states it: the counter on the straight
/// line, others out of line. 0 for no clock, and for a number that is none.
#[inline(always)]
#[must_use]
pub fn read(number: u32) -> u64 {
    if number == Clock::Tsc as u32 {
        tsc()
    } else if number == Clock::None as u32 {
        0
    } else {
        read_other(number)
    }
}

/// The clocks that [`read`] reads out of line.
#[cold]
#[inline(never)]
#[must_use]
pub fn read_other(number: u32) -> u64 {
    const COARSE: u32 = Clock::Coarse as u32;
    const MONOTONIC: u32 = Clock::Monotonic as u32;
    match number {
        COARSE => nanoseconds(ClockId::MonotonicCoarse),
        MONOTONIC => nanoseconds(ClockId::Monotonic),
        _ => 0,
    }
}

/// Reads a clock: its ticks at this moment.
#[must_use]
pub fn ticks(clock: Clock) -> u64 {
    match clock {
        Clock::Tsc => tsc(),
        Clock::Monotonic => monotonic_ns(),
        Clock::Coarse => nanoseconds(ClockId::MonotonicCoarse),
        Clock::None => 0,
    }
}

/// `CLOCK_MONOTONIC` in ns: it never jumps, and stands still while the machine sleeps. Another time
/// namespace adds an offset.
#[must_use]
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// `CLOCK_REALTIME` in ns since 1970: for times that a person reads. It may be set back.
#[must_use]
pub fn realtime_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

/// How wrong `CLOCK_REALTIME` can be, in ns, as the kernel says it. `None`: nothing keeps it right.
#[must_use]
pub fn realtime_error_ns() -> Option<u64> {
    // SAFETY: a `timex` of zeros is valid; its `modes` asks for nothing to be set.
    let mut about: libc::timex = unsafe { core::mem::zeroed() };
    // SAFETY: `about` is a whole `timex` of this function, which the call fills in.
    let state = unsafe { libc::adjtimex(&raw mut about) };
    let is_kept = state >= 0 && state != libc::TIME_ERROR;
    let micros = u64::try_from(about.maxerror).ok().filter(|_| is_kept)?;
    Some(micros.saturating_mul(1000))
}

/// CPU time used so far, in ns: what a budget is charged with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    /// CPU time of all threads of the process, ended ones included.
    pub process_ns: u64,
    /// CPU time of the calling thread.
    pub thread_ns: u64,
}

impl CpuTime {
    /// CPU time that the process and the calling thread have used.
    #[must_use]
    pub fn now() -> Self {
        Self {
            process_ns: nanoseconds(ClockId::ProcessCPUTime),
            thread_ns: nanoseconds(ClockId::ThreadCPUTime),
        }
    }
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    if KERNEL_CODE.load(Relaxed) != THERE {
        return nanoseconds_cold(clock);
    }
    let time = clock_gettime(clock);
    in_nanoseconds(time.tv_sec as u64, time.tv_nsec as u64)
}

#[inline]
fn in_nanoseconds(seconds: u64, nanoseconds: u64) -> u64 {
    seconds
        .wrapping_mul(1_000_000_000)
        .wrapping_add(nanoseconds)
}

/// Whether the kernel's page of code that reads clocks is there: [`UNKNOWN`], [`THERE`] or
/// [`MISSING`]. Under valgrind it is not, and looking into it all the same would end the program.
static KERNEL_CODE: AtomicU8 = AtomicU8::new(UNKNOWN);
const UNKNOWN: u8 = 0;
const THERE: u8 = 1;
const MISSING: u8 = 2;

/// By a system call, which always knows a way.
#[cold]
fn nanoseconds_cold(clock: ClockId) -> u64 {
    if KERNEL_CODE.load(Relaxed) == UNKNOWN {
        look_for_kernel_code();
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let arguments = [clock as u64, &raw mut time as u64, 0, 0];
    // SAFETY: the call writes one `timespec` to the place that it is given. It cannot fail: every
    // kernel has these clocks.
    let _ = unsafe { raw::syscall(libc::SYS_clock_gettime, arguments) };
    in_nanoseconds(time.tv_sec as u64, time.tv_nsec as u64)
}

/// Looks once for the kernel's code. Both the look and its first use may call functions that the
/// program defines, whose calls may ask for the time: then that goes by system calls.
fn look_for_kernel_code() {
    KERNEL_CODE.store(MISSING, Relaxed);
    // SAFETY: reads what the kernel told the process at its start.
    if unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } != 0 {
        let _ = clock_gettime(ClockId::Monotonic);
        KERNEL_CODE.store(THERE, Relaxed);
    }
}

/// A tick and `CLOCK_MONOTONIC` at the same moment, read as close together as three tries allow.
/// `mono_ns` is 0 if an interruption came between each time: no pair is better than a wrong one.
#[must_use]
pub fn sample(clock: Clock) -> ClockSample {
    match clock {
        Clock::Tsc => sample_tsc(),
        Clock::None => ClockSample {
            tick: 0,
            mono_ns: 0,
        },
        Clock::Monotonic | Clock::Coarse => {
            let now = ticks(clock);
            ClockSample {
                tick: now,
                mono_ns: now,
            }
        }
    }
}

fn sample_tsc() -> ClockSample {
    let mut before = 0;
    for _ in 0..3 {
        before = tsc();
        let mono_ns = monotonic_ns();
        let width = tsc().wrapping_sub(before);
        // A wider bracket: the thread was interrupted in between.
        if width <= arch::bracket() {
            return ClockSample {
                tick: before + width / 2,
                mono_ns,
            };
        }
    }
    ClockSample {
        tick: before,
        mono_ns: 0,
    }
}

/// What a page that is opened for an event at `now` counts from: `now` itself, so that the page's
/// first record has tick 0.
///
/// If `now` is older or newer than a tick that was just read can be, a caller has brought it from
/// elsewhere; then the present moment. `rate` turns the age of `now` into ns, for its pair.
#[must_use]
pub fn page_base(clock: Clock, rate: Rate, now: u64) -> ClockSample {
    let sample = sample(clock);
    let age = sample.tick.wrapping_sub(now);
    // An older one was not read for this event.
    if age > arch::base_age() {
        return sample;
    }
    match sample.mono_ns {
        0 => ClockSample {
            tick: now,
            mono_ns: 0,
        },
        mono_ns => ClockSample {
            tick: now,
            mono_ns: mono_ns.saturating_sub(rate.nanoseconds(age)),
        },
    }
}

/// The rate that the counter states itself; `None`: it has to be measured.
#[must_use]
pub fn stated_rate() -> Option<Rate> {
    let hertz = arch::hertz()?;
    Some(Rate {
        mult: (1_000_000_000_u64 << 32) / hertz,
        shift: 32,
    })
}

/// Rate between two samples, in ns per tick as a fraction; `None` if they are of the same tick, in
/// the wrong order, or one of them is no pair. The longer the time between, the better the rate.
#[must_use]
pub fn rate_between(from: ClockSample, to: ClockSample) -> Option<Rate> {
    let ticks = to.tick.checked_sub(from.tick).filter(|t| *t > 0)?;
    let ns = to.mono_ns.checked_sub(from.mono_ns).filter(|n| *n > 0)?;
    let good = from.mono_ns != 0 && to.mono_ns != 0;
    let mult = u64::try_from((u128::from(ns) << 32) / u128::from(ticks)).ok()?;
    good.then_some(Rate { mult, shift: 32 })
}

/// The clock source that the kernel has chosen, such as `tsc`; empty where it states none.
#[must_use]
pub fn source() -> String {
    let chosen = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    crate::system::small_file::text(chosen)
}

/// Whether the counter runs at one rate on all processors at all times, and the kernel trusts it.
///
/// The kernel's own choice of clock source answers both: it gives up a counter that it saw stray.
/// Where a hypervisor's clock or no choice is stated, the processor's own word decides.
#[must_use]
pub fn tsc_is_invariant() -> bool {
    let source = source();
    source == arch::SOURCE || arch::is_invariant(&source)
}
