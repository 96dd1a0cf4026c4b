//! A time in which a thread was in a span.

use crate::events::event::Event;
use crate::trace_file::session::Session;

/// A time in which a thread was in a span, by times since the session's start in ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stay {
    pub(crate) tid: u32,
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

impl Stay {
    /// That of the last so many ns before a thread's record.
    pub(crate) fn before(event: &Event<'_>, took_ns: u64) -> Self {
        Self {
            tid: event.tid(),
            from_ns: event.t_ns.saturating_sub(took_ns),
            to_ns: event.t_ns,
        }
    }

    /// Whether the thread was seen in it, running or waiting.
    pub(crate) fn is_seen(&self, session: &Session) -> bool {
        session.was_seen(self.tid, self.from_ns, self.to_ns)
    }
}
