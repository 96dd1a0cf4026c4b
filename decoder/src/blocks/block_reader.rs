//! An input to valid blocks and items of damage. The input need not be seekable.
//!
//! After damage the reader searches for the next valid header. A wrong content may have a wrong
//! length, so the search begins inside it; how often that may happen is bounded.

use std::io::Read;
use std::sync::Arc;

use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, kind};
use ringmark_format::block_at::{self, BlockFault};
use ringmark_format::codec::decode;
use ringmark_format::{PageNumber, RingId, Uuid};

use crate::blocks::byte_window::ByteWindow;
use crate::blocks::damage::{Damage, Fault, PageId, looks_like};

/// Bytes that may be searched again after wrong content CRCs, beyond the size of the input. The
/// bound keeps the time linear for a hostile input.
const RESCAN_FREE_BYTES: u64 = 64 << 20;

/// A block whose header and content passed their checks.
#[derive(Debug)]
pub struct Block<'a> {
    /// The header; lengths and codec are those of `content`.
    pub header: BlockHeader,
    /// The content, decoded.
    pub content: &'a [u8],
    /// Number of the block in the input, from 0; blocks of a container share the container's.
    pub number: u64,
    /// Offset in the input, in bytes; blocks of a container share the container's.
    pub offset: u64,
    /// Where the content begins in the decoded content of its container, if it is in one.
    pub(crate) packed_at: Option<u32>,
}

/// What a [`BlockReader`] gives next.
#[derive(Debug)]
pub enum Item<'a> {
    /// A valid block of any kind but CONTAINER.
    Block(Block<'a>),
    /// Something that could not be used.
    Damage(Damage),
}

/// Reads the blocks of an input one after the other and opens containers.
///
/// Every block it gives has passed its checks. Memory is bounded by the largest block.
pub struct BlockReader<R> {
    window: ByteWindow<R>,
    source: Arc<str>,
    block: u64,
    /// Bytes of the window's front that the latest block took.
    taken: usize,
    container: Option<Container>,
    /// Blocks that were valid.
    valid: u64,
    /// Looking for the next block since this offset.
    lost_since: Option<u64>,
    /// Where the next block should start if the latest header was right.
    expected_at: u64,
    rescanned: u64,
    done: bool,
}

/// A container that is being read: its decoded content, and how far it was read. All of its
/// blocks have the place of the container.
struct Container {
    raw: Vec<u8>,
    at: usize,
    taken: usize,
    number: u64,
    offset: u64,
}

/// What a step of the reader finds: a checked block, damage with the page that it concerns, or
/// the end of the input.
enum Scanned {
    Block(BlockHeader),
    Damage(Fault, Option<PageId>),
    End,
}

/// The page that a header speaks of.
pub(crate) fn page_id(header: &BlockHeader) -> Option<PageId> {
    (header.kind == kind::PAGE).then_some(PageId {
        session: Uuid(header.session),
        ring: RingId(header.ring_id),
        number: PageNumber(header.page_number),
    })
}

impl<R: Read> BlockReader<R> {
    /// A reader at the start of `input`. Messages call the input `source`, usually a path.
    pub fn new(source: &str, input: R) -> Self {
        Self::at(source, input, 0)
    }

    /// The same of an input that begins at this offset of `source`.
    pub(crate) fn at(source: &str, input: R, offset: u64) -> Self {
        Self {
            window: ByteWindow::new(input, offset),
            source: source.into(),
            block: 0,
            taken: 0,
            container: None,
            valid: 0,
            lost_since: None,
            expected_at: 0,
            rescanned: 0,
            done: false,
        }
    }

    /// Number of valid blocks so far; a container counts as one.
    #[must_use]
    pub const fn valid_blocks(&self) -> u64 {
        self.valid
    }

