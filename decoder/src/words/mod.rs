//! The ground floor: single values as text, and text compared, without knowledge of traces.

pub(crate) mod distance;
pub(crate) mod duration;
pub mod escape;
pub mod number;
pub(crate) mod small_keys;
pub(crate) mod timestamp;
