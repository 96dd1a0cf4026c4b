//! The alignment of everything in the format.

/// `bytes` rounded up to a multiple of 8.
#[must_use]
pub const fn align8(bytes: usize) -> usize {
    bytes.next_multiple_of(8)
}
