//! Values of a program's own types, recorded as the bytes that they have in memory.

use bytemuck::NoUninit;
use ringmark_format::schema::Kind;

use super::snapshot::Snapshot;
use super::value::{Encoder, Value};

/// A value of a type of the program's own, recorded as the bytes that it has in memory.
///
/// Any [`bytemuck::NoUninit`] type will do: no padding, no pointers that mean something elsewhere.
/// It is an argument of a macro or a field of a typed event, from 1 to 65535 bytes long; the schema
/// holds its size, not its name. An `Option` of one is no argument. For a slice use
/// `bytemuck::cast_slice`: `[u8]` is a value already.
///
/// `Value::cast_slice` and `Value::copy_slice` of `ringmark-decoder` read it back.
///
/// ```
/// use bytemuck::NoUninit;
/// use ringmark::{Event, Plain, emit, event};
///
/// #[derive(Clone, Copy, NoUninit)]
/// #[repr(C)]
/// struct Position {
///     x: f32,
///     y: f32,
/// }
///
/// #[derive(Event)]
/// #[repr(C)]
/// struct Moved {
///     object: u32,
///     to: Plain<Position>,
/// }
///
/// let to = Plain(Position { x: 1.0, y: -2.5 });
/// event!("object.moved", object = 7_u32, to);
/// emit(&Moved { object: 7, to });
/// assert_eq!(size_of::<Plain<Position>>(), 8);
/// assert_eq!(<Plain<Position> as ringmark::Value>::BYTES, 8);
/// ```
///
/// A type with padding is refused, because its bytes are not all there:
///
/// ```compile_fail
/// #[derive(Clone, Copy, bytemuck::NoUninit)]
/// #[repr(C)]
/// struct Padded {
///     small: u8,
///     large: u32,
/// }
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Plain<T>(pub T);

impl<T: NoUninit> Value for Plain<T> {
    const KIND: Kind = Kind::U8;
    const COUNT: u16 = {
        assert!(
            size_of::<T>() > 0 && size_of::<T>() <= u16::MAX as usize,
            "a plain value has 1 to 65535 bytes"
        );
        size_of::<T>() as u16
    };
    const BYTES: usize = size_of::<T>();

    #[inline(always)]
    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        let mut rest = bytemuck::bytes_of(&self.0);
        let mut at = offset;
        while !rest.is_empty() {
            // Up to the end of the payload word.
            let (now, later) = rest.split_at(rest.len().min(8 - at % 8));
            let mut word = [0; 8];
            word[..now.len()].copy_from_slice(now);
            to.bits(at, u64::from_le_bytes(word));
            at += now.len();
            rest = later;
        }
    }
}

impl<T: NoUninit> Snapshot for Plain<T> {
    type Kept = Self;

    #[inline(always)]
    fn snapshot(&self) -> Self {
        *self
    }
}
