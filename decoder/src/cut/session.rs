//! A session of a piece: which of its ticks are inside, and the pages that hold them.

use super::bounds::Bounds;
use super::pages::{self, CutPage};
use crate::events::filter::Filter;
use crate::trace_file::session::Session;

/// A session of a piece. It may have no page there, if another session of its process has.
#[derive(Debug)]
pub(super) struct CutSession<'d> {
    /// The session in the dump.
    pub(super) session: &'d Session,
    /// What of it is in the piece.
    pub(super) bounds: Bounds,
    /// Its pages in the piece, by slot, then by number.
    pub(super) pages: Vec<CutPage<'d>>,
}

impl<'d> CutSession<'d> {
    /// Takes what the times of `filter` let pass of a session.
    pub(super) fn new(session: &'d Session, filter: &Filter) -> Self {
        let bounds = Bounds::of(session, filter);
        let pages = pages::of(session, &bounds);
        Self {
            session,
            bounds,
            pages,
        }
    }
}
