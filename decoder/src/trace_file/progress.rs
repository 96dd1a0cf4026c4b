//! What the host said about pages that are not here: gone, acknowledged by a collector, or on their way.

use std::collections::BTreeMap;
use std::ops::Range;

use ringmark_format::progress::{GoneRange, Progress, ProgressSlot, cause};
use zerocopy::{FromBytes, IntoBytes};

use crate::blocks::damage::Fault;
use crate::trace_file::why::Why;

/// The PROGRESS blocks of a session.
#[derive(Debug, Clone, Default)]
pub struct HostProgress {
    slots: BTreeMap<u32, SlotProgress>,
    /// When the latest block was made, on the host's clocks: `CLOCK_MONOTONIC` and since 1970, ns.
    latest: Option<(u64, u64)>,
}

/// What was said about one slot.
#[derive(Debug, Clone, Default)]
struct SlotProgress {
    /// Before this page nothing was said: the first streamer that did so began here.
    since: u64,
    /// The pages before it were acknowledged.
    acked: u64,
    /// Pages that will never come, by the first of them. No two ranges overlap.
    gone: BTreeMap<u64, GoneRange>,
}

/// Pages between two that are here, by what became of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AbsentPages {
    /// Pages, and reservations in them as far as the host counted these, by reason.
    pub parts: Vec<AbsentPart>,
}

/// Absent pages that have one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AbsentPart {
    /// Why they are not here. `None`: no PROGRESS covers them, or they are elsewhere.
    pub why: Option<Why>,
    /// Another session has them, and counts them.
    pub is_elsewhere: bool,
    /// How many pages.
    pub pages: u64,
    /// Reservations in them; 0: not known.
    pub events: u64,
}

impl AbsentPages {
    /// Splits `count` reservations in these pages by reason. Where the host has not counted them,
    /// they have the reason that is the gravest of those parts: pages that are missing may hold any
    /// of them. `gap`: the reason of pages that no PROGRESS covers.
    pub(crate) fn events(&self, count: u64, gap: Why) -> Vec<(Why, u64)> {
        let of = |part: &AbsentPart| match part.why {
            // A store that does not keep its oldest pages is not at fault.
            None | Some(Why::Missing) if gap == Why::Removed => gap,
            None => gap,
            Some(why) => why,
        };
        let (mut left, mut split, mut rest) = (count, Vec::new(), None);
        for part in &self.parts {
            let why = of(part);
            let events = part.events.min(left);
            left -= events;
            if part.is_elsewhere {
                continue;
            }
            if events > 0 {
                split.push((why, events));
            } else if rest.is_none_or(|known| gravity(why) > gravity(known)) {
                rest = Some(why);
            }
        }
        if left > 0 && !(rest.is_none() && self.are_elsewhere()) {
            split.push((rest.unwrap_or(gap), left));
        }
        split
    }

    /// Whether another session has some of them.
    pub(crate) fn are_elsewhere(&self) -> bool {
        self.parts.iter().any(|part| part.is_elsewhere)
    }
}

/// How grave it is that pages are not here for this reason.
const fn gravity(why: Why) -> u8 {
    match why {
        Why::Missing => 4,
        Why::Removed => 3,
        Why::Late => 2,
        Why::Unsent | Why::Lost(_) => 1,
        Why::Overwritten => 0,
    }
}

