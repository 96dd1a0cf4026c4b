//! What a format has to do: write what it is given, at its place and time.
//!
//! Times are wall times in ns since 1970.

use std::io;

use ringmark_decoder::{
    Ended, Event, EventType, Function, Lost, OpenSpan, Session, Span, ThreadState,
};

/// Most slices that lie in each other in one row: viewers drop those beyond 512.
pub(crate) const DEEPEST: u32 = 500;

/// A row of slices that lie in each other. Each thread has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Row {
    /// Native spans; the number is 0 but for spans that overlap those around them.
    Spans(u32),
    /// Calls of functions with an entry and an exit; the number counts rows of [`DEEPEST`] calls
    /// that lie in each other.
    Calls(u32),
    /// Calls that one record describes, numbered like spans.
    TimedCalls(u32),
    /// What its thread was seen waiting for.
    Waits,
}

/// A row of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// Number of the thread, as in [`Event::thread`].
    pub(crate) thread: u32,
    pub(crate) row: Row,
}

/// What a slice is of.
#[derive(Debug, Clone)]
pub(crate) enum Slice<'a> {
    /// A native span.
    Span(&'a EventType),
    /// A call, with the record of its entry if there is one.
    Call(&'a Function, Option<Event<'a>>),
}

impl<'a> Slice<'a> {
    /// Its name, as found.
    pub(crate) fn name(&self) -> &'a [u8] {
        match self {
            Self::Span(ty) => &ty.name,
            Self::Call(function, _) => &function.name,
        }
    }
}

/// A lane of spans that may change threads. No two spans in a lane overlap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lane<'a> {
    pub(crate) session: &'a Session,
    /// The type that makes the spans.
    pub(crate) ty: &'a EventType,
    pub(crate) number: u32,
    /// Number of the thread whose record ends it, or is the last one known.
    pub(crate) thread: u32,
}

/// A format that is being written. What is given for one thread comes in the order of time; threads come
/// one after the other. Last comes what lasts over threads, in the order of its ends.
pub(crate) trait Viewer<'a> {
    /// A slice begins.
    fn begin(&mut self, place: Place, at_ns: u64, of: &Slice<'a>) -> io::Result<()>;

    /// The innermost slice of a row ends, by this record; with a call comes how.
    fn end(
        &mut self,
        place: Place,
        at_ns: u64,
        by: &Event<'a>,
        how: Option<Ended>,
    ) -> io::Result<()>;

    /// A native span that is open at the end begins.
    fn open(&mut self, place: Place, at_ns: u64, span: &OpenSpan<'a>) -> io::Result<()>;

    /// Something happened.
    fn instant(&mut self, event: &Event<'a>) -> io::Result<()>;

    /// A call ended of which the beginning is not known.
    fn end_only(&mut self, event: &Event<'a>) -> io::Result<()>;

    /// A counter has a value.
    fn counter(&mut self, event: &Event<'a>) -> io::Result<()>;

    /// This is a record of a span over threads, which comes later.
    fn part(&mut self, _: &Event<'a>) -> io::Result<()> {
        Ok(())
    }

    /// A span over threads has ended.
    fn lasted(&mut self, lane: &Lane<'a>, span: &Span<'a>) -> io::Result<()>;

    /// A span over threads was made by this record and has no end.
    fn lasts(&mut self, lane: &Lane<'a>, made: &Event<'a>) -> io::Result<()>;

    /// Events are not there.
    fn lost(&mut self, lost: &Lost<'a>, at_ns: u64) -> io::Result<()>;

    /// A thread did something. What threads did comes after what they recorded, thread by thread.
    fn state(&mut self, _thread: (u32, &'a Session), _state: &ThreadState<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Whether spans over threads come with the one around them.
    fn asks_parents(&self) -> bool {
        false
    }

    /// Of so many slices it is not known what is around them: see [`crate::Written::unplaced`].
    fn unplaced(&mut self, _: u64) {}

    /// What the format cannot carry, and how many of each were left out.
    fn left_out(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Bytes written so far.
    fn bytes(&self) -> u64;

    /// Writes what is left.
    fn finish(&mut self) -> io::Result<()>;
}
