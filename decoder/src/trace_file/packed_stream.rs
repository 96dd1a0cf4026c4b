//! The bytes of a schema stream, packed.
//!
//! Only a piece that is cut out of a dump needs them again, so they take as little memory as they can.

use ringmark_format::block::codec;
use ringmark_format::codec::{decode, encode};

/// Bytes that are packed together. Packing needs as much memory for a moment.
const TOGETHER: usize = 1 << 20;

/// A packed stream: its parts in order, each packed for itself, so that packing and unpacking need little
/// memory of their own.
#[derive(Debug, Default)]
pub(crate) struct PackedStream(Vec<Packed>);

/// A part: its bytes under a codec, and how many they are without it. A part that does not become smaller
/// has the codec NONE.
#[derive(Debug)]
struct Packed {
    codec: u8,
    raw_bytes: u32,
    bytes: Box<[u8]>,
}

impl PackedStream {
    /// Packs a stream. A part that cannot be packed is kept as it is.
    pub(crate) fn of(stream: &[u8]) -> Self {
        let parts = stream.chunks(TOGETHER).map(|part| {
            let mut bytes = Vec::new();
            let (codec, bytes) = match encode(codec::LZ4, part, &mut bytes) {
                Ok(()) => (codec::LZ4, bytes.as_slice()),
                Err(_) => (codec::NONE, part),
            };
            Packed {
                codec,
                raw_bytes: part.len() as u32,
                bytes: bytes.into(),
            }
        });
        Self(parts.collect())
    }

    /// Whether it has no bytes.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stream, as it was given to [`Self::of`].
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let unpacked = |part: &Packed| decode(part.codec, &part.bytes, part.raw_bytes);
        let parts = self.0.iter().map_while(|part| unpacked(part).ok());
        parts.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_as_it_was() {
        for length in [0, 1, TOGETHER, 2 * TOGETHER + 5] {
            let stream: Vec<u8> = (0..length).map(|n| (n / 300) as u8).collect();
            let packed = PackedStream::of(&stream);
            assert!(packed.bytes() == stream, "{length} bytes");
            let sum: usize = packed.0.iter().map(|part| part.bytes.len()).sum();
            assert!(sum < 100 + length / 20, "{sum} bytes of {length}");
        }
    }
}
