//! For libraries that bring record types of their own, such as a function tracer: they describe
//! them in the schema, reserve records by [`reserve_words`], and answer requests.

#[doc(inline)]
pub use ringmark_format::TypeId;
#[doc(inline)]
pub use ringmark_format::schema::Shape;

pub use crate::event::description::{Description, EventType, Field, Now, Place, TypeState};
pub use crate::event::emit::reserve_words;
pub use crate::ring::clock::{CpuTime, cpu_time, monotonic_ns};
use crate::session;
pub use crate::session::RingCounts;

impl Description<'_> {
    /// Registers an event type that is no call site of a Rust macro: it is in the schema from now
    /// on, also in that of forked children, and enabled or not as the filter says. Once for each
    /// type.
    ///
    /// Takes the lock of the control path: not for signal handlers.
    pub fn register(&self) {
        session::register_dynamic(self);
    }
}

/// Appends entries to the schema of the session, and of the sessions of forked children; each is
/// a `ringmark_format::schema::EntryHeader` with what follows it. Call it before the first record
/// that needs them. `false`: there is no room, the records will be shown raw.
///
/// Takes the lock of the control path: not for signal handlers.
pub fn append_schema(entries: &[u8]) -> bool {
    session::append_written(entries)
}

/// From now on `answer` gets the requests whose first word is `word`: the whole text. It returns
/// the answer, or what is wrong. `idle` is called at least ten times a second between requests; of
/// several calls the last one counts. Both run on the session's helper thread; there is none with
/// [`Builder::control`](crate::Builder::control) off.
pub fn answer_requests(word: &'static str, answer: fn(&str) -> Result<String, String>, idle: fn()) {
    session::answer_requests(word, answer, idle);
}

/// Keeps the object mapped for ever in which this address lies, also when it is closed. `true`:
/// this is the first call with this address.
///
/// Takes the lock of the control path: not for signal handlers.
pub fn keep_mapped(address: *const ()) -> bool {
    let is_first = session::is_first(address.addr());
    if is_first {
        session::keep_mapped(address.cast());
    }
    is_first
}
