//! Blocks one behind the other in one private buffer, written with one large write.

use ringmark_format::align8;
use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, CONTENT_BYTES_MAX, SEALED, codec, kind};
use ringmark_format::page::PAGE_BYTES_MAX;
use zerocopy::IntoBytes;

/// Bytes after which a batch counts as full. Small enough that the copy is still in the cache
/// when it is summed and written.
pub const BATCH_BYTES: usize = 512 << 10;

const HEADER_WORDS: usize = BlockHeader::BYTES / 8;

/// What a block says about itself, besides its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLabel {
    /// See [`kind`].
    pub kind: u16,
    /// See [`codec`].
    pub codec: u8,
    /// See [`SEALED`].
    pub flags: u8,
    /// Identity of the session.
    pub session: [u8; 16],
    /// PAGE: ring id.
    pub ring_id: u64,
    /// PAGE: page number. SCHEMA: offset in the stream.
    pub page_number: u64,
    /// PAGE: size of the whole page.
    pub page_bytes: u32,
}

impl BlockLabel {
    /// The label of a block that is no page and stored as it is.
    #[must_use]
    pub const fn new(kind: u16, session: [u8; 16]) -> Self {
        Self {
            kind,
            codec: codec::NONE,
            flags: 0,
            session,
            ring_id: 0,
            page_number: 0,
            page_bytes: 0,
        }
    }
}

/// A buffer of whole blocks. Its size never changes.
#[derive(Debug)]
pub struct Batch {
    words: Vec<u64>,
    used: usize,
    pages: u64,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch of the usual size.
    #[must_use]
    pub fn new() -> Self {
        Self::with_room(BATCH_BYTES)
    }

    /// A batch that is full after `bytes`. It can hold one page of any size in any case.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        let most = bytes.max(PAGE_BYTES_MAX as usize) + BlockHeader::BYTES;
        Self {
            words: vec![0; most.div_ceil(8)],
            used: 0,
            pages: 0,
        }
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Pages in it.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// The blocks.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.words[..self.used].as_bytes()
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.used = 0;
        self.pages = 0;
    }

    /// Whether a block with this content fits.
    #[must_use]
    pub fn has_room(&self, content_bytes: usize) -> bool {
        HEADER_WORDS + content_bytes.div_ceil(8) <= self.words.len() - self.used
    }

    /// Where the content of the next page block goes; `None` if it does not fit. What is written
    /// there counts once [`Batch::finish_page`] is called.
    pub fn page_place(&mut self, page_bytes: u32) -> Option<&mut [u64]> {
        if !self.has_room(page_bytes as usize) {
            return None;
        }
        let first = self.used + HEADER_WORDS;
        self.words.get_mut(first..first + page_bytes as usize / 8)
    }

    /// Makes the first `extent` bytes at the page place a block.
    pub fn finish_page(&mut self, label: BlockLabel, extent: usize) {
        debug_assert!(extent.is_multiple_of(8));
        let first = self.used + HEADER_WORDS;
        let content = self.words[first..first + extent / 8].as_bytes();
        let header = block_header(&label, content, content.len());
        let place = self.words[self.used..first].as_mut_bytes();
        place.copy_from_slice(header.as_bytes());
        self.used = first + extent / 8;
        self.pages += 1;
    }

    /// Appends a block; `false` if it does not fit, then nothing was done.
    #[must_use]
    pub fn push(&mut self, label: BlockLabel, content: &[u8]) -> bool {
        if !self.has_room(content.len()) {
            return false;
        }
        let end = self.used + HEADER_WORDS + content.len().div_ceil(8);
        let place = self.words[self.used..end].as_mut_bytes();
        write_block(place, &block_header(&label, content, content.len()), content);
        self.used = end;
        true
    }
}

/// Appends a block to a growing buffer. `raw_bytes`: size of the content before its codec.
pub fn append_block(out: &mut Vec<u8>, label: BlockLabel, content: &[u8], raw_bytes: usize) {
    debug_assert!(content.len() <= CONTENT_BYTES_MAX as usize);
    let header = block_header(&label, content, raw_bytes);
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(content);
    out.resize(align8(out.len()), 0);
}

fn write_block(place: &mut [u8], header: &BlockHeader, content: &[u8]) {
    let (head, rest) = place.split_at_mut(BlockHeader::BYTES);
    head.copy_from_slice(header.as_bytes());
    let (body, padding) = rest.split_at_mut(content.len());
    body.copy_from_slice(content);
    padding.fill(0);
}

fn block_header(label: &BlockLabel, content: &[u8], raw_bytes: usize) -> BlockHeader {
    let is_page = label.kind == kind::PAGE;
    let mut header = BlockHeader {
        magic: BLOCK_MAGIC,
        kind: label.kind,
        codec: label.codec,
        flags: label.flags & SEALED,
        session: label.session,
        ring_id: label.ring_id,
        page_number: label.page_number,
        extent: if is_page { content.len() as u32 } else { 0 },
        page_bytes: label.page_bytes,
        stored_bytes: content.len() as u32,
        raw_bytes: raw_bytes as u32,
        content_crc: crc32fast::hash(content),
        header_crc: 0,
    };
    header.header_crc = crc32fast::hash(&header.as_bytes()[..BlockHeader::BYTES - 4]);
    header
}
