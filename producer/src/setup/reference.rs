//! What the guide's reference shows of this crate: settings and limits.

pub use super::keys::{KEYS, Key};
pub use super::variables::{VARIABLES, Variable};

/// Limits of a traced program: a table of Markdown, also in the documentation of this crate.
pub const LIMITS: &str = include_str!("../limits.md");
