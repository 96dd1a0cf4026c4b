//! An input to valid blocks and items of damage. Not seekable inputs will do.

use std::io::Read;
use std::sync::Arc;

use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, CONTENT_BYTES_MAX, codec, kind};
use ringmark_format::codec::{crc32, decode};
use ringmark_format::{PageNumber, RingId, Uuid, align8};
use zerocopy::{FromBytes, IntoBytes};

use crate::damage::{Damage, Fault, PageId, looks_like};
use crate::input::Window;

/// Bytes that may be looked at again behind a wrong content CRC, beyond what the input has: the
/// bound that keeps a hostile input linear.
const RESCAN_FREE_BYTES: u64 = 64 << 20;

/// A block whose header and content passed their checks.
#[derive(Debug)]
pub struct Block<'a> {
    /// The header; lengths and codec are those of the content as given here.
    pub header: BlockHeader,
    /// The content before its codec.
    pub content: &'a [u8],
    /// Number of the block in the input; blocks of a container share the container's.
    pub number: u64,
    /// Offset in the input; blocks of a container share the container's.
    pub offset: u64,
}

/// What an input gives next.
#[derive(Debug)]
pub enum Item<'a> {
    /// A valid block of any kind but CONTAINER.
    Block(Block<'a>),
    /// Something that could not be used.
    Damage(Damage),
}

