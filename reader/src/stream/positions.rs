//! Positions of what is on its way to a collector: in rings, and in files that wait on disk.

use ringmark_format::block::{SEALED, kind};
use ringmark_format::block_at::BlockAt;
use ringmark_format::page::PageHeader;
use zerocopy::FromBytes;

/// A place in a session's spill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct SpillPosition {
    /// Number of the part.
    pub(super) part: u64,
    /// A byte in it.
    pub(super) byte: u64,
}

/// A page of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotPage {
    pub(super) slot: u32,
    pub(super) page: u64,
}

/// The sealed page in a block, if there is one.
pub(super) fn page_of(block: &BlockAt<'_>) -> Option<SlotPage> {
    let header = &block.header;
    let is_sealed = header.kind == kind::PAGE && header.flags & SEALED != 0;
    let (page, _) = PageHeader::read_from_prefix(block.stored()).ok()?;
    is_sealed.then_some(SlotPage {
        slot: page.slot,
        page: header.page_number,
    })
}
