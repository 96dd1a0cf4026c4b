//! The arguments of one event: a tuple of values with places computed at compile time.

use crate::ring::Reservation;
use ringmark_format::open_span;

use super::value::{Encoder, Value, alignment};
use crate::description::Place;

/// A tuple of values.
pub trait Fields {
    /// Where each value lies, counted from `FIRST`.
    const PLACES: &'static [Place];
    /// Which values are redacted.
    const REDACTED: &'static [bool];
    /// Bytes of all fixed parts.
    const BYTES: usize;

    /// Bytes after the fixed parts, a multiple of 8.
    fn dynamic_bytes(&self) -> usize;

    /// Writes all values, the first at `first`.
    fn encode(&self, to: &mut Encoder<'_, '_>, first: usize);
}

/// Writes `fields` into a reservation of the right size, after the `first` bytes
/// that `before` holds.
#[inline(always)]
pub(crate) fn write<F: Fields>(reservation: &mut Reservation<'_>, before: Option<u64>, fields: &F) {
    let first = if before.is_some() { 8 } else { 0 };
    if first + F::BYTES == 0 {
        return;
    }
    let mut encoder = Encoder::new(reservation, first + F::BYTES);
    if let Some(word) = before {
        encoder.bits(0, word);
    }
    fields.encode(&mut encoder, first);
    encoder.finish();
}

/// Writes what a frame of the stack of open spans holds: `start`, then as much of `fields` as fits.
#[inline(always)]
pub(crate) fn write_frame<F: Fields>(frame: &mut Reservation<'_>, start: u64, fields: &F) {
    let end = 8 + 8 * open_span::KEPT_WORDS as usize;
    let mut encoder = Encoder::cut(frame, 8 + F::BYTES, end);
    encoder.bits(0, start);
    fields.encode(&mut encoder, 8);
    encoder.finish();
}

/// Writes `fields` where they are only looked at: as much as there is room for.
pub(crate) fn write_seen<F: Fields>(to: &mut Reservation<'_>, fields: &F) {
    let end = 8 * to.payload_words() as usize;
    let mut encoder = Encoder::cut(to, F::BYTES, end);
    fields.encode(&mut encoder, 0);
    encoder.finish();
}

/// Payload words of `fields` after `first` bytes.
#[inline(always)]
pub(crate) fn payload_words<F: Fields>(first: usize, fields: &F) -> u64 {
    ((first + F::BYTES).div_ceil(8) + fields.dynamic_bytes() / 8) as u64
}

/// End of the places so far.
const fn end(places: &[(Place, usize)]) -> usize {
    match places.last() {
        None => 0,
        Some((place, bytes)) => place.offset as usize + *bytes,
    }
}

/// Place of a value after the others, aligned.
const fn next<V: Value>(before: usize) -> (Place, usize) {
    let offset = before.next_multiple_of(alignment(V::KIND));
    (Place::of::<V>(offset), V::BYTES)
}

impl Fields for () {
    const PLACES: &'static [Place] = &[];
    const REDACTED: &'static [bool] = &[];
    const BYTES: usize = 0;

    #[inline(always)]
    fn dynamic_bytes(&self) -> usize {
        0
    }

    #[inline(always)]
    fn encode(&self, _to: &mut Encoder<'_, '_>, _first: usize) {}
}

macro_rules! tuple {
    ($($name:ident $index:tt),+ $(,)?) => {
        impl<$($name: Value),+> Fields for ($($name,)+) {
            const PLACES: &'static [Place] = &{
                let mut all = [Place { kind: crate::description::Kind::U8, count: 0, offset: 0, optional: false }; tuple!(@count $($name)+)];
                let mut at = 0;
                $(
                    let (place, bytes) = next::<$name>(at);
                    all[$index] = place;
                    at = end(&[(place, bytes)]);
                )+
                let _ = at;
                all
            };
            const REDACTED: &'static [bool] = &[$($name::REDACTED),+];
            const BYTES: usize = {
                let mut at = 0;
                $( at = end(&[next::<$name>(at)]); )+
                at
            };

            #[inline(always)]
            fn dynamic_bytes(&self) -> usize {
                0 $( + self.$index.dynamic_bytes() )+
            }

            #[inline(always)]
            fn encode(&self, to: &mut Encoder<'_, '_>, first: usize) {
                $( self.$index.encode(to, first + Self::PLACES[$index].offset as usize); )+
            }
        }
    };
    (@count $($name:ident)+) => { 0 $( + tuple!(@one $name) )+ };
    (@one $name:ident) => { 1 };
}

/// Implements [`Fields`] for every tuple up to these names: 32 arguments, and the two ids of a span.
macro_rules! tuples {
    ([$($done:ident $at:tt,)*]) => {};
    ([$($done:ident $at:tt,)*] $name:ident $index:tt $($rest:tt)*) => {
        tuple!($($done $at,)* $name $index);
        tuples!([$($done $at,)* $name $index,] $($rest)*);
    };
}

tuples! {
    []
    A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 Q 16 R 17 S 18
    T 19 U 20 V 21 W 22 X 23 Y 24 Z 25 Aa 26 Ab 27 Ac 28 Ad 29 Ae 30 Af 31 Ag 32 Ah 33
}
