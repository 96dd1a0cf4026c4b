//! Functions whose machine code is looked at. The attribute stands on each.

use crate::count::Count;

pub(crate) static COUNTS: [Count; 1] = [Count::new("leaf_counted")];

/// Nothing but a sum.
#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
#[cfg_attr(not(feature = "functions"), inline(never))]
pub(crate) fn leaf_sum(a: u64, b: u64) -> u64 {
    a.wrapping_mul(3).wrapping_add(b)
}

/// Returns early, and calls.
#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
#[cfg_attr(not(feature = "functions"), inline(never))]
pub(crate) fn leaf_calls(a: u64) -> u64 {
    if a.is_multiple_of(7) {
        return 3;
    }
    leaf_sum(a, 1) ^ leaf_sum(1, a)
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
#[cfg_attr(not(feature = "functions"), inline(never))]
fn leaf_counted(a: u64) -> u64 {
    COUNTS[0].add();
    leaf_calls(a)
}

pub(crate) fn all(n: u64) -> u64 {
    (0..100).map(|i| leaf_counted(n + i)).sum()
}
