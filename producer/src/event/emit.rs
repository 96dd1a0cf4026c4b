//! The event path: is it on → reserve → write → commit.

use ringmark_format::TypeId;
use ringmark_ring::{Reservation, clock};

use super::description::{Description, EventType, Field, Now, TypeState, semantic};
use super::fields::{self, Fields};
use crate::sites::{self, DescribeSite};
use crate::{session, thread_block};

/// One place in the program that emits; the macros make a type for each.
pub trait Callsite {
    /// Names of the arguments.
    const FIELDS: &'static [&'static str];
    /// Bytes in front of the arguments: 8 for a span (its duration), else 0.
    const FIRST: usize;
    /// Semantics of the leading arguments; the others have none.
    const SEMANTICS: &'static [u32] = &[];

    /// The facts about the event type.
    fn event() -> EventType;
    /// Whether it is on.
    fn state() -> &'static TypeState;
}

/// A call site with the types of its arguments: what the linker section points at.
struct Site<C, F>(core::marker::PhantomData<(C, F)>);

impl<C: Callsite, F: Fields> DescribeSite for Site<C, F> {
    fn describe(to: &mut dyn FnMut(Description<'_>)) {
        let mut described = Vec::with_capacity(1 + C::FIELDS.len());
        if C::FIRST != 0 {
            described.push(DURATION);
        }
        for (i, (name, place)) in C::FIELDS.iter().zip(F::PLACES).enumerate() {
            let mut place = *place;
            place.offset += C::FIRST as u32;
            described.push(Field {
                name,
                place,
                semantic: C::SEMANTICS.get(i).copied().unwrap_or(0),
                unit: "",
                redacted: F::REDACTED[i],
            });
        }
        let fixed_bytes = (C::FIRST + F::BYTES) as u32;
        to(Description {
            event: C::event(),
            fields: &described,
            fixed_bytes,
        });
    }
}

/// First field of a finished span.
const DURATION: Field = Field {
    name: "duration",
    place: super::description::Place {
        kind: super::Kind::U64,
        count: 0,
        offset: 0,
    },
    semantic: semantic::DURATION,
    unit: "ticks",
    redacted: false,
};

/// Makes the call site known.
#[inline(always)]
pub(crate) fn declare<C: Callsite, F: Fields>(_callsite: &C) {
    sites::declare::<Site<C, F>>();
}

/// Emits an event if its type is on; only then are the arguments evaluated.
#[inline(always)]
pub fn emit<C: Callsite, F: Fields>(callsite: C, arguments: impl FnOnce() -> F) {
    declare::<C, F>(&callsite);
    let id = C::state().enabled();
    if id != 0 {
        record(id, Now::Clock, None, &arguments());
    }
}

/// Emits an event that happened at `ticks` of the session's clock.
#[inline(always)]
pub fn emit_at<C: Callsite, F: Fields>(callsite: C, ticks: u64, arguments: impl FnOnce() -> F) {
    declare::<C, F>(&callsite);
    let id = C::state().enabled();
    if id != 0 {
        record(id, Now::At(ticks), None, &arguments());
    }
}

/// Writes one record: `before`, then the fields.
#[inline(always)]
pub(crate) fn record<F: Fields>(id: u32, now: Now, before: Option<u64>, fields: &F) {
    let first = if before.is_some() { 8 } else { 0 };
    let words = fields::payload_words(first, fields);
    if let Some(mut reservation) = reserve_words(TypeId(id), words, now) {
        fields::write(&mut reservation, before, fields);
        reservation.commit();
    }
}

/// Reserves a record at `ticks` in a page that is too old for the straight line of other code, which
/// has tried it. `None`: the page is not old, or less is simple; then [`reserve_words`] does it.
/// Inlined, so that the reservation is not copied.
#[inline(always)]
#[must_use]
pub fn reserve_words_extended(
    type_id: TypeId,
    payload_words: u64,
    ticks: u64,
) -> Option<Reservation<'static>> {
    thread_block::writer()?.reserve_extended(type_id, payload_words, ticks)
}

/// Reserves a record of `payload_words` in this thread's ring. `None`: lost, and counted.
#[inline(always)]
#[must_use]
pub fn reserve_words(
    type_id: TypeId,
    payload_words: u64,
    now: Now,
) -> Option<Reservation<'static>> {
    let mut read = 0;
    if let Some(writer) = thread_block::writer() {
        let ticks = match now {
            Now::At(ticks) => ticks,
            Now::Clock => clock::read(writer.clock()),
        };
        if let Some(reservation) = writer.reserve_or_now(type_id, payload_words, ticks, &mut read) {
            return Some(reservation);
        }
    }
    session::reserve_slow(type_id, payload_words, now, read)
}
