//! What the system lets this process trace at all, whichever the target is.

use crate::target;

/// The bit of `CAP_SYS_PTRACE`.
const MAY_TRACE: u32 = 19;
/// The bit of `CAP_SYS_ADMIN`.
const MAY_READ_FILTERS: u32 = 21;

/// What this process may do to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permission {
    /// `kernel.yama.ptrace_scope`: 0 all processes of the same user, 1 children, 2 for root, 3 none.
    /// `None`: this kernel has no Yama.
    pub scope: Option<u8>,
    /// Whether it has `CAP_SYS_PTRACE`: then it may trace the processes of all users.
    pub may_trace_others: bool,
    /// Whether it may read the seccomp filters of others: it has `CAP_SYS_ADMIN`, and no filter itself.
    pub may_read_filters: bool,
    /// Whether a seccomp filter limits this process, and those that it starts.
    pub is_filtered: bool,
}

impl Permission {
    /// That of this process.
    #[must_use]
    pub fn own() -> Self {
        let own = std::process::id().cast_signed();
        let status = target::status(own, own).unwrap_or_default();
        let is_filtered = status.seccomp != 0;
        Self {
            scope: target::scope().parse().ok(),
            may_trace_others: status.may(MAY_TRACE),
            may_read_filters: status.may(MAY_READ_FILTERS) && !is_filtered,
            is_filtered,
        }
    }
}
