//! How long a start holds: unless it is renewed in time, its sites are closed again.

use ringmark_format::tracer_text::LeaseState;

use super::profile_report;
use crate::tracers::{TracerError, Tracers};

/// From now on the tracer stays on for so long; `None`: until somebody stops it.
pub(super) fn begin(tracers: &mut Tracers, tracer: Option<&str>, lease_ms: Option<u64>) {
    tracers.hold(tracer, lease_ms.map(|ms| now_ms().saturating_add(ms)));
}

/// Renews a lease that has not ended. Says what became of the tracer: one that somebody started
/// for good meanwhile is left so.
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

/// Stops what was not renewed.
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