impl HostProgress {
    /// Takes the content of a PROGRESS block.
    ///
    /// # Errors
    /// It is shorter than it says.
    pub fn take(&mut self, content: &[u8]) -> Result<(), Fault> {
        let short = |expected: usize| Fault::Value {
            what: "size of a PROGRESS block",
            found: content.len() as u64,
            expected: expected as u64,
        };
        let (head, mut rest) =
            Progress::read_from_prefix(content).map_err(|_| short(Progress::BYTES))?;
        let slots = (head.slots as usize).saturating_mul(ProgressSlot::BYTES);
        let ranges = (head.ranges as usize).saturating_mul(GoneRange::BYTES);
        let expected = Progress::BYTES.saturating_add(slots).saturating_add(ranges);
        if content.len() < expected {
            return Err(short(expected));
        }
        for _ in 0..head.slots {
            let (slot, after) =
                ProgressSlot::read_from_prefix(rest).map_err(|_| short(expected))?;
            self.take_slot(&slot);
            rest = after;
        }
        for _ in 0..head.ranges {
            let (range, after) = GoneRange::read_from_prefix(rest).map_err(|_| short(expected))?;
            self.take_range(range);
            rest = after;
        }
        let now = (head.mono_ns, head.real_ns);
        self.latest = Some(self.latest.map_or(now, |before| before.max(now)));
        Ok(())
    }

    fn take_slot(&mut self, slot: &ProgressSlot) {
        let new = SlotProgress {
            since: slot.start,
            ..SlotProgress::default()
        };
        let known = self.slots.entry(slot.slot).or_insert(new);
        known.since = known.since.min(slot.start);
        known.acked = known.acked.max(slot.acked);
    }

    fn take_range(&mut self, range: GoneRange) {
        if range.from < range.to {
            self.slots.entry(range.slot).or_default().take_range(range);
        }
    }

    /// Content of a PROGRESS block that says all of this, but for ranges that end before `next` of their slot.
    pub(crate) fn content(&self, next: impl Fn(u32) -> u64) -> Option<Vec<u8>> {
        let (mono_ns, real_ns) = self.latest?;
        let (mut slots, mut ranges) = (Vec::new(), Vec::new());
        for (slot, known) in &self.slots {
            let said = ProgressSlot {
                slot: *slot,
                reserved: 0,
                start: known.since,
                acked: known.acked,
            };
            slots.extend_from_slice(said.as_bytes());
            let gone = known.gone.values().filter(|range| range.to > next(*slot));
            gone.for_each(|range| ranges.extend_from_slice(range.as_bytes()));
        }
        let head = Progress {
            epoch: 0,
            flags: 0,
            real_ns,
            mono_ns,
            schema_acked: 0,
            store: [0; 16],
            slots: (slots.len() / ProgressSlot::BYTES) as u32,
            ranges: (ranges.len() / GoneRange::BYTES) as u32,
        };
        Some([head.as_bytes(), &slots, &ranges].concat())
    }

    /// The page after the last one that is here of a slot, or that one if it is not here as a whole and
    /// its host said that the rest will never come.
    pub(crate) fn page_after(&self, slot: u32, page: u64, sealed: bool) -> u64 {
        let slot = self.slots.get(&slot).filter(|_| !sealed);
        let before = slot.and_then(|slot| slot.gone.range(..=page).next_back());
        match before.is_some_and(|(_, range)| range.to > page) {
            true => page,
            false => page.saturating_add(1),
        }
    }

    /// Whether the host said anything.
    pub(crate) fn is_there(&self) -> bool {
        self.latest.is_some()
    }

    /// When the host said something last, on its own clock, ns since 1970; `None`: it never did.
    #[must_use]
    pub fn said_ns(&self) -> Option<u64> {
        self.latest.map(|(_, real_ns)| real_ns)
    }

    /// Splits pages of a slot that are not here by what became of them, in their order.
    #[must_use]
    pub fn absent(&self, slot: u32, pages: Range<u64>) -> AbsentPages {
        let mut absent = AbsentPages::default();
        let nothing = SlotProgress::default();
        let slot = self.slots.get(&slot).unwrap_or(&nothing);
        let mut at = pages.start;
        while at < pages.end {
            let part = slot.part_at(at, pages.end);
            at = at.saturating_add(part.pages);
            absent.parts.push(part);
        }
        absent
    }
}

