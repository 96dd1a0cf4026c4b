//! Blocks in bytes: what a header must say about itself, and where the block ends.
//!
//! Every reader of blocks uses these checks. What a reader does about a block that is not whole is
//! its own decision: it waits, searches for the next block, or gives up.

use alloc::vec::Vec;
use core::fmt;
use zerocopy::FromBytes;

use crate::block::{BLOCK_MAGIC, BlockHeader, CONTENT_BYTES_MAX, codec, kind};
use crate::codec::{crc32, header_crc};

/// What is wrong with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockFault {
    /// No block starts here.
    Magic {
        /// The first bytes, at most four.
        found: Vec<u8>,
    },
    /// The header's CRC is wrong.
    HeaderCrc {
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// The content is too large, before or after its codec.
    TooLarge {
        /// Kind of the block.
        kind: u16,
        /// Bytes of the larger of the two.
        found: u32,
        /// Most that it may have.
        most: u32,
    },
    /// Content without a codec is stored in another size than it has.
    Sizes {
        /// Bytes as stored.
        stored: u32,
        /// Bytes of the content.
        raw: u32,
    },
    /// The content's CRC is wrong.
    ContentCrc {
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// A block that is no container has a codec.
    Codec {
        /// Kind of the block.
        kind: u16,
        /// Its codec.
        codec: u8,
    },
}

impl fmt::Display for BlockFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic { found } => {
                let found = found.escape_ascii();
                write!(f, "a block starts with \"{found}\", expected \"RMKB\"")
            }
            Self::HeaderCrc { stored, computed } => write!(
                f,
                "crc32 of the block header stored {stored:08x}, computed {computed:08x}"
            ),
            Self::TooLarge { kind, found, most } => write!(
                f,
                "content of a block of kind {kind} is {found} bytes, expected at most {most}"
            ),
            Self::Sizes { stored, raw } => write!(
                f,
                "content without a codec is {raw} bytes, expected the {stored} that are stored"
            ),
            Self::ContentCrc { stored, computed } => write!(
                f,
                "crc32 of the block content stored {stored:08x}, computed {computed:08x}"
            ),
            Self::Codec { kind, codec } => {
                write!(f, "codec of a block of kind {kind} is {codec}, expected 0")
            }
        }
    }
}

impl core::error::Error for BlockFault {}

/// The header at the front of `bytes`; `None`: not all of it is there.
///
/// # Errors
/// Any [`BlockFault`] but those of a content. A wrong magic is found by its first byte.
pub fn header(bytes: &[u8]) -> Result<Option<BlockHeader>, BlockFault> {
    let front = &bytes[..bytes.len().min(BLOCK_MAGIC.len())];
    if !BLOCK_MAGIC.starts_with(front) {
        let found = front.to_vec();
        return Err(BlockFault::Magic { found });
    }
    let Ok((header, _)) = BlockHeader::read_from_prefix(bytes) else {
        return Ok(None);
    };
    let (stored, computed) = (header.header_crc, header_crc(&header));
    if stored != computed {
        return Err(BlockFault::HeaderCrc { stored, computed });
    }
    check_size(&header, CONTENT_BYTES_MAX)?;
    let (stored, raw) = (header.stored_bytes, header.raw_bytes);
    if header.codec == codec::NONE && raw != stored {
        return Err(BlockFault::Sizes { stored, raw });
    }
    Ok(Some(header))
}

/// Checks the size of a content against a bound of the caller, in bytes, before the caller waits
/// for any of it.
///
/// # Errors
/// [`BlockFault::TooLarge`].
pub fn check_size(header: &BlockHeader, most: u32) -> Result<(), BlockFault> {
    let (kind, found) = (header.kind, header.stored_bytes.max(header.raw_bytes));
    if found <= most {
        return Ok(());
    }
    Err(BlockFault::TooLarge { kind, found, most })
}

/// Checks the content, as stored, that belongs to a checked header.
///
/// # Errors
/// [`BlockFault::ContentCrc`], [`BlockFault::Codec`].
pub fn check_content(header: &BlockHeader, content: &[u8]) -> Result<(), BlockFault> {
    let (stored, computed) = (header.content_crc, crc32(content));
    if stored != computed {
        return Err(BlockFault::ContentCrc { stored, computed });
    }
    let (kind, codec) = (header.kind, header.codec);
    if codec != codec::NONE && kind != kind::CONTAINER {
        return Err(BlockFault::Codec { kind, codec });
    }
    Ok(())
}

/// A whole block: header, content, padding. The header is checked, the content not yet.
#[derive(Debug, Clone, Copy)]
pub struct BlockAt<'a> {
    /// Its header.
    pub header: BlockHeader,
    /// All its bytes.
    pub bytes: &'a [u8],
}

impl<'a> BlockAt<'a> {
    /// The content as stored, not checked.
    #[must_use]
    pub fn stored(&self) -> &'a [u8] {
        let content = self.bytes.get(BlockHeader::BYTES..).unwrap_or_default();
        let stored = content.get(..self.header.stored_bytes as usize);
        stored.unwrap_or_default()
    }

    /// The checked content as stored.
    ///
    /// # Errors
    /// As [`check_content`].
    pub fn content(&self) -> Result<&'a [u8], BlockFault> {
        let content = self.stored();
        check_content(&self.header, content).map(|()| content)
    }
}

/// The block at the front of `bytes`; `None`: not all of it is there.
///
/// # Errors
/// As [`header`].
pub fn first(bytes: &[u8]) -> Result<Option<BlockAt<'_>>, BlockFault> {
    let header = header(bytes)?;
    Ok(header.and_then(|header| {
        let bytes = bytes.get(..header.whole_bytes())?;
        Some(BlockAt { header, bytes })
    }))
}

/// The block at the front of `bytes` with its content checked; `None`: not all of it is there.
///
/// # Errors
/// Any [`BlockFault`].
pub fn checked(bytes: &[u8]) -> Result<Option<BlockAt<'_>>, BlockFault> {
    let block = first(bytes)?;
    if let Some(block) = &block {
        block.content()?;
    }
    Ok(block)
}

/// The blocks at the front of some bytes, until one is not whole or wrong.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    rest: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// Those at the front of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes after the latest block.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = BlockAt<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = first(self.rest).ok()??;
        self.rest = self.rest.get(block.bytes.len()..)?;
        Some(block)
    }
}
