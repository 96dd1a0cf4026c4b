//! The mapped ring file of a streamed session, and what must be remembered from pass to pass.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringmark_format::codec::write;

use crate::pages::batch::fits;
use crate::pages::counters::LastCounters;
use crate::pages::drain::SessionDrain;
use crate::pages::open_spans;
use crate::sessions::lifetime::Lifetime;
use crate::share::Share1024;
use crate::stream::in_flight::Release;

/// Bytes of pages that are packed together: fewer pack badly.
const PACKED_BYTES: u64 = 64 << 10;
/// How long fewer bytes wait for more.
const PACKED_WITHIN: Duration = Duration::from_millis(100);
/// The part of the fullest ring that may wait for more.
const CROWDED: Share1024 = Share1024(128);

/// A session whose ring file is mapped, as far as streaming it needs to know.
#[derive(Debug)]
pub(super) struct MappedSession {
    pub(super) drain: SessionDrain,
    pub(super) lifetime: Lifetime,
    pub(super) counters: LastCounters,
    /// OPEN_SPANS blocks, copied before its last pages are taken; `None`: not copied yet.
    pub(super) open_spans: Option<Vec<u8>>,
    /// It was read to its end, and nothing of it is missing in what was sent.
    pub(super) drained: bool,
    /// The ring file, if its pages may be sent by reference.
    pub(super) by_reference: Option<Arc<File>>,
    /// Pages under way were moved to disk: the drain goes on at the oldest page not released, and
    /// must skip what was sent.
    pub(super) rewound: bool,
    /// When its open pages were looked at last.
    pub(super) open_sent_at: Instant,
    /// When all that waited was sent last; `None`: something is left of that pass.
    pub(super) passed_at: Option<Instant>,
}

impl MappedSession {
    /// A session that was opened just now.
    pub(super) fn new(drain: SessionDrain) -> Self {
        Self {
            drain,
            lifetime: Lifetime::new(),
            counters: LastCounters::default(),
            open_spans: None,
            drained: false,
            by_reference: None,
            rewound: false,
            open_sent_at: Instant::now(),
            passed_at: None,
        }
    }

    /// Whether there is too little to be packed well, and it can wait for more.
    pub(super) fn waits_for_more(&mut self) -> bool {
        self.passed_at
            .is_some_and(|at| at.elapsed() < PACKED_WITHIN)
            && self.drain.waiting_bytes() < PACKED_BYTES
            && self.drain.fullest() < CROWDED
    }

    /// What was taken, to be released once it is durable.
    pub(super) fn taken(&self) -> Release {
        Release::pages(self.drain.taken(), self.drain.schema_bytes_written())
    }

    /// Copies the stacks of open spans, once. A span that ends later is in the last pages, so it
    /// must come before they are taken.
    pub(super) fn copy_open_spans(&mut self) {
        let drain = &mut self.drain;
        let ended = drain.session().ended();
        self.open_spans
            .get_or_insert_with(|| open_spans::blocks(drain, ended));
    }

    /// What stands after the last pages: OPEN_SPANS blocks, and how the session ended if it has.
    pub(super) fn take_last_words(&mut self, ended: bool) -> Vec<u8> {
        let mut blocks = self.open_spans.take().unwrap_or_default();
        let session = self.drain.session();
        if let Some(ending) = session.ending().filter(|_| ended) {
            let seen_tick = session.dead_tick();
            fits(write::ending(
                &mut blocks,
                session.uuid(),
                ending,
                seen_tick,
            ));
        }
        blocks
    }
}
