//! Where memory for generated code may lie.

use std::ops::Range;

use super::code_region::page_bytes;
use crate::arch::REACH_BYTES;
use crate::sites::maps;

/// Lowest address of a region.
pub(super) const LOWEST: u64 = 1 << 20;

/// Places of `length` bytes within reach of all of `module`, best first: just below it, where
/// nothing grows; then as far above as possible, so that the heap keeps room to grow.
pub(super) fn near(lines: &[maps::Mapping], module: &Range<u64>, length: u64) -> Vec<Range<u64>> {
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

    fn line(range: Range<u64>, path: &str) -> maps::Mapping {
        maps::Mapping {
            range,
            path: path.into(),
            is_deleted: false,
            file: String::new(),
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
