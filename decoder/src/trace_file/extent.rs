//! The part of a session that trace files hold: all of it, from a window on, or a piece.

use ringmark_format::block::{Window, WindowSample};
use ringmark_format::clock::Sample;
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::blocks::page::Page;

/// The part of a session that the blocks read so far hold.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    /// From the latest WINDOW block after the latest SESSION block.
    latest: Option<Window>,
    /// From the earliest to the latest time of all WINDOW blocks of pieces.
    piece: Option<(u64, u64)>,
    /// Whether pages or counters came without a window before them.
    is_whole: bool,
}

impl Extent {
    /// Begins with a SESSION block: no window holds for what follows.
    pub(crate) fn begin(&mut self) {
        self.latest = None;
    }

    /// Takes the content of a WINDOW block; returns the clock samples in it.
    pub(crate) fn take<'a>(
        &mut self,
        content: &'a [u8],
    ) -> Result<impl Iterator<Item = Sample> + use<'a>, Fault> {
        let (new, rest) = Window::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of a WINDOW block",
            found: content.len() as u64,
            expected: Window::BYTES as u64,
        })?;
        if new.to_mono_ns != 0 {
            let (from, to) = self.piece.unwrap_or((u64::MAX, 0));
            self.piece = Some((from.min(new.from_mono_ns), to.max(new.to_mono_ns)));
        }
        self.latest = Some(new);
        Ok(samples(rest))
    }

    /// Notes that counters came: without a window before them they are of the whole session.
    pub(crate) fn take_counters(&mut self) {
        self.is_whole |= self.latest.is_none();
    }

    /// Tells a page which of its records count.
    pub(crate) fn take_page(&mut self, page: &mut Page) {
        self.is_whole |= self.latest.is_none();
        match self.latest {
            Some(window) if window.to_mono_ns == 0 => page.from_mono_ns = window.from_mono_ns,
            Some(window) => page.piece = Some((window.from_mono_ns, window.to_mono_ns)),
            None => {}
        }
    }

    /// When the recorded window begins, in ns of `CLOCK_MONOTONIC`; `None`: the session is whole.
    pub(crate) fn window(&self) -> Option<u64> {
        let window = self.latest.filter(|_| !self.is_whole);
        window.map(|window| window.from_mono_ns)
    }

    /// From when to when the piece reaches, in ns of `CLOCK_MONOTONIC`; `None`: it is no piece.
    pub(crate) fn piece(&self) -> Option<(u64, u64)> {
        self.piece.filter(|_| !self.is_whole)
    }
}

/// The clock samples that follow in a WINDOW block.
fn samples(bytes: &[u8]) -> impl Iterator<Item = Sample> {
    let samples = bytes.chunks_exact(WindowSample::BYTES);
    let samples = samples.filter_map(|bytes| WindowSample::read_from_bytes(bytes).ok());
    samples.map(|WindowSample { tick, mono_ns }| Sample { tick, mono_ns })
}
