//! The trampolines of one module: code that its enabled patch sites call, made within their reach
//! when first needed, and the targets that it jumps to.
//!
//! One region holds the trampolines, 16 bytes for each site, 128 where instructions were moved, and after them the table of target
//! words that they jump through. Regions lie in objects with an unwind table where there are some
//! ([`super::code_objects`]). Some sites have bytes between which a thread may be. Such a site
//! can call at certain distances only ([`arch::safe_distances`]). All of them use the same
//! distance: a second region, the mirror, repeats the sites' layout there, with a jump to the
//! trampoline (a hop) for each site.
//!
//! ```text
//! lower addresses                                                    higher addresses
//! ┌──────┬──────┬─────┐      ┌────────────┬────────────┬─────┬─────────┐      ┌────────┐
//! │ hop  │ hop  │  …  │      │ trampoline │ trampoline │  …  │ targets │      │ module │
//! └──────┴──────┴─────┘      └────────────┴────────────┴─────┴─────────┘      └────────┘
//!  mirror: all at one distance  16 bytes each, by index        8 bytes each     patch sites
//!  from their sites
//! ```
//!
//! Pages of code are filled when a site on them is first enabled. The targets are data and may
//! change at any time: an enabled site gets another stub by one store, without a write into code.

use std::io;
use std::ops::Range;

use super::PAGE_BYTES;
use super::code_objects::CodeObjects;
use super::code_region::{Region, page_bytes};
use super::places::{LOWEST, near};
use crate::arch::{
    self, HOP_BYTES, MOVED_ENTRY, MOVED_TRAMPOLINE_BYTES, MovedCode, TRAMPOLINE_BYTES,
};
use crate::sites::{Module, maps};

/// Code that a patch site calls through its trampoline. The crate's documentation has the rules for
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target(u64);

impl Target {
    /// The target at `address`.
    ///
    /// # Safety
    /// At `address` there must be code that stays there while the process lives and keeps to the
    /// rules for targets in the crate's documentation (patch invariant 8).
    #[must_use]
    pub const unsafe fn new(address: u64) -> Self {
        Self(address)
    }

    /// Address of the first instruction.
    pub(crate) fn address(self) -> u64 {
        self.0
    }
}

/// The call of an enabled patch site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SiteCall {
    /// Address after the call, from which its distance counts.
    pub(crate) end: u64,
    /// The site's index in its module.
    pub(crate) index: usize,
}

/// The trampolines of a module and their targets.
#[derive(Debug)]
pub(crate) struct Trampolines {
    region: Region,
    kind: Kind,
    /// Address of the table of target words.
    targets_at: u64,
    mirror: Option<Mirror>,
}

/// Trampolines with instructions of their sites, for who puts the jumps there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MovedTrampolines {
    /// Address of the first.
    pub(crate) at: u64,
    pub(crate) count: usize,
}

/// What sites do when they are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// They call.
    Called,
    /// They jump, and their first instructions are in the trampoline.
    Moved,
}

impl Kind {
    fn of(module: &Module) -> Self {
        match module.moved.is_empty() {
            true => Self::Called,
            false => Self::Moved,
        }
    }

    /// Bytes of a trampoline.
    const fn bytes(self) -> usize {
        match self {
            Self::Called => TRAMPOLINE_BYTES,
            Self::Moved => MOVED_TRAMPOLINE_BYTES,
        }
    }

    /// Where sites enter it.
    const fn entry(self) -> usize {
        match self {
            Self::Called => 0,
            Self::Moved => MOVED_ENTRY,
        }
    }
}

#[derive(Debug)]
struct Mirror {
    region: Region,
    /// Distance of every call into the mirror, in bytes.
    distance: i32,
    /// The end of the first call.
    first_end: u64,
    /// Every call that may lead into the mirror, sorted.
    calls: Vec<MirroredCall>,
}

/// A call in little room: a module may have hundreds of thousands.
#[derive(Debug, Clone, Copy)]
struct MirroredCall {
    /// Distance of its end from that of the first call.
    offset: u32,
    index: u32,
}

impl Trampolines {
    /// Reserves memory for the trampolines of all sites of `module`.
    pub(crate) fn reserve(module: &Module, objects: &CodeObjects) -> io::Result<Self> {
        let page = page_bytes();
        let count = module.sites.len() as u64;
        let kind = Kind::of(module);
        let code = (count * kind.bytes() as u64).next_multiple_of(page);
        let targets = (count * 8).next_multiple_of(page);
        let known = match kind {
            Kind::Called => objects.for_trampolines(&module.range(), code + targets),
            Kind::Moved => objects.for_moved(&module.range(), code + targets),
        };
        let mut region = match known {
            Some(region) => region,
            None => {
                let places = near(&maps::read()?, &module.range(), code + targets);
                let mut regions = places.iter().filter_map(Region::reserve);
                let none = || io::Error::other("no free addresses within reach of its calls");
                regions.next().ok_or_else(none)?
            }
        };
        let first = usize::try_from(code / page).unwrap_or(usize::MAX);
        let last = usize::try_from((code + targets) / page).unwrap_or(usize::MAX);
        region.make_data(&(first..last))?;
        let targets_at = region.start() + code;
        Ok(Self {
            region,
            kind,
            targets_at,
            mirror: None,
        })
    }

    /// Sets the address that the trampoline of the site with this index jumps to.
    pub(crate) fn set_target(&self, index: usize, target: u64) {
        self.region.store(self.targets_at, index, target);
    }

