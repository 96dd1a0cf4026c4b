//! How blocks are packed, for a file or for the way to a collector.

use ringmark_format::Uuid;
use ringmark_format::block::codec;
use ringmark_format::codec::write;

/// How pages are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Codec {
    /// Blocks are written as they are.
    #[default]
    None = codec::NONE,
    /// LZ4.
    Lz4 = codec::LZ4,
    /// LZ4 after a reversible filter that makes records more alike.
    DeltaShuffleLz4 = codec::DELTA_SHUFFLE_LZ4,
}

/// Packs blocks under one codec, into a buffer that it uses again.
#[derive(Debug, Default)]
pub(crate) struct Packer {
    codec: Codec,
    packed: Vec<u8>,
}

impl Packer {
    pub(crate) fn new(codec: Codec) -> Self {
        Self {
            codec,
            packed: Vec::new(),
        }
    }

    /// Whether packing changes anything.
    pub(crate) fn packs(&self) -> bool {
        self.codec != Codec::None
    }

    /// The blocks of a session in a container of this codec, or as they are if they cannot be
    /// packed.
    pub(crate) fn pack<'b>(&'b mut self, session: Uuid, blocks: &'b [u8]) -> &'b [u8] {
        if !self.packs() || blocks.is_empty() {
            return blocks;
        }
        self.packed.clear();
        match write::container(&mut self.packed, session, self.codec as u8, blocks) {
            Ok(()) => &self.packed,
            Err(_) => blocks,
        }
    }
}
