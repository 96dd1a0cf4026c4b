//! What the kernel tells of other processes to those who may ask (`perf_event_open`).

/// How a user gets to see which calls another process's threads wait in.
pub(crate) const WAITS_ALLOWED_BY: &str = "for a process of the same user 'sudo sysctl kernel.yama.ptrace_scope=0' allows it, or record the program from its start ('-- CMD'); for others root";

/// How a user gets to ask.
pub(crate) const ALLOWED_BY: &str = "'sudo setcap cap_perfmon+ep' on the ringmark binary allows it, or 'sudo sysctl kernel.perf_event_paranoid=2', or '--cap-add PERFMON' for a container";
