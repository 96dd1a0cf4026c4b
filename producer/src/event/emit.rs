//! The event path: is the type enabled → reserve → write → commit.

use crate::ring::{Reservation, clock};
use ringmark_format::TypeId;

use super::callsite::{self, Callsite};
use super::fields::{self, Fields};
use crate::description::Now;
use crate::session::Stack;
use crate::{session, thread_block};

/// Emits an event if its type is enabled; only then are the arguments evaluated.
#[inline(always)]
pub(crate) fn emit<C: Callsite, F: Fields>(now: Now, arguments: impl FnOnce() -> F) {
    callsite::declare::<C, F>();
    let id = C::state().enabled();
    if id != 0 {
        record(id, now, None, arguments());
    }
}

/// Writes one record: `before`, then the fields.
///
/// The slow path writes its record itself: one place for both ways would make the straight line
/// store its reservation to the stack.
#[inline(always)]
pub(crate) fn record<F: Fields>(id: u32, now: Now, before: Option<u64>, fields: F) {
    let first = if before.is_some() { 8 } else { 0 };
    let words = fields::payload_words(first, &fields);
    let mut read = 0;
    match reserve_at_once(TypeId(id), words, now, &mut read) {
        Some(reservation) => fill(reservation, before, &fields),
        None => record_slow(id, words, now, read, before, fields),
    }
}

/// As [`record`] for something of this moment, on the straight line only. `false`: nothing was recorded.
#[inline(always)]
pub(crate) fn record_at_once<F: Fields>(id: u32, fields: &F) -> bool {
    let words = fields::payload_words(0, fields);
    let reserved = reserve_at_once(TypeId(id), words, Now::Clock, &mut 0);
    reserved
        .map(|reservation| fill(reservation, None, fields))
        .is_some()
}

/// As [`record`], where the straight line did not reserve: one function for all call sites with
/// arguments of the same types.
#[cold]
#[inline(never)]
fn record_slow<F: Fields>(
    id: u32,
    words: u64,
    now: Now,
    read: u64,
    before: Option<u64>,
    fields: F,
) {
    if let Some(reservation) = session::reserve_slow(TypeId(id), words, now, read) {
        fill(reservation, before, &fields);
    }
}

/// Writes and commits a record that was reserved for these fields.
#[inline(always)]
fn fill<F: Fields>(mut reservation: Reservation<'_>, before: Option<u64>, fields: &F) {
    fields::write(&mut reservation, before, fields);
    reservation.commit();
}

/// Reserves on the straight line. `None`: the slow path goes on, with the tick in `read` if the
/// clock was read.
#[inline(always)]
fn reserve_at_once(
    type_id: TypeId,
    payload_words: u64,
    now: Now,
    read: &mut u64,
) -> Option<Reservation<'static>> {
    let writer = thread_block::writer()?;
    let ticks = match now {
        Now::At(ticks) => ticks,
        Now::Clock => clock::read(writer.clock()),
    };
    writer.reserve_or_now(type_id, payload_words, ticks, read)
}

/// Reserves a record at `ticks` in a page that is too old for the straight line of generated code,
/// which has tried it. `None`: the page is not old, or the thread needs the slow path; then
/// [`reserve_words`] does it. Inlined, so that the reservation is not copied.
#[inline(always)]
#[must_use]
pub fn reserve_words_extended(
    type_id: TypeId,
    payload_words: u64,
    ticks: u64,
) -> Option<Reservation<'static>> {
    thread_block::writer()?.reserve_extended(type_id, payload_words, ticks)
}

/// Reserves a record of `payload_words` words of 8 bytes in this thread's ring. `None`: the event
/// is lost, and counted.
///
/// The writer of the record fills all of its words, then commits it; a reservation that is dropped
/// is cancelled. The type has been described by
/// [`Description::register`](crate::client::Description::register), and is enabled.
///
/// ```
/// use ringmark::Session;
/// use ringmark::client::{Description, EventType, Now, Shape, TypeId, TypeState, reserve_words};
///
/// static STATE: TypeState = TypeState::new();
/// # let event = EventType {
/// #     name: "library.start",
/// #     target: "library",
/// #     category: "",
/// #     level: ringmark::Level::Info,
/// #     shape: Shape::Instant,
/// #     file: "",
/// #     line: 0,
/// #     state: &STATE,
/// # };
/// let session = Session::builder().start().expect("a session");
/// Description { event, fields: &[], fixed_bytes: 0 }.register();
/// let id = TypeId(STATE.enabled());
/// if let Some(record) = reserve_words(id, 0, Now::Clock) {
///     record.commit();
/// }
/// assert_eq!(session.records(), 1);
/// ```
#[inline(always)]
#[must_use]
pub fn reserve_words(
    type_id: TypeId,
    payload_words: u64,
    now: Now,
) -> Option<Reservation<'static>> {
    let mut read = 0;
    let reserved = reserve_at_once(type_id, payload_words, now, &mut read);
    reserved.or_else(|| session::reserve_slow(type_id, payload_words, now, read))
}

/// As [`reserve_words`], for code that may have left the program's stack for one of its own.
#[inline(always)]
#[must_use]
pub fn reserve_words_from(
    stack: Stack,
    type_id: TypeId,
    payload_words: u64,
    now: Now,
) -> Option<Reservation<'static>> {
    if let Some(writer) = thread_block::writer() {
        let ticks = match now {
            Now::At(ticks) => ticks,
            Now::Clock => clock::read(writer.clock()),
        };
        if let Some(reservation) = writer.reserve(type_id, payload_words, ticks) {
            return Some(reservation);
        }
    }
    session::reserve_slow_from(stack, type_id, payload_words, now, 0)
}

/// Records of other languages, and of code that has left its program's stack.
pub mod foreign {
    pub use super::{reserve_words_extended, reserve_words_from};
    pub use crate::session::{Stack, does_own_work, mapping_at};
}
