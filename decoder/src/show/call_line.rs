//! A call on its way to a line: its beginning, its times.

use crate::blocks::page::Page;
use crate::trace_file::functions::Function;
use crate::trace_file::session::Session;
use crate::trace_file::thread_times::ThreadTimes;

/// The beginning of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Begun<'d> {
    pub session: &'d Session,
    pub function: &'d Function,
    /// The page of the record that was met first.
    pub page: &'d Page,
    /// Calls around it.
    pub depth: u32,
    /// ns since the session's start; `None`: not recorded.
    pub start_ns: Option<u64>,
}

/// The times of a call whose beginning and end are known, in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub duration_ns: u64,
    /// `None`: what was in it before the recorded window is not known.
    pub self_ns: Option<u64>,
    /// What its thread did; `None`: it is not known.
    pub(super) did: Option<ThreadTimes>,
}

impl Begun<'_> {
    /// The thread that made the call.
    pub(crate) const fn tid(&self) -> u32 {
        self.page.header.tid
    }
}
