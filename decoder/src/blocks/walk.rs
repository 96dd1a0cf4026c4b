//! Walks the records of a page in the order of their reservation.
//!
//! A [`Walk`] is a place in the page: where it is, and what was read before that the next record needs.
//! It borrows nothing, so that a cursor can hold it next to the bytes. [`Records`] is the same for those
//! that walk a whole page at once, and want its events only.

use ringmark_format::TypeId;
use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};

use crate::blocks::damage::Fault;

/// A committed record, as a walk finds it: tick and type from its header word, and where in the
/// page its payload is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Its number within the page.
    pub index: u64,
    pub tick: u64,
    pub type_id: TypeId,
    /// Where its payload begins and ends in the page, in bytes.
    pub start: u32,
    pub end: u32,
}

impl Record {
    /// What a walk writes over.
    pub(crate) const NONE: Self = Self {
        index: 0,
        tick: 0,
        type_id: TypeId(0),
        start: 0,
        end: 0,
    };

    /// Its payload. `page`: the bytes of the page that was walked. Without them, because they could not
    /// be loaded again, the payload is empty.
    #[inline]
    pub(crate) fn payload<'a>(&self, page: &'a [u8]) -> &'a [u8] {
        page.get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// What became of a reservation, as a walk over the page finds it. Each has a number within the page,
/// whether or not it became an event.
pub(crate) enum Reservation {
    Event,
    Cancelled,
    Uncommitted,
    Reserved,
    LeftOut,
}

/// Which events of a page are shown: those from a tick on, and those with these numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shown<'a> {
    pub from: u64,
    pub kept: &'a [u64],
}

/// A place in a page, on the way over its records.
///
/// Nothing in the bytes is trusted: each length is checked against the rest of the page. The walk
/// ends at the first word that cannot start a record, and keeps the reason. Every step is given the
/// bytes, so that a walk can be kept next to what owns them.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    at: usize,
    index: u64,
    tick_base: u64,
    extended: Option<u64>,
    fault: Option<(&'static str, u64)>,
}

#[inline]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*word))
}

impl Walk {
    pub(crate) const fn new(tick_base: u64) -> Self {
        Self {
            at: PageHeader::BYTES,
            index: 0,
            tick_base,
            extended: None,
            fault: None,
        }
    }

    /// Where the walk stands, in bytes from the beginning of the page: behind the reservation that
    /// it gave last.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Why the walk ended before the end of the page. `None`: it goes on, or what follows is empty
    /// or padding.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let (what, found) = self.fault?;
        let at = self.at as u32;
        Some(Fault::Record { at, what, found })
    }

    #[cold]
    fn fail(&mut self, what: &'static str, found: u64) {
        self.fault = Some((what, found));
    }

    /// Moves on over `words` words.
    #[inline]
    fn pass(&mut self, bytes: &[u8], words: u64) -> Option<()> {
        let left = (bytes.len() - self.at) as u64 / 8;
        if words == 0 || words > left {
            let what = if words == 0 {
                "length 0"
            } else {
                "length reaches past the page"
            };
            let found = word_at(bytes, self.at).unwrap_or(0);
            self.fail(what, found);
            return None;
        }
        self.at += 8 * words as usize;
        Some(())
    }

    /// A time extension is committed together with its record: alone it is damage.
    #[inline]
    fn end_of_bytes(&mut self) {
        if self.extended.is_some() {
            self.fail("a time extension without its record", 0);
        }
    }

    /// Moves on over a reservation that became no event. It has a number all the same, and ends a
    /// time extension before it.
    fn hole(&mut self, bytes: &[u8], record: Header, step: Reservation) -> Option<Reservation> {
        self.pass(bytes, record.words(|| None).unwrap_or(0))?;
        self.index += 1;
        self.extended = None;
        Some(step)
    }

    /// The next reservation in `bytes`, the same at each step; `None` at the end or before a fault.
    /// Time extensions are taken into the record after them. An event is written to `record`, where it
    /// stays: a copy would wait for the parts of it.
    #[inline]
    pub(crate) fn step(
        &mut self,
        bytes: &[u8],
        shown: Shown<'_>,
        record: &mut Record,
    ) -> Option<Reservation> {
        loop {
            let at = self.at;
            let word = word_at(bytes, at).unwrap_or(0);
            let header = record::unpack(word);
            let (ticks, type_id, front) = match header {
                Header::Record {
                    ticks,
                    type_id,
                    payload_words,
                } => match payload_words {
                    Some(_) => (ticks, type_id, 8),
                    None => (ticks, type_id, self.long_front(bytes, word)?),
                },
                Header::Empty => {
                    self.end_of_bytes();
                    return None;
                }
                Header::Pad => {
                    self.end_of_bytes();
                    if self.fault.is_none() {
                        self.at = bytes.len();
                    }
                    return None;
                }
                Header::Busy(_) => return self.hole(bytes, header, Reservation::Uncommitted),
                Header::Cancelled(_) => return self.hole(bytes, header, Reservation::Cancelled),
            };
            let words = header.words(|| word_at(bytes, at + 8));
            self.pass(bytes, words.unwrap_or(u64::MAX))?;
            let start = at + front;
            if start > self.at {
                return None;
            }
            if type_id.0 == record::TIME_EXTEND {
                self.extended = word_at(bytes, start);
                if self.at - start != 8 {
                    self.at = at;
                    self.fail("a time extension of another length", word);
                    return None;
                }
                continue;
            }
            return Some(self.reservation((ticks, type_id), start, shown, record));
        }
    }

    /// What the record is that was passed last. `start`: where its payload begins.
    #[inline]
    fn reservation(
        &mut self,
        (ticks, type_id): (u32, TypeId),
        start: usize,
        shown: Shown<'_>,
        record: &mut Record,
    ) -> Reservation {
        let index = self.index;
        self.index += 1;
        if type_id.0 < record::FIRST_TYPE {
            self.extended = None;
            return Reservation::Reserved;
        }
        let counted = self.tick_base.wrapping_add(u64::from(ticks));
        let tick = self.extended.take().unwrap_or(counted);
        if tick < shown.from && shown.kept.binary_search(&index).is_err() {
            return Reservation::LeftOut;
        }
        *record = Record {
            index,
            tick,
            type_id,
            start: start as u32,
            end: self.at as u32,
        };
        Reservation::Event
    }

    /// Bytes of a header whose length stands in the next word, if that is no length that the
    /// header itself could hold.
    fn long_front(&mut self, bytes: &[u8], header: u64) -> Option<usize> {
        match word_at(bytes, self.at + 8) {
            Some(words) if words >= record::LONG => Some(16),
            _ => {
                self.fail("long length too small or not there", header);
                None
            }
        }
    }
}

/// The events of a page that are shown, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Records<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) walk: Walk,
    pub(crate) shown: Shown<'a>,
}

impl Iterator for Records<'_> {
    type Item = Record;

    #[inline]
    fn next(&mut self) -> Option<Record> {
        let mut record = Record::NONE;
        while let Some(step) = self.walk.step(self.bytes, self.shown, &mut record) {
            if let Reservation::Event = step {
                return Some(record);
            }
        }
        None
    }
}
