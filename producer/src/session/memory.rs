//! How much memory a session may take, and who gets it.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::fs::File;
use std::path::Path;

use ringmark_format::open_span::STACK_BYTES;
use ringmark_format::page::{PAGE_BYTES_MIN, PAGES_MIN};
use ringmark_format::session::SessionState;
use ringmark_format::slot::{Slot, state};
use ringmark_ring::ring_file::SYSTEM_PAGE;
use ringmark_ring::{SlotGeometry, Writer, mapping, room};

use super::core::Core;
use super::layout::Regions;

/// Smallest ring.
pub(super) const RING_BYTES_MIN: u64 = (PAGE_BYTES_MIN * PAGES_MIN) as u64;

/// Bytes that a session in `dir` may take: see [`room::of_session`].
pub(crate) fn cap(dir: &Path, wanted: u64, groups: &str) -> (u64, Option<&'static str>) {
    room::of_session(
        dir,
        wanted,
        Regions::for_cap(wanted).end + SYSTEM_PAGE,
        groups,
    )
}

/// Bytes of the file that were handed out.
pub(super) fn taken(core: &Core) -> u64 {
    core.state_word(offset_of!(SessionState, allocated_bytes))
        .load(Relaxed)
}

/// Takes `bytes` of the file; `None` beyond the cap or where the filesystem is full.
pub(super) fn take(core: &Core, bytes: u64) -> Option<u64> {
    take_some(core, bytes, bytes)
}

/// As [`take`], but the first `now` of the bytes alone get memory.
fn take_some(core: &Core, bytes: u64, now: u64) -> Option<u64> {
    let word = core.state_word(offset_of!(SessionState, allocated_bytes));
    let mut offset = word.load(Relaxed);
    loop {
        let end = offset.checked_add(bytes)?;
        if end > core.cap {
            return None;
        }
        match word.compare_exchange_weak(offset, end, Relaxed, Relaxed) {
            Ok(_) => break,
            Err(now) => offset = now,
        }
    }
    // A failed allocation leaves a hole in the file that is never touched.
    allocate(core, offset, now).then_some(offset)
}

/// Allocates the system page that an entry of the ring directory begins, unless it lies in one with the entry
/// before it. `false`: there is no memory.
pub(super) fn allocate_entry(core: &Core, index: u32) -> bool {
    let entry = u64::from(index) * Slot::BYTES as u64;
    if !entry.is_multiple_of(SYSTEM_PAGE) {
        return true;
    }
    let directory = core.file.geometry().header.directory_offset;
    allocate(core, directory + entry, SYSTEM_PAGE)
}

/// Bytes of a ring for which there is memory before its owner records, or one page: got in less time than
/// the owner would notice.
const FIRST_BYTES: u64 = 64 << 10;

/// Pages of a new ring for which memory is got at once.
pub(super) fn first_pages(core: &Core, ring: SlotGeometry) -> u64 {
    let pages = u64::from(ring.pages);
    match core.options.control {
        true => (FIRST_BYTES / u64::from(ring.page_bytes)).clamp(1, pages),
        false => pages,
    }
}

/// Gets memory for one page of a ring that has it for all pages before. `false`: there is none.
fn allocate_page(core: &Core, writer: &Writer, page: u64, ring: SlotGeometry) -> bool {
    let bytes = u64::from(ring.page_bytes);
    let is_there = allocate(core, ring.pages_offset + page * bytes, bytes);
    if is_there {
        writer.has_memory_up_to(page, ring);
    }
    is_there
}

/// Gets memory for the rest of the calling thread's ring, as far as there is some.
pub(super) fn allocate_ring(core: &Core, writer: &Writer) {
    if let Some((_, ring)) = writer.next_page() {
        let mut pages = writer.pages_without_memory(ring);
        let _ = pages.all(|page| allocate_page(core, writer, page, ring));
    }
}

/// Gets memory for the page that the calling thread needs next, if the helper thread was not yet there.
/// `false`: there is none, and for a while nobody asks again.
pub(super) fn allocate_next_page(core: &Core, writer: &Writer) -> bool {
    /// Events that are lost before one asks again.
    const NOT_ASKED: u64 = 64;
    static LEFT: AtomicU64 = AtomicU64::new(0);
    let Some((page, ring)) = writer.next_page() else {
        return false;
    };
    let one_less = |left: u64| left.checked_sub(1);
    if LEFT.fetch_update(Relaxed, Relaxed, one_less).is_ok() {
        return false;
    }
    let is_there = allocate_page(core, writer, page, ring);
    if !is_there {
        LEFT.store(NOT_ASKED, Relaxed);
    }
    is_there
}

/// Gets memory for the pages that have none yet, of rings that have an owner or are ready for one. A page at
/// a time: a thread that maps memory meanwhile waits for one page, not for a ring. Ends early, with `false`,
/// when `is_wanted` elsewhere.
pub(super) fn allocate_rest(core: &Core, is_wanted: impl Fn() -> bool) -> bool {
    let is_used = |index: &u32| {
        let slot = core.file.slot(*index);
        slot.is_some_and(|slot| matches!(slot.state(), state::ACTIVE | state::WARM))
    };
    for index in (0..core.file.slots_used()).filter(is_used) {
        let (Some(slot), Some(writer)) = (core.file.slot(index), core.wiped.writer(index)) else {
            continue;
        };
        let ring = slot.geometry();
        for page in writer.pages_without_memory(ring) {
            if is_wanted() {
                return false;
            }
            if !allocate_page(core, writer, page, ring) {
                break;
            }
        }
    }
    true
}

