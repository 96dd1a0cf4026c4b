//! The header of a page.
//!
//! A page can be decoded alone, given the schema: its header holds the clock base of its records,
//! the counts before it, and the thread that wrote it.

layout! {
    /// First bytes of every page; records follow up to the page's end.
    pub struct PageHeader: 96 {
        /// Page number + 1; [`BUSY`] during the page switch; 0 = never used.
        0 generation: u64,
        /// Ring id of the claim that began this page.
        8 ring_id: u64,
        /// Tick that the records' ticks count from.
        16 tick_base: u64,
        /// `CLOCK_MONOTONIC` in ns when `tick_base` was read; 0 = not sampled.
        24 mono_base_ns: u64,
        /// Reservations in this slot before this page. Cancelled and uncommitted ones count.
        32 first_event: u64,
        /// Events lost in this slot before this page, all causes.
        40 lost_before: u64,
        /// Thread id of the writer.
        48 tid: u32,
        /// Slot in the ring directory.
        52 slot: u32,
        /// Zero.
        56 reserved_word: u32,
        /// Bit 0: first page of its claim ([`FIRST_OF_CLAIM`]).
        60 flags: u32,
        /// Name of the writer thread when it attached, zero-padded.
        64 thread_name: [u8; 16],
        /// Zero.
        80 reserved: [u64; 2],
    }
}

/// `generation` of a page during the page switch.
pub const BUSY: u64 = u64::MAX;
/// Flag of [`PageHeader::flags`]: the page is the first one of its claim.
pub const FIRST_OF_CLAIM: u32 = 1;
/// Bytes of the smallest page.
pub const PAGE_BYTES_MIN: u32 = 4096;
/// Bytes of the largest page.
pub const PAGE_BYTES_MAX: u32 = 1 << 20;
/// Fewest pages in a ring.
pub const PAGES_MIN: u32 = 2;

/// Whether a page of `bytes` bytes is allowed: a power of two from [`PAGE_BYTES_MIN`] to
/// [`PAGE_BYTES_MAX`].
#[must_use]
pub const fn valid_page_bytes(bytes: u32) -> bool {
    bytes.is_power_of_two() && bytes >= PAGE_BYTES_MIN && bytes <= PAGE_BYTES_MAX
}
