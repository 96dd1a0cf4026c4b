//! Cuts a piece out of a dump: what a recorder had written that took the last part of the sessions and
//! stopped at the piece's end.
//!
//! So a piece needs nothing of a decoder but what it knows of windows and of pages that are still open.
//! [`bounds`] says which ticks are inside, [`pages`] takes the records outside out of the pages, and
//! [`blocks`] writes what belongs to a session beside its pages.

pub(crate) mod blocks;
mod bounds;
pub(crate) mod pages;
mod session;

use std::collections::HashSet;

use crate::events::filter::Filter;
use crate::trace_file::dump::Dump;
use session::CutSession;

/// A piece of a dump that can be written as a trace file. [`Dump::cut`] makes one.
///
/// Its bytes hold no event from outside but the beginnings of spans and calls that reach into it, and a
/// whole trace file read beside it fills it up again.
#[derive(Debug)]
pub struct Piece<'d> {
    sessions: Vec<CutSession<'d>>,
    figures: PieceFigures,
}

/// What a piece holds, and what it leaves out of the dump.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PieceFigures {
    /// Events that are in the span of time.
    pub events: u64,
    /// Earlier events that begin what reaches into it.
    pub around: u64,
    /// Events that are left out.
    pub left_out: u64,
    /// Sessions in the piece.
    pub sessions: u64,
    /// Sessions that are left out.
    pub sessions_left_out: u64,
}

impl Dump {
    /// The piece that the times of `filter` let pass; its other parts do not count. Sessions that share
    /// a process with one that has pages in the piece go along.
    ///
    /// With the same filter, a dump of the piece gives the same events, losses, spans and calls as this
    /// one, but for three things. A finished span that ends after the piece is not known, so events in it
    /// have no span. What was in a span or call before the piece is not known, if that began before it.
    /// The piece has losses of unknown time only of sessions that end in it.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::io::Write;
    ///
    /// use ringmark_decoder::{DumpBuilder, Filter};
    ///
    /// let mut builder = DumpBuilder::new();
    /// builder.read("run.rmk", std::fs::File::open("run.rmk")?)?;
    /// let dump = builder.finish();
    /// let mut filter = Filter::new();
    /// filter.from("2s")?.to("2.5s")?;
    /// let piece = dump.cut(&filter);
    /// println!("{} events", piece.figures().events);
    /// let mut file = std::fs::File::create("small.rmk")?;
    /// piece.write(|blocks| file.write_all(blocks))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn cut(&self, filter: &Filter) -> Piece<'_> {
        let sessions = self.sessions.iter();
        let sessions = sessions.map(|session| CutSession::new(session, filter));
        let mut sessions: Vec<_> = sessions.collect();
        let with_pages = sessions.iter().filter(|cut| !cut.pages.is_empty());
        let processes: HashSet<_> = with_pages.map(|cut| cut.session.process).collect();
        sessions.retain(|cut| processes.contains(&cut.session.process));
        let pages = || sessions.iter().flat_map(|cut| &cut.pages);
        let (events, around) = (
            pages().map(|page| page.inside).sum(),
            pages().map(|page| page.around).sum(),
        );
        let all = self.sessions.iter().flat_map(|session| &session.slots);
        let all = all.flat_map(|slot| &slot.pages);
        let all: u64 = all.map(|page| page.summary.events).sum();
        let figures = PieceFigures {
            events,
            around,
            left_out: all.saturating_sub(events + around),
            sessions: sessions.len() as u64,
            sessions_left_out: (self.sessions.len() - sessions.len()) as u64,
        };
        Piece { sessions, figures }
    }
}

impl Piece<'_> {
    /// Its figures.
    #[must_use]
    pub const fn figures(&self) -> PieceFigures {
        self.figures
    }

    /// Gives its blocks to `write`, some at a time.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write<E>(&self, mut write: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut processes = HashSet::new();
        for cut in &self.sessions {
            write(&blocks::begin(cut))?;
            if processes.insert(cut.session.process) {
                write(&blocks::switches(cut, &self.sessions))?;
            }
            let mut from_mono_ns = cut.bounds.from_mono_ns;
            for pages in cut.pages.chunks(blocks::PAGES_TOGETHER) {
                write(&blocks::pages(cut, pages, &mut from_mono_ns))?;
            }
            write(&blocks::end(cut))?;
        }
        Ok(())
    }
}
