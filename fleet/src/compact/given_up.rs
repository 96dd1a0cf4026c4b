//! Hosts that were given up, and what undoes that: their streamer may come back, with pages that had waited on its disk.
//!
//! What was there of their sessions has rows in files of its own; `undo` takes these out of the tables.

use std::collections::BTreeSet;

use ringmark_decoder::CoveredSession;

use super::inputs::Footer;
use super::tables::Paths;

/// Sessions that one batch gave up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// How far they were read before.
    pub(crate) sessions: Vec<CoveredSession>,
    /// The segments that were read then: what others have of the sessions is new. They are read again if it is undone.
    pub(crate) segments: BTreeSet<String>,
    /// Files with rows of these sessions alone.
    pub(crate) files: Paths,
}

impl GivenUp {
    /// Whether one of the sessions has something in a segment that was not there when they were given up.
    pub(super) fn is_heard(&self, (name, footer): (&String, &Footer)) -> bool {
        let is_its = |of: &CoveredSession| footer.may_have((&of.host, of.session));
        !self.segments.contains(name) && self.sessions.iter().any(is_its)
    }
}
