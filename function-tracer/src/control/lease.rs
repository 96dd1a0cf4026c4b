//! Leases: a start with a duration ends, and its patch sites are disabled, unless it is renewed in
//! time.

use ringmark_format::tracer_text::LeaseState;

use super::profile_report;
use crate::tracers::{TracerError, Tracers};

/// Sets for how long from now the tracer stays on; `None`: until it is stopped.
pub(super) fn begin(tracers: &mut Tracers, tracer: Option<&str>, lease_ms: Option<u64>) {
    tracers.hold(tracer, lease_ms.map(|ms| now_ms().saturating_add(ms)));
}

/// Renews a lease that has not ended, and returns the tracer's state. A tracer that was started
/// without a lease since then stays so.
pub(super) fn renew(
    tracers: &mut Tracers,
    tracer: Option<&str>,
    lease_ms: Option<u64>,
) -> Result<LeaseState, TracerError> {
    let found = tracers.find(tracer)?;
    match (found.is_on(), found.is_held()) {
        (false, _) => Ok(LeaseState::Off),
        (true, false) => Ok(LeaseState::Detached),
        (true, true) => {
            begin(tracers, tracer, lease_ms);
            Ok(LeaseState::On)
        }
    }
}

/// Stops tracers whose lease was not renewed.
pub(super) fn expire(tracers: &mut Tracers) {
    let now = now_ms();
    while let Some(name) = tracers.first_expired(now) {
        tracers.hold(Some(&name), None);
        if tracers.stop(Some(&name)).is_err() {
            return;
        }
        if let Ok(tracer) = tracers.find(Some(&name)) {
            profile_report::write(tracers, tracer);
        }
    }
}

fn now_ms() -> u64 {
    ringmark::client::monotonic_ns() / 1_000_000
}
