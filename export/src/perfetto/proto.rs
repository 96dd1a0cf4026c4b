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
        let mut length = Vec::with_capacity(10);
        varint(bytes as u64, &mut length);
        self.0.splice(place..=place, length);
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