/// Through the map: programs close descriptors that they do not know, and then the number means
/// another file. Kernels before Linux 5.14 need the descriptor: there it must still be ours.
fn allocate(core: &Core, offset: u64, bytes: u64) -> bool {
    match core.file.map().allocate(offset, bytes) {
        Ok(()) => true,
        Err(rustix::io::Errno::INVAL) => {
            let file = core.file.file();
            inode(file).is_some_and(|inode| inode == core.inode)
                && mapping::allocate(file, offset, bytes).is_ok()
        }
        Err(_) => false,
    }
}

/// Identity of a file: device and inode.
pub(super) fn inode(file: &File) -> Option<(u64, u64)> {
    let about = rustix::fs::fstat(file).ok()?;
    Some((about.st_dev, about.st_ino))
}

/// Bytes of a session of `cap` bytes in which rings have the wanted size: half of it, and the stacks in
/// front of these rings.
pub(super) fn half(cap: u64, ring_bytes: u64) -> u64 {
    let half = cap / 2;
    half + half / ring_bytes.max(1) * STACK_BYTES
}

/// Whether a ring may be made ahead of time: only while another one of the wanted size fits as
/// well, so that no thread gets a smaller ring for the sake of one that is not used.
pub(super) fn has_room_ahead(core: &Core) -> bool {
    let taken = core
        .state_word(offset_of!(SessionState, allocated_bytes))
        .load(Relaxed);
    let ring = u64::from(core.options.ring_bytes) + STACK_BYTES;
    taken.saturating_add(2 * ring) <= core.half
}

/// Gives the memory of rings that wait for threads back, when the process ends: a session that stays
/// for a reader takes no more than was used.
pub(super) fn give_warm_rings_back(core: &Core) {
    for slot in (0..core.file.slots_used()).filter_map(|index| core.file.slot(index)) {
        if slot.claim(state::WARM) {
            let ring = slot.geometry();
            core.file
                .map()
                .give_back(ring.pages_offset, ring.ring_bytes());
            core.file.map().give_back(slot.stack_offset(), STACK_BYTES);
            slot.publish_state(state::FREE);
        }
    }
}

/// Takes a ring, and in front of it a stack of open spans, whose offset comes second: a ring of the
/// wanted size while half of the session is free, then smaller and smaller ones, and the smallest in
/// the last quarter, so that a late thread gets little rather than nothing.
///
/// The stack and the first pages get memory, where there is a helper thread that gets it for the others
/// ([`allocate_rest`]), and else all of it.
pub(super) fn take_ring(core: &Core) -> Option<(SlotGeometry, u64)> {
    let taken = core
        .state_word(offset_of!(SessionState, allocated_bytes))
        .load(Relaxed);
    let left = core.cap.saturating_sub(taken);
    let wanted = u64::from(core.options.ring_bytes);
    let mut bytes = if taken.saturating_add(wanted + STACK_BYTES) <= core.half {
        wanted
    } else {
        shrunk(wanted, left, core.cap / 4)
    };
    while bytes >= RING_BYTES_MIN {
        let geometry_at = |pages| geometry(pages, bytes, core.options.page_bytes);
        let first = first_pages(core, geometry_at(0)) * u64::from(geometry_at(0).page_bytes);
        if let Some(stack) = take_some(core, STACK_BYTES + bytes, STACK_BYTES + first) {
            return Some((geometry_at(stack + STACK_BYTES), stack));
        }
        bytes = floor_to_page(bytes / 2);
    }
    None
}

/// Size of a ring where `left` bytes are left, of which `last` are for the smallest.
fn shrunk(wanted: u64, left: u64, last: u64) -> u64 {
    let share = left.saturating_sub(last) / 16;
    floor_to_page(wanted.min(share)).max(RING_BYTES_MIN)
}

const fn floor_to_page(bytes: u64) -> u64 {
    bytes & !(PAGE_BYTES_MIN as u64 - 1)
}

/// Pages of the wanted size, or smaller ones so that the ring has at least four, or two.
fn geometry(offset: u64, ring_bytes: u64, page_bytes: u32) -> SlotGeometry {
    let mut page = page_bytes;
    while page > PAGE_BYTES_MIN
        && (ring_bytes / u64::from(page) < 4 || !ring_bytes.is_multiple_of(page.into()))
    {
        page /= 2;
    }
    SlotGeometry {
        pages_offset: offset,
        page_bytes: page,
        pages: (ring_bytes / u64::from(page)) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::{SlotGeometry, geometry, shrunk};

    #[test]
    fn small_rings_get_small_pages() {
        let page = |ring| {
            let SlotGeometry {
                page_bytes, pages, ..
            } = geometry(0, ring, 64 << 10);
            assert_eq!(u64::from(page_bytes) * u64::from(pages), ring);
            (page_bytes, pages)
        };
        assert_eq!(page(256 << 10), (64 << 10, 4));
        assert_eq!(page(64 << 10), (16 << 10, 4));
        assert_eq!(page(8 << 10), (4 << 10, 2));
        assert_eq!(page(12 << 10), (4 << 10, 3));
    }

    #[test]
    fn late_rings_shrink() {
        assert_eq!(shrunk(256 << 10, 12 << 20, 4 << 20), 256 << 10);
        assert_eq!(shrunk(256 << 10, 5 << 20, 4 << 20), 64 << 10);
        assert_eq!(shrunk(256 << 10, 4 << 20, 4 << 20), 8 << 10);
        assert_eq!(shrunk(256 << 10, 10 << 10, 4 << 20), 8 << 10);
    }
}
