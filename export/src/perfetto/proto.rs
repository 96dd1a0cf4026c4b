//! Protobuf messages, appended to a buffer.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
pub(super) const BYTES: u32 = 2;

/// A message that is being written.
#[derive(Debug)]
pub(super) struct Message<'o>(pub(super) &'o mut Vec<u8>);

/// A message of which the length is still to be written: where that stands.
pub(super) struct Open(usize);

/// Most numbers have one byte, or two or three, which are written together.
#[inline]
fn varint(mut n: u64, out: &mut Vec<u8>) {
    let (first, second, third) = (n as u8, (n >> 7) as u8, (n >> 14) as u8);
    if n < 1 << 7 {
        return out.push(first);
    }
    if n < 1 << 14 {
        return out.extend_from_slice(&[first | 0x80, second]);
    }
    if n < 1 << 21 {
        return out.extend_from_slice(&[first | 0x80, second | 0x80, third]);
    }
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

impl Message<'_> {
    #[inline]
    pub(super) fn tag(&mut self, field: u32, wire: u32) {
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
        let open = self.open(field);
        write(&mut Message(self.0));
        self.close(open);
    }

    /// Begins a message in this one.
    #[inline]
    pub(super) fn open(&mut self, field: u32) -> Open {
        self.tag(field, BYTES);
        self.open_here()
    }

    /// The same, after its tag.
    #[inline]
    pub(super) fn open_here(&mut self) -> Open {
        self.0.push(0);
        Open(self.0.len() - 1)
    }

    /// Ends a message.
    #[inline]
    pub(super) fn close(&mut self, Open(place): Open) {
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

/// Most bytes of a small packet.
const SMALL_BYTES: usize = 128;
/// What may be written at one place at once.
const AT_ONCE: usize = 16;
/// Bytes of small packets that are kept together. To copy each of them would wait for its parts.
const SMALLS_BYTES: usize = 4096;

/// Packets with a message at their ends, both shorter than 128 bytes: numbers are written as whole words,
/// and lengths have one byte. What has no room is not written, and then the packet is given up.
#[derive(Debug)]
pub(super) struct Smalls {
    bytes: Box<[u8; SMALLS_BYTES + AT_ONCE]>,
    /// Where the packet at hand begins: after all finished ones.
    start: usize,
    at: usize,
    /// Where the length of the inner message is.
    inner: usize,
}

impl Default for Smalls {
    fn default() -> Self {
        Self {
            bytes: Box::new([0; SMALLS_BYTES + AT_ONCE]),
            start: 0,
            at: 0,
            inner: 0,
        }
    }
}

impl Smalls {
    /// Begins a packet that is this field, in the place of one that was not finished.
    #[inline]
    pub(super) fn begin(&mut self, field: u32) {
        self.at = self.start;
        self.word(u64::from(field << 3 | BYTES), 2);
    }

    /// Whether the next packet may have no room.
    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.start > SMALLS_BYTES - SMALL_BYTES
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.start
    }

    /// Appends all finished packets to `out`, which leaves none.
    #[inline]
    pub(super) fn move_to(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.start]);
        self.start = 0;
    }

    /// Writes the first bytes of a word.
    #[inline]
    fn word(&mut self, word: u64, bytes: usize) {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + 8) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.at += bytes;
    }

    /// Writes the first bytes of these.
    #[inline]
    pub(super) fn append(&mut self, all: &[u8; AT_ONCE], bytes: usize) {
        if let Some(place) = self.bytes.get_mut(self.at..self.at + AT_ONCE) {
            place.copy_from_slice(all);
        }
        self.at += bytes;
    }

    /// As [`Message::number`], for fields up to 15.
    #[inline]
    pub(super) fn number(&mut self, field: u32, n: u64) {
        let tag = u64::from(field << 3 | VARINT);
        if n < 1 << 7 {
            return self.word(tag | n << 8, 2);
        }
        if n >= 1 << 28 {
            return self.large(tag, n);
        }
        let seven = |place: u32| (n >> (7 * place) & 0x7F) << (8 * place);
        let spread = seven(0) | seven(1) | seven(2) | seven(3);
        let bytes = n.ilog2() as usize / 7 + 1;
        let more = 0x8080_8080 & ((1_u64 << (8 * (bytes - 1))) - 1);
        self.word(tag | (spread | more) << 8, 1 + bytes);
    }

    #[cold]
    fn large(&mut self, tag: u64, mut n: u64) {
        self.word(tag, 1);
        while n >= 0x80 {
            self.word(n & 0x7F | 0x80, 1);
            n >>= 7;
        }
        self.word(n, 1);
    }

    /// Begins the message at the end; its tag is written.
    #[inline]
    pub(super) fn begin_inner(&mut self) {
        self.inner = self.at;
        self.at += 1;
    }

    /// A message of two numbers.
    #[inline]
    pub(super) fn pair(&mut self, field: u32, first: (u32, u64), second: (u32, u64)) {
        self.word(u64::from(field << 3 | BYTES), 2);
        let start = self.at;
        self.number(first.0, first.1);
        self.number(second.0, second.1);
        if let Some(length) = self.bytes.get_mut(start - 1) {
            *length = (self.at - start) as u8;
        }
    }

    /// Ends the packet; `None`: it has too many bytes.
    #[inline]
    pub(super) fn finish(&mut self) -> Option<()> {
        if self.at > self.start + SMALL_BYTES {
            return None;
        }
        *self.bytes.get_mut(self.start + 1)? = (self.at - self.start - 2) as u8;
        *self.bytes.get_mut(self.inner)? = (self.at - self.inner - 1) as u8;
        self.start = self.at;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_packet_is_like_any_other() {
        let numbers = [
            0,
            127,
            128,
            16_383,
            16_384,
            1 << 27,
            (1 << 28) - 1,
            1 << 28,
            u64::MAX,
        ];
        for n in numbers {
            let mut small = Smalls::default();
            small.begin(1);
            small.number(8, 7);
            small.begin(1);
            small.number(8, n);
            small.append(&[0x5A; AT_ONCE], 1);
            small.begin_inner();
            small.pair(4, (1, n), (3, 5));
            small.number(9, n);
            let mut out = Vec::new();
            Message(&mut out).message(1, |packet| {
                packet.number(8, n);
                packet.message(11, |event| {
                    event.message(4, |pair| {
                        pair.number(1, n);
                        pair.number(3, 5);
                    });
                    event.number(9, n);
                });
            });
            assert_eq!(small.finish(), Some(()), "{n}");
            small.begin(1);
            let mut all = b"before".to_vec();
            small.move_to(&mut all);
            assert_eq!(all, [b"before", out.as_slice()].concat(), "{n}");
            assert_eq!(small.len(), 0);
        }
        let mut small = Smalls::default();
        small.begin(1);
        small.begin_inner();
        (0..12).for_each(|_| small.number(1, u64::MAX));
        assert_eq!((small.finish(), small.len()), (None, 0));
        let mut packets = 0;
        while !small.is_full() {
            small.begin(1);
            small.begin_inner();
            (0..11).for_each(|_| small.number(1, u64::MAX));
            assert_eq!(small.finish(), Some(()));
            packets += 1;
        }
        assert_eq!((packets, small.len()), (33, 33 * 124));
    }

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
