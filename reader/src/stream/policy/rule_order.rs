//! Rules on their way to a session.

use std::path::PathBuf;

use ringmark_format::Uuid;

/// Rules for a session, in place of those before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::stream) struct RuleOrder {
    pub(in crate::stream) session: Uuid,
    pub(in crate::stream) ring_file: PathBuf,
    /// The request that hands them over.
    pub(in crate::stream) request: String,
}
