//! Pads for the sites of one module: near enough to be called, made when first needed; and what
//! they jump to.
//!
//! One region holds the pads, 16 bytes for each site, and after them the slots that say where each
//! pad jumps. Sites between whose bytes threads may rest can call at certain distances only
//! ([`arch::safe_distances`]); they all use the same one, so a second region, the mirror, repeats
//! their layout at that distance, with a jump to the pad in each place.

use std::io;
use std::ops::Range;

use super::PAGE_BYTES;
use super::code_region::{Region, page_bytes};
use crate::arch::{self, HOP_BYTES, PAD_BYTES, REACH_BYTES};
use crate::sites::{Module, maps};

/// Nothing is put below this address.
const LOWEST: u64 = 1 << 20;

/// An address that sites call. What it must do is in the crate's documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target(u64);

impl Target {
    /// # Safety
    /// At `address` there must be code, for as long as the process lives, that keeps to the
    /// rules for targets in the crate's documentation.
    #[must_use]
    pub const unsafe fn new(address: u64) -> Self {
        Self(address)
    }

    pub(crate) fn address(self) -> u64 {
        self.0
    }
}

/// The call of a site, where it ends, and the site's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) end: u64,
    pub(crate) index: usize,
}

/// The pads of a module.
#[derive(Debug)]
pub(crate) struct Room {
    region: Region,
    slots_at: u64,
    mirror: Option<Mirror>,
}

#[derive(Debug)]
struct Mirror {
    region: Region,
    /// The distance of every call into it.
    distance: i32,
    /// Every call that may lead into it.
    calls: Vec<Call>,
}

impl Room {
    /// Room for all sites of `module`.
    pub(crate) fn reserve(module: &Module) -> io::Result<Self> {
        let page = page_bytes();
        let count = module.sites.len() as u64;
        let pads = (count * PAD_BYTES as u64).next_multiple_of(page);
        let slots = (count * 8).next_multiple_of(page);
        let lines = maps::read()?;
        let places = near(&lines, &module.range(), pads + slots);
        let mut region = places
            .iter()
            .find_map(Region::reserve)
            .ok_or_else(|| io::Error::other("no free addresses within reach of its calls"))?;
        let first = usize::try_from(pads / page).unwrap_or(usize::MAX);
        let last = usize::try_from((pads + slots) / page).unwrap_or(usize::MAX);
        region.make_data(&(first..last))?;
        let slots_at = region.start() + pads;
        Ok(Self {
            region,
            slots_at,
            mirror: None,
        })
    }

    /// Says where the pad of the site with this index jumps from now on.
    pub(crate) fn set_target(&self, index: usize, target: u64) {
        self.region.store(self.slots_at, index, target);
    }

    /// Makes the pads of the sites with these sorted indexes; `first` is the number of the
    /// module's first site.
    pub(crate) fn make_pads(&mut self, indexes: &[usize], first: u32) -> io::Result<()> {
        let page = PAGE_BYTES;
        let on_page = page / PAD_BYTES;
        let mut pages: Vec<_> = indexes.iter().map(|index| index / on_page).collect();
        pages.dedup();
        let (start, slots_at) = (self.region.start(), self.slots_at);
        self.region.fill(&pages, |page_number, bytes| {
            for (index, pad) in (page_number * on_page..).zip(bytes.chunks_exact_mut(PAD_BYTES)) {
                let number = first.wrapping_add(u32::try_from(index).unwrap_or(u32::MAX));
                let at = start + (index * PAD_BYTES) as u64;
                arch::write_pad(pad, at, number, slots_at + index as u64 * 8)
                    .ok_or_else(out_of_reach)?;
            }
            Ok(())
        })
    }

    /// Address of the pad of the site with this index.
    pub(crate) fn pad_at(&self, index: usize) -> u64 {
        self.region.start() + (index * PAD_BYTES) as u64
    }

    /// Makes jumps for the calls of `wanted`, in the mirror, and says how far it is. `all` are the
    /// calls that it must have room for; both are sorted.
    pub(crate) fn make_hops(
        &mut self,
        all: impl Iterator<Item = Call>,
        wanted: &[Call],
    ) -> io::Result<i32> {
        let start = self.region.start();
        let mirror = match &mut self.mirror {
            Some(mirror) => mirror,
            None => self.mirror.insert(Mirror::reserve(all.collect())?),
        };
        mirror.fill(wanted, start)
    }
}

