//! Looks at a living session from time to time, at a cost that the caller bounds: the exact figures of
//! its rings, and their newest pages as a sample of the events.

use ringmark_format::PageNumber;
use ringmark_format::session::Mode;
use ringmark_ring::observe::header;

use super::Tap;
use crate::error::ReaderError;
use crate::pages::page_copy::page_words;
use crate::sessions::info::{self, RingInfo};
use crate::sessions::session::Session;

/// The figures of a session as of one look.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Look {
    /// Its rings that have or had a thread.
    pub rings: Vec<RingLook>,
    /// Events lost that belong to no ring, all causes.
    pub lost: u64,
}

/// The figures of a ring as of one look.
#[derive(Debug, Clone, PartialEq)]
pub struct RingLook {
    /// The ring.
    pub info: RingInfo,
    /// Events that its slot was given since the session's start, by all its threads; those that
    /// were lost do not count.
    pub events: u64,
    /// How far back its oldest page reaches, in ns; `None`: not known.
    pub window_ns: Option<u64>,
}

impl RingLook {
    /// Events lost in its slot since the session's start, all causes.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.info
            .lost
            .iter()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }
}

impl Look {
    /// Events that the session was given since its start.
    #[must_use]
    pub fn events(&self) -> u64 {
        let events = self.rings.iter().map(|ring| ring.events);
        events.fold(0, u64::saturating_add)
    }

    /// Events lost since its start, all rings, all causes.
    #[must_use]
    pub fn lost_in_all(&self) -> u64 {
        let lost = self.rings.iter().map(RingLook::lost);
        lost.fold(self.lost, u64::saturating_add)
    }
}

impl Tap {
    /// As [`Tap::poll`], but of the sealed pages that are new only the newest ones of each ring: about
    /// `bytes` in all. The others are passed over for good. An open page that has grown is always
    /// here: its events have to be counted anyway.
    ///
    /// # Errors
    /// As [`Tap::poll`].
    pub fn newest(&mut self, bytes: u64) -> Result<Vec<u8>, ReaderError> {
        self.drain.pass_over_older(bytes);
        self.poll()
    }

    /// Counts the events of all rings, for the next [`Tap::look`], where [`Tap::newest`] is not called
    /// before it.
    ///
    /// # Errors
    /// The ring file was truncated.
    pub fn count(&mut self) -> Result<(), ReaderError> {
        self.drain.session().check_size()?;
        self.batch.clear(u64::MAX);
        self.drain.recount(&mut self.batch);
        self.drain.session().check_whole()
    }

    /// The figures of the session now; events as of the last [`Tap::newest`] or [`Tap::count`].
    #[must_use]
    pub fn look(&self) -> Look {
        let session = self.drain.session();
        let lost = session.ring().lost();
        let rings = info::rings(session).into_iter().map(|info| RingLook {
            events: self.drain.events_of(info.slot),
            window_ns: window_ns(session, &info),
            info,
        });
        Look {
            rings: rings.collect(),
            lost: lost.iter().fold(0, |sum, n| sum.saturating_add(*n)),
        }
    }

    /// Gives the session back, to be read in another way.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.drain.into_session()
    }
}

/// Time since the beginning of the oldest page that the ring holds for a reader.
fn window_ns(session: &Session, info: &RingInfo) -> Option<u64> {
    let ring = session.ring();
    let geometry = ring.slot(info.slot)?.geometry();
    let is_valid = geometry.valid(ring.map().bytes());
    let pages = u64::from(geometry.pages).min(info.produced);
    let oldest = match ring.geometry().mode {
        Mode::Discard => info.consumed.max(info.produced - pages),
        Mode::Overwrite => info.produced - pages,
    };
    // The oldest one may be overwritten just now.
    let mut numbers = (oldest..info.produced).take(2).filter(|_| is_valid);
    let base_ns = numbers.find_map(|number| {
        let words = page_words(ring, geometry, number)?;
        Some(header(words, PageNumber(number))?.mono_base_ns).filter(|ns| *ns != 0)
    })?;
    session.monotonic_ns()?.checked_sub(base_ns)
}
