//! How full a ring is.

/// A part of a ring's pages, in 1/1024 of them: 0 is none, 1024 is all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Share1024(pub(crate) u32);

impl Share1024 {
    /// `part` pages of `whole`. A part larger than the whole, which only a damaged ring file can
    /// claim, stays larger than 1024.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Self {
        let share = part.saturating_mul(1024) / whole.max(1);
        Self(u32::try_from(share).unwrap_or(u32::MAX))
    }

    /// The same in percent, rounded down.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.0.saturating_mul(100) / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_a_part_of_the_whole() {
        assert_eq!(Share1024::of(3, 4), Share1024(768));
        assert_eq!(Share1024::of(3, 4).percent(), 75);
        assert_eq!(Share1024::of(0, 0), Share1024(0));
        assert!(Share1024::of(u64::MAX, 1) > Share1024(1024));
    }
}
