//! The ground floor: single values as text, and text compared, without knowledge of traces.

pub(crate) mod distance;
pub mod escape;
pub(crate) mod number;
pub(crate) mod timestamp;
