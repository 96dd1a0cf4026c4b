//! Page blocks one after the other in one private buffer, to be written with one large write.
//!
//! Pages are copied straight to where their block will have them. The buffer is allocated once: a
//! reader under load neither allocates nor copies twice.

use ringmark_format::block::BlockHeader;
use ringmark_format::codec::CodecError;
use ringmark_format::codec::write::seal_header;
use ringmark_format::page::PAGE_BYTES_MAX;
use zerocopy::IntoBytes;

/// Bytes after which a batch counts as full. It is small enough that the copy is still in the cache
/// when its checksum is computed and when it is written.
pub const BATCH_BYTES: usize = 512 << 10;

const HEADER_WORDS: usize = BlockHeader::BYTES / 8;

/// A buffer of whole PAGE blocks. Its size never changes.
#[derive(Debug)]
pub struct Batch {
    words: Vec<u64>,
    used: usize,
    limit: usize,
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

    /// A batch that is full after `bytes`, but in any case has room for one page of any size.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        let most = bytes.max(PAGE_BYTES_MAX as usize + BlockHeader::BYTES);
        let words = most.div_ceil(8);
        Self {
            words: vec![0; words],
            used: 0,
            limit: words,
            pages: 0,
        }
    }

    /// Whether no page is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Number of pages in it.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Its blocks, ready to be written.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.words[..self.used].as_bytes()
    }

    /// Empties it. Until the next call it takes at most `bytes`, and no more than its size.
    pub fn clear(&mut self, bytes: u64) {
        let words = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        self.limit = words.min(self.words.len());
        self.used = 0;
        self.pages = 0;
    }

    /// Where the content of the next page block goes; `None`: it does not fit. Words written there
    /// become part of the batch with [`Batch::finish_page`], and are lost otherwise.
    pub fn page_place(&mut self, page_bytes: u32) -> Option<&mut [u64]> {
        let first = self.used + HEADER_WORDS;
        self.words[..self.limit].get_mut(first..first + page_bytes as usize / 8)
    }

    /// Makes a block of the first `words` words at the page place. Extent, lengths and checksums of
    /// the header are filled in.
    pub fn finish_page(&mut self, mut header: BlockHeader, words: usize) {
        let first = self.used + HEADER_WORDS;
        let content = self.words[first..first + words].as_bytes();
        header.extent = content.len() as u32;
        if seal_header(&mut header, content).is_err() {
            return; // Only a block larger than any page cannot be sealed.
        }
        let place = self.words[self.used..first].as_mut_bytes();
        place.copy_from_slice(header.as_bytes());
        self.used = first + words;
        self.pages += 1;
    }
}

/// Takes the result of writing a block whose content is bounded below the largest block: it cannot
/// fail.
pub(crate) fn fits(written: Result<(), CodecError>) {
    debug_assert!(written.is_ok(), "{written:?}");
}
