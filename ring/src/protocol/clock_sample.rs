//! A moment as two clocks tell it: what ties the ticks of a page to the system's time.
//!
//! Records carry ticks only. A page header carries one such pair, and a decoder turns ticks into
//! time by interpolation between the pairs of many pages. So a clock whose rate drifts, or that
//! stops while the machine sleeps, is followed page by page.

/// The tick that a new page counts from, and the system's time at that tick.
///
/// Not a wall clock: `CLOCK_MONOTONIC` never jumps. Wall time is added by the decoder, from the
/// session's own pair.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockSample {
    /// Tick of the session's clock; its unit is stated in the session header.
    pub tick: u64,
    /// `CLOCK_MONOTONIC` in ns at that tick; 0: the two could not be read close enough together.
    pub mono_ns: u64,
}
