//! A reservation in a ring that a thread has, in a page that the helper thread may not have come to.

use ringmark_format::TypeId;
use ringmark_format::counters::Cause;
use ringmark_ring::{Reservation, Writer};

use super::core::Core;
use super::memory;

/// A record that is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) type_id: TypeId,
    pub(super) words: u64,
    /// Its tick, which a wait does not change.
    pub(super) ticks: u64,
}

/// As [`Writer::reserve_or_decide`]; a page without memory gets it now.
///
/// # Errors
/// As there, but that an event for which there is no memory is counted as lost.
pub(super) fn reserve(
    core: &'static Core,
    writer: &'static Writer,
    wanted: &Wanted,
) -> Result<Reservation<'static>, Cause> {
    let base = |now| core.page_base(now);
    let reserve = || writer.reserve_or_decide(wanted.type_id, wanted.words, wanted.ticks, &base);
    let mut reserved = reserve();
    if let Err(Cause::NoMemory) = reserved
        && memory::allocate_next_page(core, writer)
    {
        reserved = reserve();
    }
    if let Err(Cause::NoMemory) = reserved {
        writer.lose(Cause::NoMemory);
    }
    reserved
}
