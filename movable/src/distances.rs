//! Tables of 32-bit distances, by which compilers jump: each entry counts from the table's beginning.
//!
//! A table begins at an address that the function computes. Which of the addresses that it computes are
//! tables is not asked: each is read as one, as long as its entries lead into code. Only entries that
//! lead into the own function count, so reading too far costs nothing. A part of a function may have the
//! table of the whole one, so all entries of what a part computes count.

use std::collections::HashSet;
use std::ops::Range;

use crate::frames::{Beginning, Frames};
use crate::image::Image;
use crate::instructions::{Lead, Passed};
use crate::refusal::LeadKind;
use crate::starts::Starts;

/// Entries of a table that are read at most.
const ENTRIES_MAX: usize = 70_000;

/// Adds the leads of all tables of distances.
pub(crate) fn leads(
    image: &Image<'_>,
    frames: &Frames<'_>,
    starts: &Starts,
    passed: &Passed,
    to: &mut Vec<Lead>,
) {
    let mut seen = HashSet::new();
    for one in &passed.computed {
        let owner = Owner::of(frames, starts, one.from);
        if !seen.insert((owner.range.start, one.to)) {
            continue;
        }
        let entries = image.constants_from(one.to).chunks_exact(4);
        for entry in entries.take(ENTRIES_MAX) {
            let distance = entry
                .first_chunk::<4>()
                .map_or(0, |word| i32::from_le_bytes(*word));
            let leads_to = one.to.wrapping_add_signed(distance.into());
            if !image.is_code(leads_to) {
                break;
            }
            if owner.is_part || owner.range.contains(&leads_to) {
                to.push(Lead {
                    to: leads_to,
                    from: one.to,
                    kind: LeadKind::Table,
                });
            }
        }
    }
}

/// The code that computes an address.
struct Owner {
    range: Range<u64>,
    /// Whether it may be a part of another function.
    is_part: bool,
}

impl Owner {
    fn of(frames: &Frames<'_>, starts: &Starts, at: u64) -> Self {
        let Some(frame) = frames.around(at) else {
            return Self {
                range: at..at + 1,
                is_part: true,
            };
        };
        let start = starts.functions.get(&frame.start);
        let is_cold = start.is_some_and(|start| is_cold(&start.names));
        Self {
            range: frame.start..frame.end,
            is_part: is_cold || frame.beginning != Beginning::Called,
        }
    }
}

/// Whether these are the names of an outlying part of a function.
pub(crate) fn is_cold(names: &[Vec<u8>]) -> bool {
    let is_cold = |name: &Vec<u8>| name.windows(5).any(|part| part == b".cold");
    !names.is_empty() && names.iter().all(is_cold)
}