    /// Bytes of the input that the reader has passed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The next block or damage; `None` at the end. Not an [`Iterator`]: a block borrows.
    pub fn next_item(&mut self) -> Option<Item<'_>> {
        loop {
            if self.container.is_some() {
                match self.step_container() {
                    Scanned::Block(header) => return self.container_block(header),
                    Scanned::Damage(fault, page) => {
                        let container = self.container.take()?;
                        let (block, offset) = (container.number, container.offset);
                        return Some(self.damage_at(block, offset, page, fault));
                    }
                    Scanned::End => self.container = None,
                }
                continue;
            }
            let front = self.window.offset() + self.taken as u64;
            let offset = self.lost_since.unwrap_or(front);
            match self.step() {
                Scanned::End => return None,
                Scanned::Damage(fault, page) => {
                    return Some(self.damage_at(self.block, offset, page, fault));
                }
                Scanned::Block(_) if self.container.is_some() => {}
                Scanned::Block(header) => return self.plain_block(header),
            }
        }
    }

    fn damage_at(
        &self,
        block: u64,
        offset: u64,
        page: Option<PageId>,
        fault: Fault,
    ) -> Item<'static> {
        let source = self.source.clone();
        Item::Damage(Damage {
            source,
            block,
            offset,
            page,
            fault,
        })
    }

    fn plain_block(&self, header: BlockHeader) -> Option<Item<'_>> {
        Some(Item::Block(Block {
            header,
            content: content_of(&header, self.window.bytes())?,
            number: self.block - 1,
            offset: self.window.offset(),
            packed_at: None,
        }))
    }

    /// Moves to the next block of the input, or finds out why there is none.
    fn step(&mut self) -> Scanned {
        self.window.skip(std::mem::take(&mut self.taken));
        if self.done {
            return Scanned::End;
        }
        let there = match self.window.fill(BlockHeader::BYTES) {
            Ok(there) => there,
            Err(error) => return self.stop(Fault::Io(error.to_string())),
        };
        if self.lost_since.is_some() {
            return self.search();
        }
        if there == 0 && self.window.offset() > 0 {
            return Scanned::End;
        }
        match self.header_here(there) {
            Ok(header) => self.content_here(&header),
            Err(fault) => self.lose(fault),
        }
    }

    /// The checked header at the window's front, of which `there` bytes were read. A wrong magic
    /// is explained by what the bytes look like.
    fn header_here(&self, there: usize) -> Result<BlockHeader, Fault> {
        let front = self.window.bytes();
        if there == 0 {
            return Err(Fault::Empty);
        }
        match header_at(front) {
            Err(Fault::Block(BlockFault::Magic { .. })) => {
                let front = &front[..there.min(BlockHeader::BYTES)];
                Err(Fault::WrongMagic {
                    found: front[..front.len().min(8)].to_vec(),
                    looks_like: looks_like(front),
                })
            }
            header => header,
        }
    }

    /// Waits for the content of a checked header and checks it too. A container is decoded here;
    /// its blocks come with the next steps.
    fn content_here(&mut self, header: &BlockHeader) -> Scanned {
        let stored = header.stored_bytes as usize;
        let whole = header.whole_bytes();
        let there = match self.window.fill(whole) {
            Ok(there) => there - BlockHeader::BYTES,
            Err(error) => return self.stop(Fault::Io(error.to_string())),
        };
        if there < stored {
            let fault = Fault::TruncatedContent {
                found: there as u64,
                expected: stored as u64,
            };
            return self.lose_content(fault, header, whole);
        }
        let content = &self.window.bytes()[BlockHeader::BYTES..][..stored];
        if let Err(fault) = block_at::check_content(header, content) {
            return self.lose_content(Fault::Block(fault), header, whole);
        }
        if header.kind == kind::CONTAINER {
            match decode(header.codec, content, header.raw_bytes) {
                Ok(raw) => {
                    self.container = Some(Container {
                        raw,
                        at: 0,
                        taken: 0,
                        number: self.block,
                        offset: self.window.offset(),
                    });
                }
                Err(error) => return self.lose_content(Fault::Codec(error), header, whole),
            }
        }
        self.taken = whole;
        self.block += 1;
        self.valid += 1;
        Scanned::Block(*header)
    }

    /// Ends the reading: nothing more can be had.
    fn stop(&mut self, fault: Fault) -> Scanned {
        self.done = true;
        Scanned::Damage(fault, None)
    }

    /// The header here is wrong: the search goes on one byte after it.
    fn lose(&mut self, fault: Fault) -> Scanned {
        if matches!(fault, Fault::Empty) {
            return self.stop(fault);
        }
        let start = self.window.offset();
        self.lost_since = Some(start);
        self.expected_at = match fault {
            Fault::TruncatedHeader { found, .. } => start + found,
            _ => start,
        };
        self.taken = 1;
        Scanned::Damage(fault, None)
    }

    /// The content here is wrong. Its length may be wrong too (bytes missing in the middle of a
    /// file), so the search begins inside it, unless that was done too often.
    fn lose_content(&mut self, fault: Fault, header: &BlockHeader, whole: usize) -> Scanned {
        let start = self.window.offset();
        self.expected_at = start + whole as u64;
        let budget = start + RESCAN_FREE_BYTES;
        if self.rescanned <= budget {
            self.rescanned += whole as u64;
            self.lost_since = Some(start);
            self.taken = BlockHeader::BYTES;
        } else {
            self.taken = whole;
        }
        let page = page_id(header);
        Scanned::Damage(fault, page)
    }

    /// Goes to the next place where a valid header stands. The window moves from magic to magic,
    /// so that the search takes time linear in the bytes that it passes.
    fn search(&mut self) -> Scanned {
        loop {
            let there = match self.window.fill(BlockHeader::BYTES) {
                Ok(there) => there,
                Err(error) => return self.stop(Fault::Io(error.to_string())),
            };
            if there < BlockHeader::BYTES {
                self.window.skip(there);
                return self.found_again(Scanned::End);
            }
            if let Ok(header) = self.header_here(there) {
                return self.found_again(Scanned::Block(header));
            }
            let bytes = self.window.bytes();
            let next = find_magic(&bytes[1..]).map_or(bytes.len() - 3, |at| at + 1);
            self.window.skip(next);
        }
    }

    /// Ends a search. The bytes that were skipped are reported, unless they are just the damaged
    /// block, which was reported before.
    fn found_again(&mut self, found: Scanned) -> Scanned {
        let since = self.lost_since.take().unwrap_or(0);
        self.block += 1;
        self.done |= matches!(found, Scanned::End);
        let here = self.window.offset();
        let bytes = here - since;
        let only_the_block = here == self.expected_at;
        let at_the_end = self.done && here <= self.expected_at;
        if only_the_block || at_the_end || (self.valid == 0 && self.done) {
            return if self.done { Scanned::End } else { self.step() };
        }
        Scanned::Damage(Fault::Skipped { bytes }, None)
    }

    fn container_block(&self, header: BlockHeader) -> Option<Item<'_>> {
        let container = self.container.as_ref()?;
        let rest = container.raw.get(container.at..)?;
        Some(Item::Block(Block {
            header,
            content: content_of(&header, rest)?,
            number: container.number,
            offset: container.offset,
            packed_at: Some((container.at + BlockHeader::BYTES) as u32),
        }))
    }

    /// Moves to the next block of the container. Its content passed a CRC, so damage in it is
    /// the writer's: the container's rest is given up.
    fn step_container(&mut self) -> Scanned {
        let Some(container) = &mut self.container else {
            return Scanned::End;
        };
        container.at += std::mem::take(&mut container.taken);
        let rest = container.raw.get(container.at..).unwrap_or_default();
        if rest.is_empty() {
            return Scanned::End;
        }
        match inner_block(rest) {
            Ok(header) => {
                container.taken = header.whole_bytes();
                Scanned::Block(header)
            }
            Err((fault, page)) => Scanned::Damage(fault, page),
        }
    }
}

