//! Events that are structs: `#[derive(Event)]`, [`emit()`], [`reserve()`].

use core::marker::PhantomData;

use crate::ring::Reservation;
use ringmark_format::TypeId;

use super::description::{Description, EventType, Field, Now, TypeState};
use super::emit::reserve_words;
use super::value::Encoder;
use crate::sites::{self, DescribeSite};

/// A struct whose values are events. Made by `#[derive(Event)]` on a `repr(C)` struct.
pub trait Event {
    /// Its fields, at their offsets in the struct.
    const FIELDS: &'static [Field];
    /// Bytes of the payload: the size of the struct.
    const BYTES: usize;

    /// The facts about the event type.
    fn event() -> EventType;
    /// Whether it is on.
    fn state() -> &'static TypeState;
    /// Writes the fields in ascending order of their offsets.
    fn encode(&self, to: &mut Encoder<'_, '_>);
}

struct Typed<T>(PhantomData<T>);

impl<T: Event> DescribeSite for Typed<T> {
    fn describe(to: &mut dyn FnMut(Description<'_>)) {
        to(Description {
            event: T::event(),
            fields: T::FIELDS,
            fixed_bytes: T::BYTES as u32,
        });
    }
}

/// A reserved place for one value of `T`. A thread may hold several, and ends them in any order.
///
/// While it holds one, its page stays open: events that do not fit into the page are lost, and
/// counted as nested.
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reserved<T: Event> {
    reservation: Reservation<'static>,
    value: PhantomData<T>,
}

/// A written value, ready to commit.
#[must_use = "a record that is not committed is cancelled"]
pub struct Written {
    reservation: Reservation<'static>,
}

/// Emits `value` if its type is on.
#[inline(always)]
pub fn emit<T: Event>(value: &T) {
    if let Some(reserved) = reserve::<T>() {
        reserved.write(value).commit();
    }
}

/// Reserves a record for one `T`: `None` if the type is off, or the event was lost (and counted).
#[inline(always)]
#[must_use]
pub fn reserve<T: Event>() -> Option<Reserved<T>> {
    sites::declare::<Typed<T>>();
    let id = T::state().enabled();
    if id == 0 {
        return None;
    }
    let words = T::BYTES.div_ceil(8) as u64;
    let reservation = reserve_words(TypeId(id), words, Now::Clock)?;
    Some(Reserved {
        reservation,
        value: PhantomData,
    })
}

impl<T: Event> Reserved<T> {
    /// Writes the value.
    #[inline(always)]
    pub fn write(mut self, value: &T) -> Written {
        let mut encoder = Encoder::new(&mut self.reservation, T::BYTES);
        value.encode(&mut encoder);
        encoder.finish();
        Written {
            reservation: self.reservation,
        }
    }

    /// Gives the reservation up. The same as dropping it.
    pub fn cancel(self) {}
}

impl Written {
    /// Commits the record.
    #[inline(always)]
    pub fn commit(self) {
        self.reservation.commit();
    }
}
