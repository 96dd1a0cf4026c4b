//! What sites call.

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
