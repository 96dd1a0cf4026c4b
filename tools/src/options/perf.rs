//! What the kernel tells of other processes to those who may ask (`perf_event_open`).

/// How a user gets to ask.
pub(crate) const ALLOWED_BY: &str = "'sudo setcap cap_perfmon+ep' on the ringmark binary allows it, or 'sudo sysctl kernel.perf_event_paranoid=2', or '--cap-add PERFMON' for a container";
