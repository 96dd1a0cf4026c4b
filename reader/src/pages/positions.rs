//! Positions in the rings of a session.

use std::collections::BTreeMap;

/// A position in one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPosition {
    /// Index of the slot.
    pub slot: u32,
    /// The page after the last one that was passed.
    pub next_page: u64,
}

impl SlotPosition {
    /// Positions of slots, from a map of them.
    pub(crate) fn list(positions: &BTreeMap<u32, u64>) -> Vec<Self> {
        let positions = positions.iter();
        positions
            .map(|(&slot, &next_page)| Self { slot, next_page })
            .collect()
    }
}