/// The header of the block at the front of `rest`, inside a container. The whole block is
/// checked, header and content.
fn inner_block(rest: &[u8]) -> Result<BlockHeader, (Fault, Option<PageId>)> {
    let header = header_at(rest).map_err(|fault| (fault, None))?;
    let page = page_id(&header);
    if header.kind == kind::CONTAINER {
        return Err((Fault::Nested, None));
    }
    let content = content_of(&header, rest).ok_or((
        Fault::TruncatedContent {
            found: (rest.len() - BlockHeader::BYTES) as u64,
            expected: header.stored_bytes.into(),
        },
        page,
    ))?;
    let checked = block_at::check_content(&header, content);
    checked.map_err(|fault| (Fault::Block(fault), page))?;
    Ok(header)
}

/// The whole checked header at the front of `bytes`.
fn header_at(bytes: &[u8]) -> Result<BlockHeader, Fault> {
    match block_at::header(bytes) {
        Ok(Some(header)) => Ok(header),
        Ok(None) => Err(Fault::TruncatedHeader {
            found: bytes.len() as u64,
            expected: BlockHeader::BYTES as u64,
        }),
        Err(BlockFault::HeaderCrc { stored, computed }) if stored.swap_bytes() == computed => {
            Err(Fault::ForeignEndian)
        }
        Err(fault) => Err(Fault::Block(fault)),
    }
}

/// The content that follows a header at the front of `bytes`. Padding may be missing at the end.
fn content_of<'a>(header: &BlockHeader, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let behind = bytes.get(BlockHeader::BYTES..)?;
    behind.get(..header.stored_bytes as usize)
}

/// Offset of the first magic of a block in `bytes`. `None`: there is none, and the last 3 bytes
/// may be the beginning of one.
fn find_magic(bytes: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from
            + bytes
                .get(from..)?
                .iter()
                .position(|b| *b == BLOCK_MAGIC[0])?;
        let rest = &bytes[at..];
        if rest.len() < 4 {
            return None;
        }
        if rest.starts_with(&BLOCK_MAGIC) {
            return Some(at);
        }
        from = at + 1;
    }
}
