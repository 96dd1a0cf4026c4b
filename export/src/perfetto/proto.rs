//! Protobuf messages, appended to a buffer.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

/// A message that is being written.
#[derive(Debug)]
pub(super) struct Message<'o>(pub(super) &'o mut Vec<u8>);

#[inline]
fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

impl Message<'_> {
    #[inline]
    fn tag(&mut self, field: u32, wire: u32) {
        varint((field << 3 | wire).into(), self.0);
    }

    /// An unsigned number, a number of an enumeration, or a truth value.
    #[inline]
    pub(super) fn number(&mut self, field: u32, n: u64) {
        self.tag(field, VARINT);
        varint(n, self.0);
    }

    /// A signed number of type int64.
    #[inline]
    pub(super) fn signed(&mut self, field: u32, n: i64) {
        self.number(field, n as u64);
    }

    /// A number of type fixed64.
    pub(super) fn fixed(&mut self, field: u32, n: u64) {
        self.tag(field, FIXED64);
        self.0.extend_from_slice(&n.to_le_bytes());
    }

    /// A number of type double.
    pub(super) fn double(&mut self, field: u32, n: f64) {
        self.fixed(field, n.to_bits());
    }

    /// Text that is printable UTF-8.
    pub(super) fn text(&mut self, field: u32, text: &[u8]) {
        self.tag(field, BYTES);
        varint(text.len() as u64, self.0);
        self.0.extend_from_slice(text);
    }

    /// A message in this one.
    #[inline]
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message<'_>)) {
        self.tag(field, BYTES);
        let place = self.0.len();
        self.0.push(0);
        write(&mut Message(self.0));
        let bytes = self.0.len() - place - 1;
        if bytes < 0x80 {
            self.0[place] = bytes as u8;
            return;
        }
        self.lengthen(place, bytes);
    }

    /// Puts a length of several bytes in the place of the byte that was kept for it.
    #[cold]
    fn lengthen(&mut self, place: usize, bytes: usize) {
        let mut length = Short::default();
        length.varint(bytes as u64);
        self.0
            .splice(place..=place, length.as_bytes().iter().copied());
    }

    /// The length of a message of which `front` is the beginning, and both.
    #[inline]
    pub(super) fn short(&mut self, field: u32, front: &Short, rest: &[u8]) {
        self.tag(field, BYTES);
        varint((front.len + rest.len()) as u64, self.0);
        self.0.extend_from_slice(front.as_bytes());
        self.0.extend_from_slice(rest);
    }
}

/// Most bytes of a [`Short`].
const SHORT_BYTES: usize = 96;

/// A message of few numbers, put together before it is appended. What is beyond 96 bytes is cut: a
/// number and its tag have at most 15.
#[derive(Debug)]
pub(super) struct Short {
    bytes: [u8; SHORT_BYTES],
    len: usize,
}

impl Default for Short {
    #[inline]
    fn default() -> Self {
        Self {
            bytes: [0; SHORT_BYTES],
            len: 0,
        }
    }
}

impl Short {
    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    #[inline]
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.byte(n as u8 | 0x80);
            n >>= 7;
        }
        self.byte(n as u8);
    }

    /// As [`Message::number`].
    #[inline]
    pub(super) fn number(&mut self, field: u32, n: u64) {
        self.varint((field << 3 | VARINT).into());
        self.varint(n);
    }

    /// The beginning of a message of this many bytes, which follow.
    #[inline]
    pub(super) fn before(&mut self, field: u32, bytes: usize) {
        self.varint((field << 3 | BYTES).into());
        self.varint(bytes as u64);
    }

    /// Another one's bytes.
    #[inline]
    pub(super) fn append(&mut self, other: &Self) {
        other.as_bytes().iter().for_each(|byte| self.byte(*byte));
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_the_encoding_guide_has_them() {
        let mut out = Vec::new();
        let mut message = Message(&mut out);
        message.number(1, 150);
        message.text(2, b"testing");
        message.message(3, |inner| inner.number(1, 150));
        message.fixed(16, 1);
        let expected = [
            &[0x08, 0x96, 0x01][..],
            b"\x12\x07testing",
            &[0x1a, 0x03, 0x08, 0x96, 0x01],
            &[0x81, 0x01, 1, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        for bytes in [127, 128, 16_384] {
            let mut out = Vec::new();
            Message(&mut out).message(1, |inner| inner.0.resize(inner.0.len() + bytes, b'x'));
            let mut expected = vec![0x0a];
            varint(bytes as u64, &mut expected);
            expected.resize(expected.len() + bytes, b'x');
            assert_eq!(out, expected);
        }
        let mut out = Vec::new();
        Message(&mut out).signed(1, -1);
        assert_eq!(out.len(), 11);
    }
}
