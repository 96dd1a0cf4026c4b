//! Events that are structs: `#[derive(Event)]`, [`emit()`], [`reserve()`].

use core::marker::PhantomData;

use crate::ring::Reservation;
use ringmark_format::TypeId;

use super::emit::reserve_words;
use super::value::Encoder;
use crate::description::{Description, EventType, Field, Now, TypeState};
use crate::sites::{self, DescribeSite};

/// A struct whose values are events: implemented by `#[derive(Event)]` on a `repr(C)` struct.
///
/// The payload of a record has the layout of the struct, so recording is a copy of its fields.
///
/// ```
/// use ringmark::Event;
///
/// #[derive(Event)]
/// #[repr(C)]
/// #[event(name = "packet.seen", level = "debug")]
/// struct PacketSeen {
///     length: u32,
///     port: u16,
/// }
///
/// assert_eq!(PacketSeen::event().name, "packet.seen");
/// assert_eq!(PacketSeen::FIELDS[1].place.offset, 4);
/// assert_eq!(PacketSeen::BYTES, 8);
/// ```
pub trait Event {
    /// The fields that the schema describes, at their offsets in the struct.
    const FIELDS: &'static [Field];
    /// Bytes of the payload: the size of the struct.
    const BYTES: usize;

    /// Name, level and the other facts that the schema holds about the type.
    fn event() -> EventType;
    /// The word that says whether the type is enabled, one for each type.
    fn state() -> &'static TypeState;
    /// Writes the fields into a record, in ascending order of their offsets.
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

/// A reserved place for one value of `T`; made by [`reserve`].
///
/// A thread may hold several, and ends them in any order. While it holds one, its page stays open:
/// events that do not fit into the page are lost, and counted as nested. A reservation that is
/// dropped is cancelled.
///
/// ```
/// # use ringmark::{Event, Session, reserve};
/// #[derive(Event)]
/// #[repr(C)]
/// struct Answer {
///     code: u16,
/// }
///
/// let session = Session::builder().start().expect("a session");
/// let reserved: ringmark::Reserved<Answer> = reserve().expect("room in the ring");
/// reserved.write(&Answer { code: 7 }).commit();
/// assert_eq!(session.records(), 1);
/// ```
#[must_use = "a reservation that is dropped is cancelled"]
pub struct Reserved<T: Event> {
    reservation: Reservation<'static>,
    value: PhantomData<T>,
}

/// A written value that no reader sees before it is committed; made by [`Reserved::write`].
///
/// ```
/// # use ringmark::{Event, Session, reserve};
/// # #[derive(Event)]
/// # #[repr(C)]
/// # struct Answer {
/// #     code: u16,
/// # }
/// let _session = Session::builder().start().expect("a session");
/// let reserved = reserve::<Answer>();
/// assert!(reserved.is_some());
/// if let Some(reserved) = reserved {
///     let written: ringmark::Written = reserved.write(&Answer { code: 7 });
///     written.commit();
/// }
/// ```
#[must_use = "a record that is not committed is cancelled"]
pub struct Written {
    reservation: Reservation<'static>,
}

/// Emits `value` if its type is enabled.
///
/// ```
/// use ringmark::{Event, Session, emit};
///
/// #[derive(Event)]
/// #[repr(C)]
/// struct RequestDone {
///     status: u16,
///     #[event(unit = "ns")]
///     latency: u64,
/// }
///
/// let session = Session::builder().start().expect("a session");
/// emit(&RequestDone { status: 200, latency: 41_000 });
/// assert_eq!(session.records(), 1);
/// ```
#[inline(always)]
pub fn emit<T: Event>(value: &T) {
    if let Some(reserved) = reserve::<T>() {
        reserved.write(value).commit();
    }
}

/// Reserves a record for one `T`, to be written and committed later.
///
/// `None`: the type is disabled, or the event is lost, and counted.
///
/// ```
/// use ringmark::{Event, Session, reserve};
///
/// #[derive(Event)]
/// #[repr(C)]
/// struct Answer {
///     code: u16,
/// }
///
/// assert!(reserve::<Answer>().is_none(), "there is no session");
/// let _session = Session::builder().start().expect("a session");
/// let first = reserve::<Answer>().expect("room in the ring");
/// let second = reserve::<Answer>().expect("room in the ring");
/// second.write(&Answer { code: 2 }).commit();
/// first.cancel();
/// ```
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
    /// Writes the value into the reserved place.
    #[inline(always)]
    pub fn write(mut self, value: &T) -> Written {
        let mut encoder = Encoder::new(&mut self.reservation, T::BYTES);
        value.encode(&mut encoder);
        encoder.finish();
        Written {
            reservation: self.reservation,
        }
    }

    /// Cancels the reservation, as dropping it does: no record is left.
    pub fn cancel(self) {}
}

impl Written {
    /// Commits the record: from here on it is there, whatever happens to the process.
    #[inline(always)]
    pub fn commit(self) {
        self.reservation.commit();
    }
}
