//! Cuts a piece out of a dump: what belongs to a span of time, and nothing else of what the
//! programs said.
//!
//! [`keep`] finds the records that belong to the piece, [`pages`] blanks all others in the pages
//! that hold them, and [`blocks`] writes what belongs to a session beside its pages.

mod blocks;
mod keep;
mod pages;

use crate::events::filter::Filter;
use crate::trace_file::dump::Dump;
use crate::trace_file::session::Session;
use keep::Kept;

/// A piece of a dump that can be written as a trace file.
///
/// It has the pages that overlap the span of time, with all records blanked that do not belong to
/// it: their bytes become zeros, and only their length and number stay. What begins earlier and
/// reaches into the piece stays, as do the spans around its events, which end later.
///
/// Each session goes along with its attributes, its schema, its counters, and how it ended; the
/// samples of its clock that the times of the piece depend on; and the spans that were open at its
/// end, if the piece reaches that. Memory is that of the dump.
///
/// The piece and the trace that it was cut from can be read together: the whole copy of a page
/// fills the blanked one.
pub struct Piece<'d> {
    dump: &'d Dump,
    filter: &'d Filter,
    kept: Kept,
    /// Processes of which anything is in the piece.
    processes: Vec<usize>,
}

/// What a piece holds, and what it leaves out of the dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieceFigures {
    /// Events that are in the span of time.
    pub events: u64,
    /// Events from outside that go along: they begin or hold what is inside.
    pub around: u64,
    /// Events that are left out.
    pub left_out: u64,
    /// Sessions in the piece.
    pub sessions: u64,
    /// Sessions that are left out.
    pub sessions_left_out: u64,
}

impl Dump {
    /// The piece that the times and threads of `filter` let pass. Its other parts, such as names and
    /// levels, do not count.
    #[must_use]
    pub fn cut<'d>(&'d self, filter: &'d Filter) -> Piece<'d> {
        let kept = Kept::of(self, filter);
        let has_pages = |session: &&Session| pages::of(session, filter, &kept).next().is_some();
        let mut processes: Vec<_> = self
            .sessions
            .iter()
            .filter(has_pages)
            .map(|s| s.process)
            .collect();
        processes.dedup();
        Piece {
            dump: self,
            filter,
            kept,
            processes,
        }
    }
}

impl Piece<'_> {
    /// Its figures.
    #[must_use]
    pub fn figures(&self) -> PieceFigures {
        let pages = self.dump.sessions.iter().flat_map(|s| &s.slots);
        let all: u64 = pages
            .flat_map(|slot| &slot.pages)
            .map(|p| p.summary.events)
            .sum();
        let sessions = self.sessions().count() as u64;
        PieceFigures {
            events: self.kept.inside,
            around: self.kept.around,
            left_out: all.saturating_sub(self.kept.inside + self.kept.around),
            sessions,
            sessions_left_out: self.dump.sessions.len() as u64 - sessions,
        }
    }

    fn sessions(&self) -> impl Iterator<Item = &Session> {
        let sessions = self.dump.sessions.iter();
        sessions.filter(|session| self.processes.contains(&session.process))
    }

    /// Gives its blocks to `write`, some at a time.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        for session in self.sessions() {
            let bounds = self
                .filter
                .bounds(&session.clock, blocks::last_t_ns(session));
            let mut out = Vec::new();
            blocks::begin(session, bounds, &self.times(session), &mut out);
            write(&out)?;
            for page in pages::of(session, self.filter, &self.kept) {
                out.clear();
                blocks::page(session, bounds, &page, &mut out);
                write(&out)?;
            }
            out.clear();
            blocks::end(session, bounds, self.filter, &mut out);
            write(&out)?;
        }
        Ok(())
    }

    /// First and last tick of each page of the session's process in the piece: its sessions share a
    /// clock.
    fn times(&self, session: &Session) -> Vec<(u64, u64)> {
        let same = self
            .dump
            .sessions
            .iter()
            .filter(|s| s.clock_of == session.clock_of);
        let pages = same.flat_map(|s| pages::of(s, self.filter, &self.kept));
        pages.map(|cut| cut.ticks()).collect()
    }
}
