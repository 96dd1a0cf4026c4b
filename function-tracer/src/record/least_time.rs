//! The least duration of any call that is recorded only if it is long, for the stubs: a shorter call has no record, whichever
//! tracer wants it. What longer ones have says their plan.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

/// In ticks.
pub(super) static LEAST_TICKS: AtomicU64 = AtomicU64::new(0);

/// Sets it; `None`: no tracer wants long calls only. Called by the control path only.
pub(crate) fn set(ticks: Option<u64>) {
    LEAST_TICKS.store(ticks.unwrap_or(0), Relaxed);
}