impl SlotProgress {
    /// Adds a range. It takes the place of those inside it, and leaves out what others have.
    fn take_range(&mut self, mut range: GoneRange) {
        let before = self.gone.range(..=range.from).next_back();
        if let Some((_, before)) = before.filter(|(_, known)| known.to > range.from) {
            if before.to >= range.to {
                return;
            }
            if before.from < range.from {
                (range.from, range.events) = (before.to, 0);
            }
        }
        while let Some((from, known)) = self.gone.range(range.from..range.to).next() {
            if known.to > range.to {
                (range.to, range.events) = (*from, 0);
                break;
            }
            let inside = *from;
            self.gone.remove(&inside);
        }
        if range.from < range.to {
            self.gone.insert(range.from, range);
        }
    }

    /// The longest part at page `at` that has one reason, and ends before `end`.
    fn part_at(&self, at: u64, end: u64) -> AbsentPart {
        let before = self.gone.range(..=at).next_back();
        if let Some((_, range)) = before.filter(|(_, range)| range.to > at) {
            let to = range.to.min(end);
            let is_whole = range.from == at && to == range.to;
            return AbsentPart {
                why: match range.cause {
                    cause::OVERWRITTEN => Some(Why::Overwritten),
                    cause::ELSEWHERE => None,
                    _ => Some(Why::Unsent),
                },
                is_elsewhere: range.cause == cause::ELSEWHERE,
                pages: to - at,
                events: if is_whole { range.events } else { 0 },
            };
        }
        let next = self
            .gone
            .range(at + 1..)
            .next()
            .map_or(end, |(from, _)| *from);
        let (why, to) = match at {
            _ if at < self.since => (None, self.since),
            _ if at < self.acked => (Some(Why::Missing), self.acked),
            _ => (Some(Why::Late), end),
        };
        AbsentPart {
            why,
            is_elsewhere: false,
            pages: to.min(next).min(end) - at,
            events: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    fn block(slots: &[(u64, u64)], ranges: &[(u64, u64, u64, u32)], mono_ns: u64) -> Vec<u8> {
        let head = Progress {
            epoch: 1,
            flags: 0,
            real_ns: mono_ns + 1000,
            mono_ns,
            schema_acked: 0,
            store: [0; 16],
            slots: slots.len() as u32,
            ranges: ranges.len() as u32,
        };
        let mut content = head.as_bytes().to_vec();
        for &(start, acked) in slots {
            let slot = ProgressSlot {
                slot: 2,
                reserved: 0,
                start,
                acked,
            };
            content.extend_from_slice(slot.as_bytes());
        }
        for &(from, to, events, cause) in ranges {
            let range = GoneRange {
                slot: 2,
                cause,
                from,
                to,
                events,
            };
            content.extend_from_slice(range.as_bytes());
        }
        content
    }

    fn parts(progress: &HostProgress, pages: Range<u64>) -> Vec<(Option<Why>, u64, u64)> {
        let absent = progress.absent(2, pages);
        absent
            .parts
            .iter()
            .map(|p| (p.why, p.pages, p.events))
            .collect()
    }

    #[test]
    fn what_another_session_has_is_not_counted_here() {
        let mut progress = HostProgress::default();
        let ranges = [(0, 4, 0, cause::ELSEWHERE), (6, 8, 9, cause::OVERWRITTEN)];
        let taken = progress.take(&block(&[(4, 9)], &ranges, 5));
        assert_eq!(taken, Ok(()));
        let split = |pages| progress.absent(2, pages).events(100, Why::Missing);
        assert_eq!(split(0..4), []);
        assert_eq!(split(2..4), []);
        assert_eq!(split(6..8), [(Why::Overwritten, 9), (Why::Missing, 91)]);
        assert_eq!(
            split(0..5),
            [(Why::Missing, 100)],
            "page 4 may have any of them"
        );
        assert!(progress.absent(2, 3..5).are_elsewhere());
    }

    #[test]
    fn each_page_that_is_not_here_has_one_reason() {
        let mut progress = HostProgress::default();
        assert_eq!(
            parts(&progress, 3..5),
            [(Some(Why::Late), 2, 0)],
            "nothing was said"
        );
        progress
            .take(&block(&[(4, 20)], &[(10, 12, 7, cause::OVERWRITTEN)], 5))
            .unwrap();
        progress
            .take(&block(&[(15, 18)], &[(30, 33, 0, cause::SPILL)], 9))
            .unwrap();
        let late = Some(Why::Late);
        let missing = Some(Why::Missing);
        assert_eq!(
            parts(&progress, 2..40),
            [
                (None, 2, 0),
                (missing, 6, 0),
                (Some(Why::Overwritten), 2, 7),
                (missing, 8, 0),
                (late, 10, 0),
                (Some(Why::Unsent), 3, 0),
                (late, 7, 0),
            ]
        );
        // A part of a range: how many events are in it is not known.
        assert_eq!(parts(&progress, 11..12), [(Some(Why::Overwritten), 1, 0)]);
        assert_eq!(parts(&progress, 12..12), []);
        assert_eq!(progress.said_ns(), Some(1009));
        assert_eq!(progress.absent(7, 0..1).parts[0].why, late, "another slot");
    }

    #[test]
    fn ranges_that_overlap_become_ranges_that_do_not() {
        let overwritten = cause::OVERWRITTEN;
        let mut progress = HostProgress::default();
        for range in [
            (10, 20, 5, overwritten),
            (10, 20, 5, overwritten),
            (12, 14, 1, overwritten),
            (15, 25, 8, cause::SPILL),
            (30, 40, 9, cause::SPILL),
            (28, 45, 3, overwritten),
            (44, 50, 2, overwritten),
            (5, 12, 4, overwritten),
            // Between two that touch each other nothing is left.
            (17, 22, 6, overwritten),
        ] {
            progress.take(&block(&[(0, 0)], &[range], 1)).unwrap();
        }
        let (gone, unsent) = (Some(Why::Overwritten), Some(Why::Unsent));
        assert_eq!(
            parts(&progress, 5..50),
            [
                (gone, 5, 0),
                (gone, 10, 5),
                (unsent, 5, 0),
                (Some(Why::Late), 3, 0),
                (gone, 17, 3),
                (gone, 5, 0),
            ]
        );
    }

    /// Nested, equal and disjoint ranges of a hostile stream take time as their number.
    #[test]
    fn many_ranges_take_time_as_their_number() {
        let many = 200_000;
        let outward = (0..many).map(|n| (many - n, many + n + 1, 1, cause::SPILL));
        let longer = (0..many).map(|n| (0, n + 1, 1, cause::SPILL));
        let apart = (0..many).map(|n| (2 * n, 2 * n + 1, 1, cause::OVERWRITTEN));
        let all: [Vec<_>; 3] = [outward.collect(), longer.collect(), apart.collect()];
        for ranges in all {
            let mut progress = HostProgress::default();
            progress.take(&block(&[(0, 0)], &ranges, 1)).unwrap();
            let pages: u64 = (0..2 * many)
                .flat_map(|page| parts(&progress, page..page + 1))
                .map(|(_, pages, _)| pages)
                .sum();
            assert_eq!(pages, 2 * many);
        }
    }

    #[test]
    fn a_block_that_is_shorter_than_it_says_is_damage() {
        let whole = block(&[(1, 2)], &[(3, 4, 5, 1)], 1);
        for bytes in [0, 55, 56, whole.len() - 1] {
            assert!(
                HostProgress::default().take(&whole[..bytes]).is_err(),
                "{bytes}"
            );
        }
        let mut large = block(&[], &[], 1);
        large[48..56].fill(0xFF);
        assert!(HostProgress::default().take(&large).is_err());
        let odd = block(
            &[(u64::MAX, u64::MAX)],
            &[(u64::MAX, 0, 1, 9), (0, u64::MAX, 1, 9)],
            1,
        );
        let mut progress = HostProgress::default();
        progress.take(&odd).unwrap();
        assert_eq!(
            parts(&progress, 0..u64::MAX),
            [(Some(Why::Unsent), u64::MAX, 1)]
        );
    }
}