/// Reads blocks; continues behind damage at the next block.
pub struct BlockReader<R> {
    window: Window<R>,
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

struct Container {
    raw: Vec<u8>,
    at: usize,
    taken: usize,
    number: u64,
    offset: u64,
}

enum Found {
    Block,
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

fn header_crc(header: &BlockHeader) -> u32 {
    crc32(&header.as_bytes()[..BlockHeader::BYTES - 4])
}

/// Checks everything a header says about itself.
fn check_header(header: &BlockHeader) -> Result<(), Fault> {
    let computed = header_crc(header);
    let stored = header.header_crc;
    if stored != computed {
        if stored.swap_bytes() == computed {
            return Err(Fault::ForeignEndian);
        }
        return Err(Fault::HeaderCrc { stored, computed });
    }
    for (what, found) in [
        ("stored size of the content", header.stored_bytes),
        ("size of the content", header.raw_bytes),
    ] {
        if found > CONTENT_BYTES_MAX {
            return Err(Fault::Value {
                what,
                found: found.into(),
                expected: CONTENT_BYTES_MAX.into(),
            });
        }
    }
    if header.codec == codec::NONE && header.raw_bytes != header.stored_bytes {
        return Err(Fault::Value {
            what: "size of the content",
            found: header.raw_bytes.into(),
            expected: header.stored_bytes.into(),
        });
    }
    Ok(())
}

fn check_content(header: &BlockHeader, content: &[u8]) -> Result<(), Fault> {
    let computed = crc32(content);
    let stored = header.content_crc;
    if stored != computed {
        return Err(Fault::ContentCrc { stored, computed });
    }
    if header.codec != codec::NONE && header.kind != kind::CONTAINER {
        return Err(Fault::Value {
            what: "codec of a block that is no container",
            found: header.codec.into(),
            expected: codec::NONE.into(),
        });
    }
    Ok(())
}

impl<R: Read> BlockReader<R> {
    /// Reads `input`, which messages call `source`.
    pub fn new(source: &str, input: R) -> Self {
        Self {
            window: Window::new(input),
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

    /// Valid blocks so far; a container counts as one.
    #[must_use]
    pub const fn valid_blocks(&self) -> u64 {
        self.valid
    }

    /// Bytes of the input that have been passed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.window.offset()
    }

    /// The next block or damage; `None` at the end. Not an [`Iterator`]: a block borrows.
    pub fn next_item(&mut self) -> Option<Item<'_>> {
        loop {
            if self.container.is_some() {
                match self.step_container() {
                    Found::Block => return self.container_block(),
                    Found::Damage(fault, page) => {
                        let container = self.container.take()?;
                        let (block, offset) = (container.number, container.offset);
                        return Some(self.damage_at(block, offset, page, fault));
                    }
                    Found::End => self.container = None,
                }
                continue;
            }
            let offset = self.window.offset() + self.taken as u64;
            match self.step() {
                Found::End => return None,
                Found::Damage(fault, page) => {
                    return Some(self.damage_at(self.block, offset, page, fault));
                }
                Found::Block if self.container.is_some() => {}
                Found::Block => return self.plain_block(),
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

    fn plain_block(&self) -> Option<Item<'_>> {
        let (header, rest) = BlockHeader::read_from_prefix(self.window.bytes()).ok()?;
        Some(Item::Block(Block {
            header,
            content: rest.get(..header.stored_bytes as usize)?,
            number: self.block - 1,
            offset: self.window.offset(),
        }))
    }

    /// Moves to the next block of the input, or finds out why there is none.
    fn step(&mut self) -> Found {
        self.window.skip(std::mem::take(&mut self.taken));
        if self.done {
            return Found::End;
        }
        let there = match self.window.fill(BlockHeader::BYTES) {
            Ok(there) => there,
            Err(error) => return self.stop(Fault::Io(error.to_string())),
        };
        if self.lost_since.is_some() {
            return self.search();
        }
        if there == 0 && self.window.offset() > 0 {
            return Found::End;
        }
        match self.header_here(there) {
            Ok(header) => self.content_here(&header),
            Err(fault) => self.lose(fault),
        }
    }

    /// The checked header at the window's front.
    fn header_here(&self, there: usize) -> Result<BlockHeader, Fault> {
        let front = self.window.bytes();
        if there == 0 {
            return Err(Fault::Empty);
        }
        if !front.starts_with(&BLOCK_MAGIC[..there.min(4)]) {
            let front = &front[..there.min(BlockHeader::BYTES)];
            return Err(Fault::WrongMagic {
                found: front[..front.len().min(8)].to_vec(),
                looks_like: looks_like(front),
            });
        }
        let Ok((header, _)) = BlockHeader::read_from_prefix(front) else {
            return Err(Fault::TruncatedHeader {
                found: there as u64,
                expected: BlockHeader::BYTES as u64,
            });
        };
        check_header(&header).map(|()| header)
    }

    fn content_here(&mut self, header: &BlockHeader) -> Found {
        let stored = header.stored_bytes as usize;
        let whole = BlockHeader::BYTES + align8(stored);
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
        if let Err(fault) = check_content(header, content) {
            return self.lose_content(fault, header, whole);
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
        Found::Block
    }

    /// Ends the reading: nothing more can be had.
    fn stop(&mut self, fault: Fault) -> Found {
        self.done = true;
        Found::Damage(fault, None)
    }

    /// The header here is wrong: search from behind its magic on.
    fn lose(&mut self, fault: Fault) -> Found {
        if matches!(fault, Fault::Empty) {
            return self.stop(fault);
        }
        self.lost_since = Some(self.window.offset());
        self.expected_at = self.window.offset();
        self.taken = 1;
        Found::Damage(fault, None)
    }

    /// The content here is wrong. Its length may be wrong too (bytes missing in the middle of a
    /// file), so the search begins inside it, unless that was done too often.
    fn lose_content(&mut self, fault: Fault, header: &BlockHeader, whole: usize) -> Found {
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
        Found::Damage(fault, page)
    }

    /// Goes to the next place where a valid header stands.
    fn search(&mut self) -> Found {
        loop {
            let there = match self.window.fill(BlockHeader::BYTES) {
                Ok(there) => there,
                Err(error) => return self.stop(Fault::Io(error.to_string())),
            };
            if there < BlockHeader::BYTES {
                self.window.skip(there);
                return self.found_again(Found::End);
            }
            if self.header_here(there).is_ok() {
                return self.found_again(Found::Block);
            }
            let bytes = self.window.bytes();
            let next = find_magic(&bytes[1..]).map_or(bytes.len() - 3, |at| at + 1);
            self.window.skip(next);
        }
    }

    /// Says how much was skipped, if that is not just the damaged block.
    fn found_again(&mut self, found: Found) -> Found {
        let since = self.lost_since.take().unwrap_or(0);
        self.block += 1;
        self.done |= matches!(found, Found::End);
        let here = self.window.offset();
        let bytes = here - since;
        let only_the_block = here == self.expected_at;
        let at_the_end = self.done && here <= self.expected_at;
        if only_the_block || at_the_end || (self.valid == 0 && self.done) {
            return if self.done { Found::End } else { self.step() };
        }
        Found::Damage(Fault::Skipped { bytes }, None)
    }

    fn container_block(&self) -> Option<Item<'_>> {
        let container = self.container.as_ref()?;
        let rest = container.raw.get(container.at..)?;
        let (header, rest) = BlockHeader::read_from_prefix(rest).ok()?;
        Some(Item::Block(Block {
            header,
            content: rest.get(..header.stored_bytes as usize)?,
            number: container.number,
            offset: container.offset,
        }))
    }

    /// Moves to the next block of the container. Its content passed a CRC, so damage in it is
    /// the writer's: the container's rest is given up.
    fn step_container(&mut self) -> Found {
        let Some(container) = &mut self.container else {
            return Found::End;
        };
        container.at += std::mem::take(&mut container.taken);
        let rest = container.raw.get(container.at..).unwrap_or_default();
        if rest.is_empty() {
            return Found::End;
        }
        match inner_block(rest) {
            Ok(whole) => {
                container.taken = whole;
                Found::Block
            }
            Err((fault, page)) => Found::Damage(fault, page),
        }
    }
}

/// Size of the checked block at the front of `rest`.
fn inner_block(rest: &[u8]) -> Result<usize, (Fault, Option<PageId>)> {
    let Ok((header, after)) = BlockHeader::read_from_prefix(rest) else {
        let fault = Fault::TruncatedHeader {
            found: rest.len() as u64,
            expected: BlockHeader::BYTES as u64,
        };
        return Err((fault, None));
    };
    if header.magic != BLOCK_MAGIC {
        let fault = Fault::WrongMagic {
            found: header.magic.to_vec(),
            looks_like: None,
        };
        return Err((fault, None));
    }
    check_header(&header).map_err(|fault| (fault, None))?;
    let page = page_id(&header);
    if header.kind == kind::CONTAINER {
        return Err((Fault::Nested, None));
    }
    let stored = header.stored_bytes as usize;
    let content = after.get(..stored).ok_or((
        Fault::TruncatedContent {
            found: after.len() as u64,
            expected: stored as u64,
        },
        page,
    ))?;
    check_content(&header, content).map_err(|fault| (fault, page))?;
    Ok(BlockHeader::BYTES + align8(stored))
}

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
