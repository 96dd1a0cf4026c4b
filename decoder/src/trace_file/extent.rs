//! The part of a session that trace files hold: all of it, or from a window on.

use ringmark_format::block::Window;
use zerocopy::FromBytes;

use crate::blocks::damage::Fault;
use crate::blocks::page::Page;

/// The part of a session that the blocks read so far hold.
#[derive(Debug, Default)]
pub(crate) struct Extent {
    /// `CLOCK_MONOTONIC` in ns, from the latest WINDOW block after the latest SESSION block.
    latest: Option<u64>,
    /// Whether pages or counters came without a window before them.
    is_whole: bool,
}

impl Extent {
    /// Begins with a SESSION block: no window holds for what follows.
    pub(crate) fn begin(&mut self) {
        self.latest = None;
    }

    /// Takes the content of a WINDOW block.
    pub(crate) fn take(&mut self, content: &[u8]) -> Result<(), Fault> {
        let (new, _) = Window::read_from_prefix(content).map_err(|_| Fault::Value {
            what: "size of a WINDOW block",
            found: content.len() as u64,
            expected: Window::BYTES as u64,
        })?;
        self.latest = Some(new.from_mono_ns);
        Ok(())
    }

    /// Notes that counters came: without a window before them they are of the whole session.
    pub(crate) fn take_counters(&mut self) {
        self.is_whole |= self.latest.is_none();
    }

    /// Tells a page which of its records count.
    pub(crate) fn take_page(&mut self, page: &mut Page) {
        self.is_whole |= self.latest.is_none();
        page.from_mono_ns = self.latest.unwrap_or(0);
    }

    /// When the recorded window begins, in ns of `CLOCK_MONOTONIC`; `None`: the session is whole.
    pub(crate) fn window(&self) -> Option<u64> {
        self.latest.filter(|_| !self.is_whole)
    }
}
