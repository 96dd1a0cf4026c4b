//! Why events are not there.

use ringmark_format::counters::Cause;

/// Why events are not in the output, the class of a [`Loss`](super::loss::Loss).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// Never written: the ring was full, or another cause. `None`: the cause is not known.
    Lost(Option<Cause>),
    /// Written, then replaced by newer events, as overwrite mode does.
    Overwritten,
    /// Written, but not in this input: damaged, cut off, or moved out by another reader.
    Missing,
    /// Stored by a collector, and removed with the oldest segments of its session.
    Removed,
    /// Written, and gone on its host before it could be sent.
    Unsent,
    /// Written, and not here yet: its host has not said that a collector has it, or that it is gone.
    Late,
}

impl Why {
    /// The cause as output names it, in text and in JSON.
    #[must_use]
    pub const fn cause(self) -> &'static str {
        match self {
            Self::Lost(Some(cause)) => cause.name(),
            Self::Lost(None) => "unknown",
            Self::Overwritten => "overwritten",
            Self::Missing => "not in this trace file",
            Self::Removed => "removed from the store",
            Self::Unsent => "gone before it was sent",
            Self::Late => "not here yet",
        }
    }
}