    /// Makes the trampolines of the sites with these sorted indexes.
    pub(crate) fn make(&mut self, indexes: &[usize], module: &Module) -> io::Result<()> {
        let bytes_each = self.kind.bytes();
        let on_page = PAGE_BYTES / bytes_each;
        let first = module.site_ids().start;
        let mut pages: Vec<_> = indexes.iter().map(|index| index / on_page).collect();
        pages.dedup();
        let (start, targets_at) = (self.region.start(), self.targets_at);
        self.region.fill(&pages, |page_number, bytes| {
            let places = bytes.chunks_exact_mut(bytes_each);
            for (index, place) in (page_number * on_page..).zip(places) {
                let number = first.wrapping_add(u32::try_from(index).unwrap_or(u32::MAX));
                let at = start + (index * bytes_each) as u64;
                let target_at = targets_at + index as u64 * 8;
                let written = match moved(module, index) {
                    Some(moved) => {
                        arch::write_moved_trampoline(place, at, number, target_at, moved)
                    }
                    None => arch::write_trampoline(place, at, number, target_at),
                };
                written.ok_or_else(out_of_reach)?;
            }
            Ok(())
        })
    }

    /// Address of the first.
    pub(crate) fn start(&self) -> u64 {
        self.region.start()
    }

    /// Address at which the site with this index enters its trampoline.
    pub(crate) fn address_of(&self, index: usize) -> u64 {
        self.region.start() + (index * self.kind.bytes() + self.kind.entry()) as u64
    }

    /// Makes the hops for the calls of `wanted`. Returns the mirror's distance. `all` are the calls
    /// that the mirror must have room for; both are sorted.
    pub(crate) fn make_hops(
        &mut self,
        all: impl Iterator<Item = SiteCall>,
        wanted: &[SiteCall],
        objects: &CodeObjects,
    ) -> io::Result<i32> {
        let start = self.region.start();
        let mirror = match &mut self.mirror {
            Some(mirror) => mirror,
            None => self.mirror.insert(Mirror::reserve(all, objects)?),
        };
        mirror.fill(wanted, start)
    }
}

impl Mirror {
    fn reserve(all: impl Iterator<Item = SiteCall>, objects: &CodeObjects) -> io::Result<Self> {
        let mut all = all.peekable();
        let first = *all.peek().ok_or_else(out_of_reach)?;
        let mut last = first;
        let calls = all.map(|call| {
            last = call;
            Some(MirroredCall {
                offset: call.end.checked_sub(first.end)?.try_into().ok()?,
                index: u32::try_from(call.index).ok()?,
            })
        });
        let calls: Option<Vec<_>> = calls.collect();
        let calls = calls.ok_or_else(out_of_reach)?;
        let page = page_bytes();
        let place = |distance: i32| {
            let start = first.end.checked_add_signed(distance.into())? / page * page;
            let end = last.end.checked_add_signed(distance.into())? + HOP_BYTES as u64;
            (start >= LOWEST).then(|| start..end.next_multiple_of(page))
        };
        let region = |range: &Range<u64>| {
            let known = objects.for_hops(range);
            known.or_else(|| Region::reserve(range))
        };
        let mut reserved = arch::safe_distances()
            .filter_map(|distance| Some((distance, region(&place(distance)?)?)));
        let (distance, region) = reserved.next().ok_or_else(|| {
            io::Error::other(
                "no free addresses at the distances that are safe for threads inside its sites",
            )
        })?;
        Ok(Self {
            region,
            distance,
            first_end: first.end,
            calls,
        })
    }

    fn fill(&mut self, wanted: &[SiteCall], trampolines_at: u64) -> io::Result<i32> {
        let (page, start) = (page_bytes(), self.region.start());
        let hop_at = |end: u64| end.wrapping_add_signed(self.distance.into());
        let hops = wanted.iter().map(|call| hop_at(call.end));
        // A hop may reach into the next page.
        let pages = hops.flat_map(|at| [at, at + HOP_BYTES as u64 - 1]);
        let mut pages: Vec<_> = pages
            .filter_map(|at| usize::try_from((at - start) / page).ok())
            .collect();
        pages.dedup();
        let (calls, first_end) = (&self.calls, self.first_end);
        let hop_of = |call: &MirroredCall| hop_at(first_end + u64::from(call.offset));
        self.region.fill(&pages, |page_number, bytes| {
            let from = start + page_number as u64 * page;
            // Every hop that touches the page, also one that begins on the page before.
            let first = calls.partition_point(|call| hop_of(call) + (HOP_BYTES as u64) <= from);
            let touching = calls[first..]
                .iter()
                .map(|call| (hop_of(call), call.index as usize));
            for (at, index) in touching.take_while(|(at, _)| *at < from + page) {
                let trampoline_at = trampolines_at + (index * TRAMPOLINE_BYTES) as u64;
                let hop = arch::write_hop(at, trampoline_at).ok_or_else(out_of_reach)?;
                for (at, byte) in (at..).zip(hop) {
                    let place = at
                        .checked_sub(from)
                        .and_then(|offset| usize::try_from(offset).ok());
                    if let Some(place) = place.and_then(|offset| bytes.get_mut(offset)) {
                        *place = byte;
                    }
                }
            }
            Ok(())
        })?;
        Ok(self.distance)
    }
}

/// The instructions that are moved for the site with this index, and where they stand.
fn moved(module: &Module, index: usize) -> Option<(&MovedCode, u64)> {
    let code = module.moved.get(index)?;
    Some((code, module.sites.get(index)?.address))
}

fn out_of_reach() -> io::Error {
    io::Error::other("its trampolines are out of reach")
}
