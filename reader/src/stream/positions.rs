//! Positions of what is sent to a collector: in rings, and in files that wait on disk.

use ringmark_format::block::{PageState, kind};
use ringmark_format::block_at::BlockAt;
use ringmark_format::page::PageHeader;
use zerocopy::FromBytes;

/// A position in a session's spill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SpillPosition {
    /// Number of the file.
    pub part: u64,
    /// Offset in that file.
    pub byte: u64,
}

/// A sealed page, by slot and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotPage {
    pub(super) slot: u32,
    pub(super) page: u64,
}

/// The sealed page that a block holds; `None`: it holds an open page or no page.
pub(super) fn page_of(block: &BlockAt<'_>) -> Option<SlotPage> {
    let header = &block.header;
    let is_sealed =
        header.kind == kind::PAGE && PageState::of_flags(header.flags) == PageState::Sealed;
    let (page, _) = PageHeader::read_from_prefix(block.stored()).ok()?;
    is_sealed.then_some(SlotPage {
        slot: page.slot,
        page: header.page_number,
    })
}
