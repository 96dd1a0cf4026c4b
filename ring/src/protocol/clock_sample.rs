//! A moment as two clocks tell it: what ties the ticks of a page to the system's time.

/// The tick that a new page counts from, and its twin.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockSample {
    /// Tick of the session's clock.
    pub tick: u64,
    /// `CLOCK_MONOTONIC` in ns at that tick; 0 = not sampled.
    pub mono_ns: u64,
}
