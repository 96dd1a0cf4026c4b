//! Positions in the rings of a session.

#[cfg(feature = "stream")]
use std::collections::BTreeMap;

/// How far one slot was taken, sent or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotPosition {
    /// Index of the slot in the ring directory.
    pub slot: u32,
    /// Number of the page to go on with: every page before it is done with.
    pub next_page: u64,
}

impl SlotPosition {
    /// The entries of a map from slot to next page, as a list.
    #[cfg(feature = "stream")]
    pub(crate) fn list(positions: &BTreeMap<u32, u64>) -> Vec<Self> {
        let positions = positions.iter();
        positions
            .map(|(&slot, &next_page)| Self { slot, next_page })
            .collect()
    }
}
