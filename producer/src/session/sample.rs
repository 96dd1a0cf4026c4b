//! What a library may know of its own process's rings while they are written: how much, and of what
//! types. And a ring that is none, for measuring.

use core::ops::Range;
use core::sync::atomic::AtomicU64;

use ringmark_format::PageNumber;
use ringmark_format::record::{self, Header};
use ringmark_format::session::Mode;
use ringmark_ring::observe::{HEADER_WORDS, PageRead, copy_open};
use ringmark_ring::published_static::Published;
use ringmark_ring::slot::SLOT_WORDS;
use ringmark_ring::writer::Ring;
use ringmark_ring::{SlotGeometry, SlotView, Writer};

use super::core::Core;
use super::life::Session;
use crate::thread_block;

/// How much was written into a ring, over all threads that had it.
///
/// ```
/// use ringmark::{Session, client::RingCounts, event};
///
/// let session = Session::builder().start().expect("a session");
/// event!("first");
/// let counts: Vec<RingCounts> = session.ring_counts();
/// assert_eq!(counts.iter().map(|ring| ring.records).sum::<u64>(), 1);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Records, those that were cancelled included.
    pub records: u64,
    /// Page switches; the one to the ring's first page counts.
    pub page_switches: u64,
}

impl Session {
    /// How much was written into each ring so far, in the order of the rings' slots.
    #[must_use]
    pub fn ring_counts(&self) -> Vec<RingCounts> {
        let core = self.core;
        let counts = |index| {
            Some(RingCounts {
                records: core.wiped.writer(index)?.reservations(),
                page_switches: core.file.slot(index)?.produced(),
            })
        };
        let slots = 0..core.file.slots_used();
        slots
            .map(|index| counts(index).unwrap_or_default())
            .collect()
    }

    /// Records that all rings got so far, those that were cancelled included.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.ring_counts().iter().map(|ring| ring.records).sum()
    }

    /// Calls `visit` with the type of each record in some of the pages of ring `ring` that were
    /// filled between two counts of its page switches, and are still there; `pages_max` at most,
    /// spread over the time between.
    pub fn sample_types(
        &self,
        ring: u32,
        page_switches: Range<u64>,
        pages_max: u32,
        visit: &mut dyn FnMut(u32),
    ) {
        let core = self.core;
        let Some(geometry) = core.file.slot(ring).map(|slot| slot.geometry()) else {
            return;
        };
        let Some(pages) = core.file.pages(geometry).filter(|_| page_switches.end > 0) else {
            return;
        };
        let page_words = geometry.page_bytes as usize / 8;
        let mut copy = vec![0; page_words];
        let newest = page_switches.end - 1;
        let oldest_there = page_switches.end.saturating_sub(geometry.pages.into());
        // The page before the first one was open when it was counted.
        let oldest = page_switches.start.saturating_sub(1);
        let oldest = oldest.max(oldest_there).min(newest);
        let step = (newest - oldest) / u64::from(pages_max.max(1)) + 1;
        for number in (oldest..=newest).rev().step_by(step as usize) {
            let first = (number % u64::from(geometry.pages)) as usize * page_words;
            let page = &pages[first..first + page_words];
            if let PageRead::Copied(copied) = copy_open(page, PageNumber(number), &mut copy) {
                types_in(&copy[..copied.words], visit);
            }
        }
    }
}

fn types_in(copy: &[u64], visit: &mut dyn FnMut(u32)) {
    let mut at = HEADER_WORDS;
    while let Some(word) = copy.get(at) {
        let header = record::unpack(*word);
        if let Header::Record { type_id, .. } = header {
            visit(type_id.0);
        }
        let Some(words) = header.words(|| copy.get(at + 1).copied()) else {
            return;
        };
        at = at.saturating_add(words as usize);
    }
}

/// Pages of the ring that is never read.
const PAGES: u32 = 2;

/// Runs `work`, which records as ever, but into memory that no reader sees: to measure what
/// recording costs. For the thread that answers requests. `None`: there is no session, or no memory.
pub fn without_trace<R>(work: impl FnOnce() -> R) -> Option<R> {
    static WRITER: Published<Writer> = Published::new();
    let writer = match WRITER.current() {
        Some(writer) => writer,
        None => {
            let own = private_writer(Core::current()?)?;
            WRITER.get_or_publish(|| own)
        }
    };
    let before = thread_block::writer();
    thread_block::set_writer(Some(writer));
    let result = work();
    thread_block::set_writer(before);
    Some(result)
}

/// A writer like the session's, over memory of its own.
fn private_writer(core: &Core) -> Option<Box<Writer>> {
    let zeroed = |words| -> &'static [AtomicU64] {
        Box::leak((0..words).map(|_| AtomicU64::new(0)).collect())
    };
    let geometry = SlotGeometry {
        pages_offset: 0,
        page_bytes: core.options.page_bytes,
        pages: PAGES,
    };
    let ring = Ring {
        pages: zeroed(geometry.ring_bytes() as usize / 8),
        geometry,
        stack: None,
        slot: SlotView::new(zeroed(SLOT_WORDS), zeroed(1).first()?)?,
        slot_index: 0,
        mode: Mode::Overwrite,
        ring_id: 1,
        tid: 0,
        thread_name: [0; 16],
    };
    let writer = Box::new(Writer::new());
    // SAFETY: no other thread knows the slot and the writer.
    unsafe { writer.attach(ring, core.clock as u32) };
    Some(writer)
}
