//! For libraries that bring record types of their own, such as a function tracer: they describe
//! them in the schema, reserve records by [`crate::event::reserve_words`], and answer requests.

pub use ringmark_ring::clock::{cpu_ns, monotonic_ns};
pub use ringmark_ring::reservation::RawReservation;
pub use ringmark_ring::writer::PAYLOAD_WORDS_MAX;
pub use ringmark_ring::writer::offsets as writer_offsets;

use crate::event::description::Description;
use crate::session;
pub use crate::session::{Answer, RingCounts};

/// Registers an event type that is no call site of a Rust macro: it is in the schema from now on,
/// also in that of forked children, and on or off as the filter says. Once for each type.
///
/// Takes the lock of the control path: not for signal handlers.
pub fn register(description: &Description<'_>) {
    session::register_dynamic(description);
}

/// From now on `answer` gets the requests whose first word is `word`.
pub fn answer_requests(word: &'static str, answer: Answer) {
    session::answer_requests(word, answer);
}

/// Says that the library works on a request: the asker waits on, and does not take the process for a
/// stopped one. To be called once for each piece of work; costs a few nanoseconds.
pub fn working() {
    session::working();
}

/// From now on `idle` is called at least ten times a second, between requests, on the helper thread.
/// Of several calls the last one counts.
pub fn on_idle(idle: fn()) {
    session::on_idle(idle);
}

/// Appends entries to the schema of the session, and of the sessions of forked children; each is
/// a `ringmark_format::schema::EntryHeader` with what follows it. Call it before the first record
/// that needs them. `false`: there is no room, the records will be shown raw.
///
/// Takes the lock of the control path: not for signal handlers.
pub fn append_schema(entries: &[u8]) -> bool {
    session::append_written(entries)
}

/// Whether this is the first call with this number, such as the address of a list of types.
///
/// Takes the lock of the control path: not for signal handlers.
#[must_use]
pub fn is_first(number: usize) -> bool {
    session::is_first(number)
}

/// Keeps the object mapped for ever in which this address lies, also when it is closed.
pub fn keep_mapped(address: *const ()) {
    session::keep_mapped(address.cast());
}

/// Ticks of the session's clock in `ns` nanoseconds; `None`: there is no session.
#[must_use]
pub fn ticks_of_ns(ns: u64) -> Option<u64> {
    session::ticks_of_ns(ns)
}

/// Whether the session's clock is the processor's time stamp counter.
#[must_use]
pub fn is_counter() -> bool {
    session::is_counter()
}

/// How much was written into each ring of the session so far.
#[must_use]
pub fn ring_counts() -> Vec<RingCounts> {
    session::ring_counts()
}

/// Calls `visit` with the type of each record in some of the pages of ring `ring` that were turned
/// between two counts of it, and are still there; `pages` at most, spread over the time between.
pub fn sample_types(
    ring: u32,
    turned: core::ops::Range<u64>,
    pages: u32,
    visit: &mut dyn FnMut(u32),
) {
    session::sample_types(ring, turned, pages, visit);
}

/// Runs `work`, which records as ever, but into memory that nobody reads: to measure what recording
/// costs. For the thread that answers requests. `None`: there is no session, or no memory.
pub fn without_trace<R>(work: impl FnOnce() -> R) -> Option<R> {
    session::without_trace(work)
}