impl Mirror {
    fn reserve(calls: Vec<Call>) -> io::Result<Self> {
        let (Some(first), Some(last)) = (calls.first(), calls.last()) else {
            return Err(out_of_reach());
        };
        let page = page_bytes();
        let place = |distance: i32| {
            let start = first.end.checked_add_signed(distance.into())? / page * page;
            let end = last.end.checked_add_signed(distance.into())? + HOP_BYTES as u64;
            (start >= LOWEST).then(|| start..end.next_multiple_of(page))
        };
        let mut reserved = arch::safe_distances()
            .filter_map(|distance| Some((distance, Region::reserve(&place(distance)?)?)));
        let (distance, region) = reserved.next().ok_or_else(|| {
            io::Error::other(
                "no free addresses at the distances that are safe for threads inside its sites",
            )
        })?;
        Ok(Self {
            region,
            distance,
            calls,
        })
    }

    fn fill(&mut self, wanted: &[Call], pads_at: u64) -> io::Result<i32> {
        let (page, start) = (page_bytes(), self.region.start());
        let hop_at = |end: u64| end.wrapping_add_signed(self.distance.into());
        let hops = wanted.iter().map(|call| hop_at(call.end));
        // A hop may reach into the next page.
        let pages = hops.flat_map(|at| [at, at + HOP_BYTES as u64 - 1]);
        let mut pages: Vec<_> = pages
            .filter_map(|at| usize::try_from((at - start) / page).ok())
            .collect();
        pages.dedup();
        let calls = &self.calls;
        self.region.fill(&pages, |page_number, bytes| {
            let from = start + page_number as u64 * page;
            // Every jump that touches the page, also one that begins on the page before.
            let first = calls.partition_point(|call| hop_at(call.end) + (HOP_BYTES as u64) <= from);
            let touching = calls[first..]
                .iter()
                .map(|call| (hop_at(call.end), call.index));
            for (at, index) in touching.take_while(|(at, _)| *at < from + page) {
                let pad_at = pads_at + (index * PAD_BYTES) as u64;
                let hop = arch::write_hop(at, pad_at).ok_or_else(out_of_reach)?;
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

fn out_of_reach() -> io::Error {
    io::Error::other("its pads are out of reach")
}

/// Places of `length` bytes that all of `module` reaches, best first: just below it, where
/// nothing grows; then as far above as possible, to leave room to the heap.
fn near(lines: &[maps::Line], module: &Range<u64>, length: u64) -> Vec<Range<u64>> {
    let page = page_bytes();
    let low = module
        .end
        .saturating_sub(REACH_BYTES)
        .max(LOWEST)
        .next_multiple_of(page);
    let high = module.start.saturating_add(REACH_BYTES) / page * page;
    let grows_down =
        |at: u64| maps::find(lines, at).is_some_and(|line| line.path.as_os_str() == "[stack]");
    let gaps = maps::gaps(lines, low, high).into_iter();
    let fits = gaps.filter(|gap| gap.end - gap.start >= length + 2 * page && !grows_down(gap.end));
    let (mut below, mut above): (Vec<_>, Vec<_>) = fits.partition(|gap| gap.end <= module.start);
    below.reverse();
    above.reverse();
    below.append(&mut above);
    // A page is left free between neighbours.
    below
        .iter()
        .map(|gap| gap.end - page - length..gap.end - page)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(range: Range<u64>, path: &str) -> maps::Line {
        maps::Line {
            range,
            path: path.into(),
            is_deleted: false,
        }
    }

    #[test]
    fn below_is_best_and_the_heap_keeps_its_room() {
        let lines = [
            line(0x40_0000..0x50_0000, "/a"),
            line(0x60_0000..0x70_0000, "[heap]"),
        ];
        let found = near(&lines, &(0x40_0000..0x50_0000), 0x4000);
        assert_eq!(found[0], 0x3f_b000..0x3f_f000);
        assert!(found[1].start > 0x7000_0000, "{:x?}", found[1]);
        let large = near(&lines, &(0x40_0000..0x50_0000), 0x40_0000);
        assert!(large[0].start > 0x7000_0000, "{large:x?}");
    }

    #[test]
    fn nothing_is_put_where_a_stack_grows() {
        let base = 0x7f00_0000_0000;
        let lines = [
            line(base..base + 0x10_0000, "/a"),
            line(base + 0x100_0000..base + 0x110_0000, "[stack]"),
        ];
        let found = near(&lines, &(base..base + 0x10_0000), 0x1000);
        assert!(
            found
                .iter()
                .all(|place| place.end < base || place.start > base + 0x110_0000)
        );
    }
}
