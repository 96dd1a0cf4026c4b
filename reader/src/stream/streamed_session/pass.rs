//! What one pass over a streamed session did, or why it failed.

use std::io;

use crate::error::ReaderError;

/// Why a pass over a session failed.
pub(in crate::stream) enum PassError {
    /// The connection failed: all sessions begin again on the next one.
    Connection(io::Error),
    /// The session's ring file failed: the other sessions go on.
    Session(ReaderError),
}

impl From<io::Error> for PassError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

impl From<ReaderError> for PassError {
    fn from(error: ReaderError) -> Self {
        Self::Session(error)
    }
}

/// What a pass did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::stream) struct Passed {
    /// Pages sent.
    pub(in crate::stream) pages: u64,
    /// All that waited was sent; otherwise the collector takes less than the programs write.
    pub(in crate::stream) done: bool,
}

impl Passed {
    /// What this pass and then `next` did.
    pub(super) fn and(self, next: Self) -> Self {
        Self {
            pages: self.pages + next.pages,
            ..next
        }
    }
}

/// The result of a pass that had nothing to send.
pub(super) const NOTHING: Passed = Passed {
    pages: 0,
    done: true,
};
