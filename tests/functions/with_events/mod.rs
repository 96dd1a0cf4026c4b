//! Programs that emit events inside of traced functions, and the order of what they recorded.

pub(crate) mod order;
pub(crate) mod program;
