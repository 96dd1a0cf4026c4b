//! Which event types may be among the records of a page, in one word.
//!
//! A walk over the pages that looks for records of some types passes over a page that has none of them,
//! without reading it again.

use ringmark_format::TypeId;
use ringmark_format::record::FUNCTION_BIT;

/// A set of event types in 64 bits. Types whose ids are equal modulo 64 share a bit, so it may seem to
/// hold types that it does not hold. All types of functions share the last bit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TypeBits(u64);

impl TypeBits {
    /// Adds a type.
    #[inline]
    pub(crate) const fn add(&mut self, id: TypeId) {
        let bit = match id.0 & FUNCTION_BIT {
            0 => id.0 & 63,
            _ => 63,
        };
        self.0 |= 1 << bit;
    }

    /// Whether a type may be in both sets; `false`: none is.
    pub(crate) const fn may_meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl FromIterator<TypeId> for TypeBits {
    fn from_iter<I: IntoIterator<Item = TypeId>>(ids: I) -> Self {
        let mut bits = Self::default();
        ids.into_iter().for_each(|id| bits.add(id));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_is_in_both_is_never_missed() {
        let of = |ids: &[u32]| TypeBits::from_iter(ids.iter().map(|id| TypeId(*id)));
        let function = 7 | FUNCTION_BIT;
        assert!(of(&[8, 9, 100]).may_meet(of(&[9])));
        assert!(of(&[8, 100, function]).may_meet(of(&[100])));
        assert!(of(&[8, function]).may_meet(of(&[function])));
        assert!(!of(&[8, 100, function]).may_meet(of(&[7, 9])));
        // One bit for both.
        assert!(of(&[8]).may_meet(of(&[72])));
    }
}
