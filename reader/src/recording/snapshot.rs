//! A snapshot: a validated copy of a session as it is, taken without disturbing it.
//!
//! Nothing is released, so a recorder can run at the same time. Pages that the program overwrites
//! while the snapshot reads are left out and counted, never copied half.

use std::time::{Duration, Instant};

use ringmark_format::ending::Ending;
use ringmark_format::session::Clock;

use crate::error::ReaderError;
use crate::pages::batch::Batch;
use crate::pages::drain::{Fill, FillPass, Finality, SchemaPiece, SessionDrain};
use crate::pages::open_spans;
use crate::recording::dump::Dump;
use crate::sessions::session::Session;

/// What a snapshot took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotFigures {
    /// Pages copied, open ones included.
    pub pages: u64,
    /// Pages that were overwritten before they could be copied.
    pub pages_skipped: u64,
    /// Events that the program lost since the session started.
    pub lost: u64,
    /// Events that were overwritten before they could be copied, those from before the first page
    /// at hand included.
    pub overwritten: u64,
    /// How the session ended; `None`: it has not.
    pub ending: Option<Ending>,
    /// Time from the call to the last byte handed to the output.
    pub took: Duration,
}

/// Writes what is in the rings of `session` now into `dump`: sealed pages, then open ones, then the
/// spans that were open before that, then the counters. With `last`, only pages with events of that time before now are copied, and a WINDOW
/// block has decoders show only those events.
///
/// # Errors
/// The ring file was truncated, or the dump cannot be written.
pub fn snapshot(
    mut session: Session,
    last: Option<Duration>,
    dump: &mut Dump,
) -> Result<SnapshotFigures, ReaderError> {
    let start = Instant::now();
    let ended = session.ended();
    let _ = dump.owners().keep_apart(&mut session);
    let mut drain = SessionDrain::observing(session);
    let uuid = drain.session().uuid();
    dump.add_session(uuid, &drain.session_content())?;
    // Where the session's time is unknown, all pages are copied: better too much than too little.
    let has_clock = drain.session().ring().geometry().clock != Clock::None;
    let now = drain.session().monotonic_ns().filter(|_| has_clock);
    if let (Some(last), Some(now)) = (last, now) {
        let last = u64::try_from(last.as_nanos()).unwrap_or(u64::MAX);
        let since = now.saturating_sub(last);
        drain.keep_since(since);
        dump.add_window(uuid, since)?;
    }
    let open_spans = open_spans::blocks(&mut drain, ended);
    let mut batch = Batch::new();
    let mut figures = SnapshotFigures::default();
    let passes: [FillPass; 2] = [SessionDrain::fill, SessionDrain::fill_open];
    for fill in passes {
        while copy_batch(&mut drain, fill, &mut batch, dump)? == Fill::BatchFull {
            figures.pages += batch.pages();
        }
        figures.pages += batch.pages();
    }
    let finality = Finality::final_if(ended && drain.is_drained());
    dump.add_open_spans(&open_spans, 0)?;
    if let Some(ending) = drain.session().ending().filter(|_| ended) {
        dump.add_ending(uuid, ending, drain.session().dead_tick())?;
        figures.ending = Some(ending);
    }
    dump.add_counters(uuid, &drain.counters(finality, None)?)?;
    figures.pages_skipped = drain.pages_skipped();
    figures.lost = drain.lost();
    figures.overwritten = drain.overwritten();
    figures.took = start.elapsed();
    Ok(figures)
}

/// Fills one batch and writes it after the schema that its pages need.
fn copy_batch(
    drain: &mut SessionDrain,
    fill: FillPass,
    batch: &mut Batch,
    dump: &mut Dump,
) -> Result<Fill, ReaderError> {
    batch.clear(u64::MAX);
    let filled = fill(drain, batch)?;
    let uuid = drain.session().uuid();
    while let Some(SchemaPiece { offset, bytes }) = drain.peek_schema() {
        dump.add_schema(uuid, offset, &bytes)?;
        drain.schema_written(bytes.len());
    }
    dump.add_pages(uuid, batch)?;
    Ok(filled)
}
