//! Text of a value, formatted into a buffer on the stack.

use core::fmt::{self, Write};

use ringmark_format::align8;
use ringmark_format::schema::Kind;

use super::value::{Encoder, Value};

/// Longest text that [`Text`] keeps, in bytes; longer ones end in "…".
pub(crate) const TEXT_BYTES_MAX: usize = 512;
const _: () = assert!(TEXT_BYTES_MAX == ringmark_format::panics::TEXT_BYTES_MAX);

/// A value as text, in a buffer on the stack: formatting does not allocate.
#[derive(Clone, Copy)]
pub struct Text {
    bytes: [u8; TEXT_BYTES_MAX],
    length: usize,
    cut: bool,
}

impl Text {
    const fn empty() -> Self {
        Self {
            bytes: [0; TEXT_BYTES_MAX],
            length: 0,
            cut: false,
        }
    }

    /// The text itself, cut if it is too long.
    pub(crate) fn copy(text: &str) -> Self {
        let mut copy = Self::empty();
        // Writing into the buffer does not fail.
        let _ = copy.write_str(text);
        copy
    }

    /// The value's `Debug` text; `?value` in the macros.
    pub fn debug<T: fmt::Debug + ?Sized>(value: &T) -> Self {
        Self::of(format_args!("{value:?}"))
    }

    /// The value's `Display` text; `%value` in the macros.
    pub fn display<T: fmt::Display + ?Sized>(value: &T) -> Self {
        Self::of(format_args!("{value}"))
    }

    fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self::empty();
        // A failing formatter leaves what it wrote so far.
        let _ = text.write_fmt(arguments);
        text
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for Text {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        const ELLIPSIS: &str = "…";
        if self.cut {
            return Ok(());
        }
        let room = TEXT_BYTES_MAX - ELLIPSIS.len() - self.length;
        let mut take = more.len().min(room);
        while !more.is_char_boundary(take) {
            take -= 1;
        }
        self.push(&more.as_bytes()[..take]);
        if take < more.len() {
            self.cut = true;
            self.push(ELLIPSIS.as_bytes());
        }
        Ok(())
    }
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }
}

impl Value for Text {
    const KIND: Kind = Kind::Str;

    fn dynamic_bytes(&self) -> usize {
        align8(self.length)
    }

    fn encode(&self, to: &mut Encoder<'_, '_>, offset: usize) {
        to.dynamic(offset, self.as_bytes());
    }
}
